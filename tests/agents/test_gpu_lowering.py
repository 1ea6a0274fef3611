"""What a GPU would compute, as far as XLA says so on a machine without one."""

import pathlib
import sys

import numpy as np
import pytest
import tensorflow as tf

from tf_mmdrl.core import algorithms
from tf_mmdrl.networks import torsos

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "benchmarks"))

import gpu  # noqa: E402
import hlo  # noqa: E402
import lowering  # noqa: E402
import update  # noqa: E402

_N = 48  # particles; few enough would go by pairs, in float64


def _task(width):
  observation = tf.TensorSpec([10, 10, 4], tf.uint8)
  return update.Task(observation, torsos.MINATAR_CONV, (width,))


@pytest.mark.parametrize(
  "name",
  [
    name if name == "mmdqn" else pytest.param(name, marks=pytest.mark.slow)
    for name in algorithms.names()
    if name != "joint_mmdqn"  # benchmarks.joint: it wants vector rewards
  ],
)
def test_an_update_is_fit_for_a_gpu(name):
  small = gpu.lowered(name, _task(16), num_particles=_N)
  assert small.on_host() == []
  opcodes = {one.opcode for one in small.instructions()}
  assert opcodes >= {"dot", "sqrt", "conditional"}  # it is the whole update
  # Twice the particles and four times the width: what grows with N alone is at
  # most doubled. N^2, or anything of the network, would be four times as much.
  large = gpu.lowered(name, _task(64), num_particles=2 * _N)
  before, after = small.work("f64"), large.work("f64")
  assert after.elements <= 2 * before.elements
  assert after.operations <= before.operations
  assert large.work("f32").elements > small.work("f32").elements


def _lowered(function, *args, variables=()):
  return hlo.Module(lowering.for_gpu(function, variables, *args))


def test_float64_that_grows_is_counted():
  x = tf.ones([2, 5])

  def outer(x):
    x = tf.cast(x, tf.float64)
    return tf.cast(x[:, :, tf.newaxis] * x[:, tf.newaxis], tf.float32)

  # A cast of [2, 5], a product of [2, 5, 5], and a cast of it.
  assert _lowered(outer, x).work("f64") == hlo.Work(3, 10 + 50 + 50)
  # In a loop as well; in a branch only if the other has no less.
  loop = _lowered(
    lambda x: tf.while_loop(
      lambda k, _: k < 3, lambda k, y: (k + 1, outer(y)[:, 0]), (0, x)
    ),
    x,
  )
  assert loop.work("f64") == hlo.Work(3, 110)
  zeros = lambda: tf.zeros([2, 5, 5])  # noqa: E731
  for other, wanted in ((zeros, 0), (lambda: outer(x + 1), 110)):
    found = _lowered(
      lambda x, other=other: tf.cond(x[0, 0] > 2, lambda: outer(x), other), x
    )
    assert found.work("f64").elements == wanted


def test_a_product_counts_its_multiplications():
  found = _lowered(tf.matmul, tf.ones([3, 4]), tf.ones([4, 5]))
  assert found.work("f32") == hlo.Work(1, 60)


def test_what_a_gpu_cannot_do_is_refused():
  with pytest.raises(ValueError, match="(?s)XLA_GPU_JIT.*EagerPyFunc|PyFunc"):
    _lowered(lambda x: tf.numpy_function(np.sin, [x], tf.float32), tf.ones([2]))
  with pytest.raises(ValueError, match="StringFormat|AsString"):
    _lowered(lambda x: tf.strings.as_string(x), tf.ones([2]))


def test_host_work_is_seen():
  module = hlo.Module(
    "HloModule m\n\nENTRY %m (x: f32[2]) -> f32[2] {\n"
    "  %x = f32[2]{0} parameter(0)\n"
    "  ROOT %y = f32[2]{0} custom-call(f32[2]{0} %x),"
    ' custom_call_target="xla_python_gpu_callback"\n}\n'
  )
  (found,) = module.on_host()
  assert "xla_python_gpu_callback" in found


def test_variables_go_in_and_come_out():
  """Assignments are in the text, of branches and loops too, and only there."""
  variable = tf.Variable([1.0, 2.0])

  def step(x):
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(tf.sinh(variable * x))
    variable.assign_sub(tape.gradient(loss, variable))
    tf.cond(
      x[0] > 0,
      lambda: [variable.assign(tf.atan2(x, x))],
      lambda: [variable.assign_add(x)],
    )

    def turn(_):
      variable.assign(tf.math.expm1(variable))
      return [tf.constant(False)]

    tf.while_loop(lambda due: due, turn, [x[1] > 0])
    return loss

  module = _lowered(step, tf.ones([2]), variables=[variable])
  assert variable.numpy().tolist() == [1, 2]
  parameters = [
    one
    for one in module.computations[module.entry]
    if one.opcode == "parameter"
  ]
  assert len(parameters) == 2
  opcodes = {one.opcode for one in module.instructions()}
  assert {"atan2", "subtract", "conditional"} <= opcodes
  assert {"while", "exponential-minus-one"} <= opcodes
