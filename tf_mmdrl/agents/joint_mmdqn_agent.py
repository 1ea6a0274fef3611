"""Joint MMDQN: the joint distribution of several returns by moment matching.

The paper's loss in R^D (Theorem 3 does not know the dimension). MD3QN learns
such distributions as well: Zhang et al., "Distributional Reinforcement Learning
for Multi-Dimensional Reward Functions", NeurIPS 2021. Its kernel is
`agent.kernel=gaussian_geometric`.
"""

import dataclasses
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np
import tensorflow as tf

from tf_mmdrl.agents import base, checks, mmdqn_agent
from tf_mmdrl.core import algorithms, errors, settings
from tf_mmdrl.core.return_distribution import (
  JointReturnDistribution,
  ReturnDistribution,
)
from tf_mmdrl.losses import MMDLoss
from tf_mmdrl.networks import heads
from tf_mmdrl.ops import kernel_names, kernels
from tf_mmdrl.policies import scores, utilities, utility_names


class JointMMDQNAgent(base.ReturnDistributionAgent):
  """Learns N particles in R^D per action by minimising the squared MMD.

  The D returns share the discount. Each has a unit of its own, so that none of
  them counts for more in distances because its rewards are larger.
  """

  network_example = "ParticleNetwork(..., num_particles=200, dimensions=D)"

  def __init__(
    self,
    time_step_spec,
    action_spec,
    return_network=None,
    optimizer=None,
    *,
    score: Optional[utilities.UtilityScore] = None,
    kernel: kernels.Kernel = mmdqn_agent.DEFAULT_KERNEL,
    mean_distance: bool = True,
    **options,
  ):
    """Makes the agent.

    Args:
      time_step_spec: of the environment; its reward is a vector [D].
      action_spec: a scalar, discrete action from 0.
      return_network: observation -> joint particles `[B, A, N, D]`; head:
        `heads.particles(N, D)` or `heads.weighted_particles(N, D)`.
      optimizer: of Keras or of tf.compat.v1.
      score: what actions maximise, in natural rewards: of policies and of the
        target. The expected sum of the returns by default; see
        `policies.utilities`.
      kernel: a kernel of distances in units.
      mean_distance: whether squared distances are means over the D returns, as
        in MD3QN, or sums.
      **options: those of `base.ReturnDistributionAgent`.
    """
    name = type(self).__name__
    dimensions = checks.reward_dimensions(time_step_spec.reward)
    if dimensions is None:
      raise errors.UserError(
        f"{name} wants rewards that are vectors, but the environment's reward"
        " is one number; use mmdqn, or an environment with vector rewards"
      )
    if options.get("reward_scale_factor", 1.0) != 1:
      raise errors.UserError(
        f"{name} wants rewards as they are, because utilities and their limits"
        " are in natural rewards and the agent finds a unit for each return;"
        " leave reward_scale_factor (agent.reward_scale) out, got"
        f" {options['reward_scale_factor']:g}"
      )
    if not isinstance(kernel, kernels.Kernel):
      raise errors.UserError(
        f"{name} wants a kernel that does not follow the data, because"
        " bandwidth rules are for returns on the line; pass for example"
        " smooth_energy:1 or gaussian_geometric"
      )
    if options.get("munchausen") is not None:
      raise errors.UserError(
        f"{name} has no Munchausen bonus, which is one number for a vector of"
        f" {dimensions} returns; set agent.munchausen=false"
      )
    score = utilities.Expected(utilities.Linear()) if score is None else score
    score.utility.check(dimensions)
    super().__init__(
      time_step_spec,
      action_spec,
      return_network,
      optimizer,
      loss=MMDLoss(kernel, mean_distance=mean_distance),
      score=score,
      **options,
    )


@dataclasses.dataclass(frozen=True)
class Settings(algorithms.Settings):
  """The kernel, and what actions maximise."""

  kernel: str = mmdqn_agent.kernel_setting("smooth_energy:1")
  distance: str = settings.setting(
    "mean",
    "squared distance that the kernel is a function of: mean over the returns"
    " of their squared differences in units, as in MD3QN, or sum",
    choices=("mean", "sum"),
  )
  utility: str = settings.setting(
    "sum",
    "what a vector of returns is worth, in natural rewards: sum, linear:W1,W2,"
    " chebyshev:W1,W2@Z1,Z2, ces:RHO:W1,W2, threshold:C1,C2, or"
    " package.module:function",
  )
  criterion: str = settings.setting(
    "esr",
    "what actions maximise; esr: the expected utility, ser: the utility of the"
    " expected returns, or another score of the utility such as cvar:0.25",
  )
  accrued: bool = settings.setting(
    False,
    "whether the utility is that of the whole episode, with the rewards earned"
    " so far, which then become a part of observations",
  )

  @property
  def accrues_rewards(self) -> bool:
    """Whether observations must hold the rewards earned so far."""
    return self.accrued

  def head(self, run: algorithms.Run) -> heads.MakeHead:
    """N free particles in R^D."""
    return heads.particles(run.num_particles, run.dimensions)

  def options(self, run: algorithms.Run) -> Dict[str, Any]:
    """The kernel, the distance, and the score."""
    return {
      "kernel": kernel_names.parse_rule(self.kernel, run.num_updates),
      "mean_distance": self.distance == "mean",
      "score": self._score(),
    }

  def score(self, score: scores.Score) -> scores.Score:
    """A score of the utility; the criterion if it is the mean."""
    return self._score().by(score)

  def worth(self, scores: np.ndarray) -> Tuple[np.ndarray, float]:
    """[K] utilities of the vectors, and the criterion's value of them all."""
    score = utility_names.parse_score(self.utility, self.criterion)
    vectors = tf.constant(scores, tf.float32)
    try:
      each = score.utility(vectors).numpy()
      together = score(JointReturnDistribution(vectors), tf.zeros([]))
    except tf.errors.InvalidArgumentError as error:
      utilities.raise_if_not_finite(error)
      raise
    return each, float(together)

  def limits(self) -> Optional[Sequence[float]]:
    """Those of a threshold utility."""
    utility = self._score().utility
    return getattr(utility, "limits", None)

  def numbers(self, returns: JointReturnDistribution) -> ReturnDistribution:
    """Distributions of the utility of what is still to come."""
    return returns.utility(self._score().utility)

  def _score(self) -> utilities.UtilityScore:
    return utility_names.parse_score(
      self.utility, self.criterion, accrued=self.accrued
    )


ALGORITHM = algorithms.Algorithm(
  summary="particles in R^D of several returns at once",
  paper="Zhang et al., 2021; Nguyen-Tang, Gupta and Venkatesh, 2021",
  url="https://arxiv.org/abs/2110.13578",
  agent=JointMMDQNAgent,
  settings=Settings,
)
