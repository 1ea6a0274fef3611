"""What an exported policy can be asked, as functions of plain TensorFlow."""

from typing import TYPE_CHECKING, Any, Callable, Dict, NamedTuple, Tuple

import tensorflow as tf

from tf_mmdrl.core import choosing
from tf_mmdrl.core.return_distribution import (
  JointReturnDistribution,
  ReturnDistribution,
)

if TYPE_CHECKING:
  from tf_agents.networks import network


class Reading(NamedTuple):
  """What to make of a network's distributions.

  Attributes:
    scores: (distributions, observation) -> [B, A], what actions maximise.
    numbers: (distributions, observation) -> distributions [B, A, N] of numbers,
      if those of the network are joint.
  """

  scores: Callable[[ReturnDistribution, tf.Tensor], tf.Tensor]
  numbers: Callable[[ReturnDistribution, tf.Tensor], ReturnDistribution]


EXPECTED = Reading(lambda z, _: z.mean(), lambda z, _: z)


def build(
  net: "network.Network", reading: Reading = EXPECTED
) -> Tuple[tf.Module, Dict[str, Any]]:
  """A plain tf.Module with the variables and no Keras object, and functions.

  | signature | takes | gives |
  |---|---|---|
  | `action`, `serving_default` | `observation` [B, ...] | `action` [B],
  `q_values` [B, A] |
  | `action_bytes` | `observation_bytes` [B] | the same |
  | `particles` | `observation` | `values`, `weights` [B, A, N] |
  | `risk` | `observation`, `level` [] or [B] | `action` [B], `cvar` [B, A] |

  Of joint distributions `values` are [B, A, N, D], `action` gives `expected`
  [B, A, D], too, `q_values` are what actions maximise, and `cvar` is of the
  utility.

  Args:
    net: observation -> particles, made and filled.
    reading: what actions maximise; the expected return by default.

  Returns:
    The module and its signatures by name.
  """
  module = tf.Module()
  module.model_variables = list(net.variables)
  action = _action(net, reading)
  return module, {
    "serving_default": action,
    "action": action,
    "action_bytes": _action_bytes(net, reading),
    "particles": _particles(net),
    "risk": _risk(net, reading),
  }


def batch_spec(net: "network.Network") -> tf.TensorSpec:
  """The spec of observations [B, ...], for any B."""
  spec = net.input_tensor_spec
  return tf.TensorSpec([None, *spec.shape], spec.dtype, "observation")


def returns(
  net: "network.Network", observation: tf.Tensor
) -> ReturnDistribution:
  """The distributions [B, A, N] that a network gives."""
  output, _ = net(observation)
  return ReturnDistribution.of(output)


def greedy(
  distribution: ReturnDistribution, observation: tf.Tensor, reading: Reading
) -> Dict[str, tf.Tensor]:
  """The best actions [B] and what they were chosen by, [B, A]."""
  scores = reading.scores(distribution, observation)
  found = {"action": choosing.largest(scores), "q_values": scores}
  if isinstance(distribution, JointReturnDistribution):
    found["expected"] = distribution.mean()
  return found


def weighted(distribution: ReturnDistribution) -> Dict[str, tf.Tensor]:
  """Particles and their weights, each [B, A, N]; joint ones [B, A, N, D]."""
  return {"values": distribution.values, "weights": distribution.weights()}


def _action(net: "network.Network", reading: Reading) -> Any:
  @tf.function(input_signature=[batch_spec(net)], autograph=False)
  def action(observation):
    return greedy(returns(net, observation), observation, reading)

  return action


def _action_bytes(net: "network.Network", reading: Reading) -> Any:
  spec = net.input_tensor_spec
  size = spec.shape.num_elements() * spec.dtype.size
  encoded = tf.TensorSpec([None], tf.string, "observation_bytes")

  @tf.function(input_signature=[encoded], autograph=False)
  def action_bytes(observation_bytes):
    check = tf.debugging.assert_equal(
      tf.strings.length(observation_bytes),
      size,
      f"each of observation_bytes must have {size} bytes",
    )
    with tf.control_dependencies([check]):
      numbers = _finite(tf.io.decode_raw(observation_bytes, spec.dtype))
    observation = tf.reshape(numbers, [-1, *spec.shape])
    return greedy(returns(net, observation), observation, reading)

  return action_bytes


def _finite(numbers: tf.Tensor) -> tf.Tensor:
  """Numbers, if all of them are: bytes can be NaN, unlike JSON."""
  if not numbers.dtype.is_floating:
    return numbers
  check = tf.debugging.Assert(
    tf.reduce_all(tf.math.is_finite(numbers)),
    ["observation_bytes must hold finite numbers", "got NaN or infinity"],
  )
  with tf.control_dependencies([check]):
    return tf.identity(numbers)


def _particles(net: "network.Network") -> Any:
  @tf.function(input_signature=[batch_spec(net)], autograph=False)
  def particles(observation):
    return weighted(returns(net, observation))

  return particles


def _risk(net: "network.Network", reading: Reading) -> Any:
  scalar_or_batch = tf.TensorSpec(None, tf.float32, "level")

  @tf.function(
    input_signature=[batch_spec(net), scalar_or_batch], autograph=False
  )
  def risk(observation, level):
    batch = tf.shape(observation)[:1]
    level = tf.broadcast_to(tf.reshape(level, [-1]), batch)
    wanted = "level must lie in (0, 1]"
    tf.debugging.assert_greater(level, 0.0, wanted)
    tf.debugging.assert_less_equal(level, 1.0, wanted)
    numbers = reading.numbers(returns(net, observation), observation)
    cvar = numbers.cvar(level[:, tf.newaxis])
    return {"action": choosing.largest(cvar), "cvar": cvar}

  return risk
