"""FQF: Yang et al., "Fully Parameterized Quantile Function for Distributional
Reinforcement Learning", 2019.
"""

import tensorflow as tf
from tf_agents.typing import types

from tf_mmdrl.agents import base, transitions
from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.losses import QuantileHuberLoss
from tf_mmdrl.policies import return_policy


class FQFAgent(base.ReturnDistributionAgent):
  """Learns quantiles, and at which levels to learn them.

  Head: `implicit_heads.fractions`. The levels minimise the 1-Wasserstein
  distance between the quantile function and its N steps.
  """

  network_example = "ReturnNetwork(..., implicit_heads.fractions(32))"

  def __init__(
    self,
    time_step_spec,
    action_spec,
    return_network=None,
    optimizer=None,
    *,
    fraction_optimizer: types.Optimizer,
    entropy: float = 0.0,
    kappa: float = 1.0,
    **options,
  ):
    """Makes the agent.

    Args:
      time_step_spec: of the environment.
      action_spec: a scalar, discrete action from 0.
      return_network: a `ReturnNetwork` with a head of fractions.
      optimizer: of the quantiles.
      fraction_optimizer: of the proposal of fractions.
      entropy: what multiplies the entropy of the fractions' weights; it keeps
        them from collapsing.
      kappa: of the Huber loss.
      **options: those of the base class.
    """
    self._quantile_loss = QuantileHuberLoss(kappa)
    self._fraction_optimizer = fraction_optimizer
    self._entropy = entropy
    super().__init__(
      time_step_spec, action_spec, return_network, optimizer, **options
    )

  def _check_network(self, net):
    if not hasattr(getattr(net, "head", None), "propose"):
      raise errors.UserError(
        "FQF needs a head that proposes fractions, got"
        f" {type(net).__name__}; use {self.network_example}"
      )

  def _loss_per_example(
    self, predicted: ReturnDistribution, target: ReturnDistribution
  ) -> tf.Tensor:
    # The greedy target's quantiles count alike in the paper's equation 8,
    # whatever the width of their fractions.
    if self._target_rule.munchausen is None:
      target = target._replace(log_weights=None)
    return self._quantile_loss(predicted, target)

  def _auxiliary_loss(
    self,
    data: transitions.Transition,
    predicted: ReturnDistribution,
    target: ReturnDistribution,
  ) -> tf.Tensor:
    """A loss whose gradient in each fraction is Proposition 1's."""
    observation, _ = return_policy.split(data.observation, self._splitter)
    # Computed once more, which XLA may notice; their gradient is not wanted.
    features = tf.stop_gradient(self._network.features(observation))
    head = self._network.head
    log_weights, fractions = head.propose(features)

    def quantiles(levels):
      at_levels = ReturnDistribution(head.at_levels(features, levels))
      return tf.stop_gradient(at_levels.at(data.action).values)

    edges = quantiles(fractions[:, 1:-1])
    if self._network.is_noisy:  # all of one quantile function
      middles = quantiles(head.middles(fractions))
    else:
      middles = tf.stop_gradient(predicted.values)
    slope = 2 * edges - middles[:, 1:] - middles[:, :-1]  # equation 7
    loss = tf.reduce_sum(slope * fractions[:, 1:-1], axis=1)
    entropy = -tf.reduce_sum(tf.exp(log_weights) * log_weights, axis=1)
    return loss - self._entropy * entropy

  def _groups(self):
    proposal = self._network.head.proposal.trainable_weights
    mine = {id(weight) for weight in proposal}
    quantiles = [
      weight
      for weight in self._network.trainable_weights
      if id(weight) not in mine
    ]
    return [
      base.Group(self._optimizer, quantiles),
      base.Group(self._fraction_optimizer, proposal),
    ]
