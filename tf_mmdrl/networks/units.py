"""Networks that know in which unit of return they compute."""

import tensorflow as tf
from tf_agents.networks import network

from tf_mmdrl.core.return_distribution import ReturnDistribution


def variable() -> tf.Variable:
  """A unit: [] natural rewards, 1 until an agent knows better."""
  return tf.Variable(
    1.0,
    trainable=False,
    name="unit",
    aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
  )


class InUnits(network.Network):
  """Any network that emits particles, with a unit that multiplies them.

  It has no `unit_changes`, because which weights make the particles is not
  known: once they have learnt, its unit stays.

  Attributes:
    unit: [] variable, how many natural rewards one unit is.
  """

  def __init__(self, inner: network.Network, name: str = "InUnits"):
    """Wraps a network."""
    super().__init__(inner.input_tensor_spec, inner.state_spec, name=name)
    self._inner = inner
    self.unit = variable()

  @property
  def is_noisy(self) -> bool:
    """Whether the network makes noise of a seed."""
    return getattr(self._inner, "is_noisy", False)

  @property
  def is_random(self) -> bool:
    """Whether a seed makes a difference to the network."""
    return getattr(self._inner, "is_random", False)

  def copy(self, **options) -> "InUnits":
    """A new one around a copy of the network."""
    return InUnits(self._inner.copy(), **{"name": self.name, **options})

  def call(self, observation, **options):
    """What the network gives, in natural rewards."""
    output, state = self._inner(observation, **options)
    returns = ReturnDistribution.of(output)
    return returns.map_values(lambda z: self.unit * z).as_nest(), state


def with_unit(net: network.Network) -> network.Network:
  """The network itself if it has a unit, or one that gives it a unit."""
  return net if hasattr(net, "unit") else InUnits(net)
