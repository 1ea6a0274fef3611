"""A second loss of an agent, for weights with an optimizer of their own."""

from typing import Any, NamedTuple, Sequence

import tensorflow as tf
from tf_agents.networks import network
from tf_agents.typing import types

from tf_mmdrl.core.return_distribution import ReturnDistribution


class Batch(NamedTuple):
  """The part of an update that an auxiliary loss is given; returns in units.

  Attributes:
    observation: [B, ...] the network's part.
    action: [B] the actions taken.
    predicted: [B, N].
    target: [B, M].
    step: [] updates so far.
  """

  observation: Any
  action: tf.Tensor
  predicted: ReturnDistribution
  target: ReturnDistribution
  step: tf.Tensor


class Auxiliary(tf.Module):
  """Weights that the agent's loss does not train, and their own loss.

  Attributes:
    optimizer: the optimizer of those weights.
  """

  def __init__(self, optimizer: types.Optimizer, name: str):
    """Keeps the optimizer."""
    super().__init__(name=name)
    self.optimizer = optimizer

  def weights(self, net: network.Network) -> Sequence[tf.Variable]:
    """The weights that it trains, of the network or its own."""
    raise NotImplementedError

  def loss(self, net: network.Network, batch: Batch) -> tf.Tensor:
    """[B] losses, with no gradient in any other weights."""
    raise NotImplementedError
