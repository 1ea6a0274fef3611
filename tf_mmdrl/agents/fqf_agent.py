"""FQF: Yang et al., "Fully Parameterized Quantile Function for Distributional
Reinforcement Learning", 2019.
"""

import dataclasses
from typing import Any, Dict, Sequence

import tensorflow as tf
from tf_agents.networks import network
from tf_agents.typing import types

from tf_mmdrl.agents import auxiliary, base, qrdqn_agent
from tf_mmdrl.core import algorithms, errors, settings
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.losses import QuantileHuberLoss
from tf_mmdrl.networks import heads, implicit_heads


class Fractions(auxiliary.Auxiliary):
  """The proposal of levels, which minimises a Wasserstein distance."""

  def __init__(self, optimizer: types.Optimizer, entropy: float):
    """Keeps how it learns.

    Args:
      optimizer: the optimizer of the proposal.
      entropy: what multiplies the entropy of the fractions' weights.
    """
    super().__init__(optimizer, name="fractions")
    self._entropy = entropy

  def weights(self, net: network.Network) -> Sequence[tf.Variable]:
    """The weights of the layer that proposes levels, in the head."""
    return net.head.proposal.trainable_weights

  def loss(self, net: network.Network, batch: auxiliary.Batch) -> tf.Tensor:
    """[B] a loss whose gradient in each fraction is Proposition 1's."""
    # Computed once more, which XLA may notice; their gradient is not wanted.
    features = tf.stop_gradient(net.features(batch.observation))
    log_weights, fractions = net.head.propose(features)

    def quantiles(levels):
      at_levels = ReturnDistribution(net.head.at_levels(features, levels))
      return tf.stop_gradient(at_levels.at(batch.action).values)

    edges = quantiles(fractions[:, 1:-1])
    if net.is_noisy:  # all of one quantile function
      middles = quantiles(net.head.middles(fractions))
    else:
      middles = tf.stop_gradient(batch.predicted.values)
    slope = 2 * edges - middles[:, 1:] - middles[:, :-1]  # equation 7
    loss = tf.reduce_sum(slope * fractions[:, 1:-1], axis=1)
    entropy = -tf.reduce_sum(tf.exp(log_weights) * log_weights, axis=1)
    return loss - self._entropy * entropy


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
      time_step_spec: the spec of the time steps of the environment.
      action_spec: a scalar, discrete action from 0.
      return_network: a `ReturnNetwork` with a head of fractions.
      optimizer: the optimizer of the quantiles.
      fraction_optimizer: the optimizer of the proposal of fractions.
      entropy: what multiplies the entropy of the fractions' weights; it keeps
        them from collapsing.
      kappa: the kappa of the Huber loss.
      **options: those of the base class.
    """
    # The greedy target's quantiles count alike in the paper's equation 8,
    # whatever the width of their fractions.
    even = options.get("munchausen") is None
    super().__init__(
      time_step_spec,
      action_spec,
      return_network,
      optimizer,
      loss=QuantileHuberLoss(kappa, even_targets=even),
      auxiliary=Fractions(fraction_optimizer, entropy),
      **options,
    )

  def _check_network(self, net):
    if not hasattr(getattr(net, "head", None), "propose"):
      raise errors.UserError(
        "FQF needs a head that proposes fractions, got"
        f" {type(net).__name__}; use {self.network_example}"
      )


@dataclasses.dataclass(frozen=True)
class Settings(algorithms.Settings):
  """How fractions are proposed and learnt, and the loss's kappa."""

  kappa: float = qrdqn_agent.kappa_setting()
  embedding: int = settings.setting(
    64, "how many cosines of a quantile's level enter the network", low=1
  )
  entropy: float = settings.setting(
    0.0,
    "weight of the bonus for fractions of even width, which keeps them from"
    " collapsing",
    low=0,
  )
  fraction_learning_rate: float = settings.setting(
    2.5e-9,
    "learning rate, of RMSProp, of the layer that proposes fractions",
    above=0,
  )

  def head(self, run: algorithms.Run) -> heads.MakeHead:
    """Particles at levels that the head proposes."""
    return implicit_heads.fractions(run.num_particles, embedding=self.embedding)

  def options(self, run: algorithms.Run) -> Dict[str, Any]:
    """The loss's kappa, and how fractions learn."""
    del run
    return {
      "kappa": self.kappa,
      "entropy": self.entropy,
      "fraction_optimizer": tf.keras.optimizers.RMSprop(
        self.fraction_learning_rate, rho=0.95, epsilon=1e-5
      ),
    }


ALGORITHM = algorithms.Algorithm(
  summary="quantiles at levels that the network proposes",
  paper="Yang et al., 2019",
  url="https://arxiv.org/abs/1911.02140",
  agent=FQFAgent,
  settings=Settings,
  shared={"network.num_particles": 32},
  published={  # IQN's, with N = 32; the authors' code has TensorFlow's padding
    **qrdqn_agent.PUBLISHED,
    "network.padding": "same",
    "network.num_particles": 32,
    "agent.embedding": 64,
    "agent.entropy": 0.0,
    "agent.fraction_learning_rate": 2.5e-9,
  },
)
