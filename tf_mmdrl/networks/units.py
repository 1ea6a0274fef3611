"""Networks that know in which unit of return they compute."""

from typing import Optional

import tensorflow as tf
from tf_agents.networks import network

from tf_mmdrl.core.return_distribution import ReturnDistribution


def variable(dimensions: Optional[int] = None) -> tf.Variable:
  """A unit: [] natural rewards, 1 until an agent knows better; or [D] units."""
  return tf.Variable(
    1.0 if dimensions is None else [1.0] * dimensions,
    trainable=False,
    name="unit",
    aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
  )


class InUnits(network.Network):
  """Any network that emits particles, with a unit that multiplies them.

  It has no `unit_changes`, because which weights make the particles is not
  known: once they have learnt, its unit stays.

  Attributes:
    unit: [] variable, how many natural rewards one unit is; [D] for joint ones.
  """

  def __init__(
    self,
    inner: network.Network,
    dimensions: Optional[int] = None,
    name: str = "InUnits",
  ):
    """Wraps a network, whose particles are vectors if there are dimensions."""
    super().__init__(inner.input_tensor_spec, inner.state_spec, name=name)
    self._inner = inner
    self._dimensions = dimensions
    self.unit = variable(dimensions)

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
    options = {"name": self.name, **options}
    return InUnits(self._inner.copy(), self._dimensions, **options)

  def call(self, observation, **options):
    """What the network gives, in natural rewards."""
    output, state = self._inner(observation, **options)
    returns = ReturnDistribution.of(output)
    return returns.map_values(lambda z: self.unit * z).as_nest(), state


def with_unit(
  net: network.Network, dimensions: Optional[int] = None
) -> network.Network:
  """The network itself if it has a unit, or one that gives it a unit."""
  return net if hasattr(net, "unit") else InUnits(net, dimensions)
