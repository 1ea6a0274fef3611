"""MMDQN: Nguyen-Tang, Gupta and Venkatesh, "Distributional Reinforcement
Learning via Moment Matching", AAAI 2021; Algorithm 3.
"""

from typing import Optional, Union

import tensorflow as tf

from tf_mmdrl.agents import base, compiling
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.losses import MMDLoss
from tf_mmdrl.ops import bandwidths, kernels, spectral


class MMDQNAgent(base.ReturnDistributionAgent):
  """Learns N particles per action by minimising the squared MMD.

  As in the authors' code, the loss is the *squared* MMD averaged over the
  batch, and the target action is the target network's.
  """

  def __init__(
    self,
    time_step_spec,
    action_spec,
    return_network,
    optimizer,
    *,
    kernel: Optional[Union[kernels.Kernel, bandwidths.KernelRule]] = None,
    jit_compile: Optional[bool] = None,
    **options,
  ):
    """Makes the agent.

    Args:
      time_step_spec: of the environment.
      action_spec: a scalar, discrete action from 0.
      return_network: observation -> particles `[B, A, N]`.
      optimizer: of Keras or of tf.compat.v1.
      kernel: a kernel or a rule that makes one; the paper's mixture of
        Gaussians with bandwidths 1 to 10 if None.
      jit_compile: whether XLA compiles the update; what is faster here if None.
      **options: those of `base.ReturnDistributionAgent`, which are DqnAgent's.
    """
    jit_compile = compiling.resolve(jit_compile)
    self._mmd = MMDLoss(
      kernel or kernels.gaussian_mixture(),
      cos_sin=spectral.series_cos_sin
      if jit_compile
      else spectral.library_cos_sin,
    )
    super().__init__(
      time_step_spec,
      action_spec,
      return_network,
      optimizer,
      jit_compile=jit_compile,
      **options,
    )

  def _loss_per_example(
    self, predicted: ReturnDistribution, target: ReturnDistribution
  ) -> tf.Tensor:
    # Algorithm 1, output.
    return self._mmd(predicted, target, self.train_step_counter)
