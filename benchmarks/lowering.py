"""Lowers an agent's whole update for a GPU; the machine needs none.

XLA lowers a function for any platform if it holds no variable. An update reads
and changes many, so here their values go in as arguments and come out as
results: while it is traced, a variable is the tensor that was assigned to it
last.
"""

import contextlib
from typing import Any, Callable, Dict, Iterator, List, Sequence
from unittest import mock

import tensorflow as tf
from tensorflow.python.eager import record
from tensorflow.python.ops import resource_variable_ops

from tf_mmdrl.agents import base

_Variable = resource_variable_ops.ResourceVariable


def update_for_gpu(
  agent: base.ReturnDistributionAgent, experience: Any, weights: tf.Tensor
) -> str:
  """The HLO text of a training step: unit, loss, gradients, optimizer, target.

  Args:
    agent: what learns; none of its variables changes.
    experience: a batch.
    weights: [B] importance weights.

  Returns:
    The text, before XLA optimizes it.

  Raises:
    ValueError: if an operation has no kernel on a GPU under XLA.
  """
  return for_gpu(
    agent._train_step._attempt, agent.state_variables(), experience, weights
  )


def for_gpu(
  function: Callable[..., Any], variables: Sequence[tf.Variable], *args: Any
) -> str:
  """The HLO text of a function that reads and assigns to variables."""
  state = _State(variables)

  @tf.function(autograph=False, jit_compile=True)
  def pure(values, args):
    with state.held(values):
      results = function(*args)
      return tf.nest.flatten(results), state.values()

  values = [tf.constant(variable.numpy()) for variable in variables]
  # What is compiled within is traced as a part of it.
  tf.config.run_functions_eagerly(True)
  try:
    text = pure.experimental_get_compiler_ir(values, args)(
      stage="hlo", platform_name="GPU"
    )
  finally:
    tf.config.run_functions_eagerly(False)
  return text


class _State:
  """Variables as tensors, while a function is traced."""

  def __init__(self, variables: Sequence[tf.Variable]):
    self._variables = list(variables)
    self._now: Dict[int, tf.Tensor] = {}

  def values(self) -> List[tf.Tensor]:
    """The variables' values as they are now, in order."""
    return [self._now[id(variable)] for variable in self._variables]

  @contextlib.contextmanager
  def held(self, values: Sequence[tf.Tensor]) -> Iterator[None]:
    """Lets reads and assignments go to tensors, which are `values` at first."""
    self._take(values)
    patched = mock.patch.multiple(
      _Variable,
      _read_variable_op=lambda variable, no_copy=False: self._read(variable),
      assign=self._method(lambda _, value: value),
      assign_add=self._method(tf.add),
      assign_sub=self._method(tf.subtract),
    )
    control = mock.patch.multiple(
      tf, cond=self._cond(tf.cond), while_loop=self._while_loop(tf.while_loop)
    )
    with patched, control:
      yield

  def _take(self, values: Sequence[tf.Tensor]) -> None:
    self._now = dict(zip(map(id, self._variables), values, strict=True))

  def _read(self, variable: tf.Variable) -> tf.Tensor:
    resource_variable_ops.variable_accessed(variable)
    known = id(variable) in self._now
    value = self._now[id(variable)] if known else _constant(variable)
    value = tf.identity(value)
    # For gradients in the variable, as TensorFlow's own reads do.
    record.record_operation(
      "ReadVariableOp",
      [value],
      [variable.handle],
      backward_function=lambda gradient: [gradient],
      forward_function=lambda tangent: [tangent],
    )
    return value

  def _method(self, change: Callable[..., tf.Tensor]) -> Callable[..., Any]:
    def method(variable, value, *unused, **unused_too):
      del unused, unused_too  # locks and names
      before = self._now[id(variable)]
      value = tf.cast(value, before.dtype)
      self._now[id(variable)] = tf.identity(change(before, value))
      return variable

    return method

  def _cond(self, cond: Callable[..., Any]) -> Callable[..., Any]:
    """`tf.cond` whose branches give back all variables as well."""

    def with_state(predicate, true_fn, false_fn):
      before = self.values()

      def branch(function):
        def call():
          self._take(before)
          return function(), self.values()

        return call

      result, values = cond(predicate, branch(true_fn), branch(false_fn))
      self._take(values)
      return result

    return with_state

  def _while_loop(self, while_loop: Callable[..., Any]) -> Callable[..., Any]:
    """`tf.while_loop` whose turns hand on all variables as well."""

    def with_state(cond, body, loop_vars, **options):
      def goes_on(values, own):
        self._take(values)
        return cond(*own)

      def turn(values, own):
        self._take(values)
        found = tf.nest.flatten(body(*own))
        return self.values(), tf.nest.pack_sequence_as(own, found)

      first = self.values(), loop_vars
      values, result = while_loop(goes_on, turn, first, **options)
      self._take(values)
      return result

    return with_state


def _constant(variable: tf.Variable) -> tf.Tensor:
  """The value of a variable that nothing assigns to: a learning rate."""
  with tf.init_scope():
    value = tf.raw_ops.ReadVariableOp(
      resource=variable.handle, dtype=variable.dtype
    ).numpy()
  return tf.constant(value)
