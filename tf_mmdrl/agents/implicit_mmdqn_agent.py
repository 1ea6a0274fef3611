"""MMDQN with implicit particles, which the paper proposes in its discussion."""

import math
from typing import Optional, Union

import tensorflow as tf

from tf_mmdrl.agents import base
from tf_mmdrl.agents.mmdqn_agent import DEFAULT_KERNEL, mmd_loss
from tf_mmdrl.agents.predicting import Samples
from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.ops import bandwidths, kernels


class ImplicitMMDQNAgent(base.ReturnDistributionAgent):
  """Particles are images of draws from a base distribution.

  Head: `implicit_heads.implicit(stratified=True)`, with a uniform or a normal
  base. The network gives as many particles as it is asked for, at evaluation
  too.
  """

  network_example = (
    "ReturnNetwork(..., implicit_heads.implicit(32, stratified=True))"
  )

  def __init__(
    self,
    *args,
    samples: Optional[Samples] = None,
    kernel: Union[kernels.Kernel, bandwidths.KernelRule] = DEFAULT_KERNEL,
    jit_compile: Optional[bool] = None,
    **options,
  ):
    """Makes the agent.

    Args:
      *args: those of the base class.
      samples: particles drawn of the action taken, of the target and to choose
        the target's action by; 64, 64 and 32 if None.
      kernel: as MMDQN's.
      jit_compile: whether XLA compiles the update; what is faster here if None.
      **options: those of the base class.
    """
    self._mmd = mmd_loss(kernel, jit_compile)
    super().__init__(
      *args,
      samples=samples or Samples(),
      jit_compile=jit_compile,
      **options,
    )
    head = getattr(self._network, "head", None)
    if not getattr(head, "is_stratified", False):
      raise errors.UserError(
        "implicit MMDQN wants stratified draws, because with independent ones"
        " its loss narrows the distribution; use ReturnNetwork(...,"
        " implicit_heads.implicit(32, stratified=True))"
      )

  def _loss_per_example(
    self, predicted: ReturnDistribution, target: ReturnDistribution
  ) -> tf.Tensor:
    return self._mmd(predicted, target, self.train_step_counter)

  @property
  def _has_a_reach(self) -> bool:
    return math.isfinite(self._mmd.reach)

  def _beyond_reach(
    self, predicted: ReturnDistribution, target: ReturnDistribution
  ) -> tf.Tensor:
    return self._mmd.share_beyond(predicted, target)
