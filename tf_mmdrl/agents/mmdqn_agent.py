"""MMDQN: Nguyen-Tang, Gupta and Venkatesh, "Distributional Reinforcement
Learning via Moment Matching", AAAI 2021; Algorithm 3.
"""

import dataclasses
from typing import Any, Dict, Optional, Union

from tf_mmdrl.agents import base, checks
from tf_mmdrl.core import algorithms, settings
from tf_mmdrl.losses import MMDLoss
from tf_mmdrl.networks import heads
from tf_mmdrl.ops import bandwidths, kernel_names, kernel_words, kernels

# Of agents in scripts: it pulls as much far away as near by, so that games that
# end early, far from what was predicted, count in full (docs/kernels.md).
DEFAULT_KERNEL = kernels.smooth_energy(1.0)
# Of `mmdrl train`: what learnt best with its presets. The paper's mixture of
# Gaussians, which has no gradient beyond 7 units, and a tail, which has one
# everywhere.
TRAINED_KERNEL = "gaussian_mixture:1..10+smooth_energy:1"


def mmd_loss(
  kernel: Union[kernels.Kernel, bandwidths.KernelRule],
  jit_compile: Optional[bool],
) -> MMDLoss:
  """The paper's loss, computed as is fastest for how it is compiled.

  Args:
    kernel: a kernel or a rule that makes one.
    jit_compile: whether XLA compiles it; what is faster here if None.

  Returns:
    The loss.
  """
  return MMDLoss(kernel, by_xla=jit_compile is not False)


class MMDQNAgent(base.ReturnDistributionAgent):
  """Learns N particles per action by minimising the squared MMD.

  As in the authors' code, the loss is the *squared* MMD averaged over the
  batch, and the target action is the target network's. A head of weighted
  particles learns their weights as well: the MMD is then weighted.
  """

  def __init__(
    self,
    time_step_spec,
    action_spec,
    return_network=None,
    optimizer=None,
    *,
    kernel: Union[kernels.Kernel, bandwidths.KernelRule] = DEFAULT_KERNEL,
    jit_compile: Optional[bool] = None,
    **options,
  ):
    """Makes the agent.

    Args:
      time_step_spec: the spec of the time steps of the environment.
      action_spec: a scalar, discrete action from 0.
      return_network: observation -> particles `[B, A, N]`; head:
        `heads.particles` or `heads.weighted_particles`. `q_network` and
        `categorical_q_network` are other names of it.
      optimizer: an optimizer of Keras or of tf.compat.v1.
      kernel: a kernel, in units of return, or a rule that makes one. The
        paper's mixture of Gaussians is `kernels.gaussian_mixture()`.
      jit_compile: whether XLA compiles the update; what is faster here if None.
      **options: those of `base.ReturnDistributionAgent`, which are DqnAgent's.
    """
    super().__init__(
      time_step_spec,
      action_spec,
      return_network,
      optimizer,
      loss=mmd_loss(kernel, jit_compile),  # Algorithm 1, output
      jit_compile=jit_compile,
      **options,
    )

  def _check_network(self, net):
    checks.check_atoms(
      net, type(self).__name__, self.network_example, wanted=False
    )


def kernel_setting(default: str = TRAINED_KERNEL) -> Any:
  """The setting `kernel` of all that match moments."""
  return settings.setting(
    default,
    "kernel of the MMD, over returns in units; gaussian_mixture:1..10 alone is"
    " the paper's, and docs/kernels.md lists all",
    check=kernel_words.check,
  )


@dataclasses.dataclass(frozen=True)
class Settings(algorithms.Settings):
  """Which kernel the MMD is measured by."""

  kernel: str = kernel_setting()

  def head(self, run: algorithms.Run) -> heads.MakeHead:
    """N free particles."""
    return heads.particles(run.num_particles)

  def options(self, run: algorithms.Run) -> Dict[str, Any]:
    """The kernel, or the rule that makes it."""
    return {"kernel": kernel_names.parse_rule(self.kernel, run.num_updates)}


ALGORITHM = algorithms.Algorithm(
  summary="free particles by moment matching",
  paper="Nguyen-Tang, Gupta and Venkatesh, 2021",
  url="https://arxiv.org/abs/2007.12354",
  agent=MMDQNAgent,
  settings=Settings,
  # Appendix B; what it leaves open (padding, schedules) is the authors' code.
  published={
    "agent.kernel": "gaussian_mixture:1..10",
    "network.padding": "same",
    "network.num_particles": 200,
    "optimizer.learning_rate": 5e-5,
    "optimizer.epsilon": 0.01 / 32,
    "schedule.learning_starts": 50_000,
    "schedule.target_period": 10_000,
    "schedule.epsilon_end": 0.01,
    "evaluation.epsilon": 0.001,
  },
)
PROPOSED = f"{ALGORITHM.paper}, proposed in the discussion"
