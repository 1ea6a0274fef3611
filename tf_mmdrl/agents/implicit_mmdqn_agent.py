"""MMDQN with implicit particles, which the paper proposes in its discussion."""

import dataclasses
from typing import Any, Dict, Optional, Union

from tf_mmdrl.agents import base, iqn_agent, mmdqn_agent
from tf_mmdrl.agents.predicting import Samples
from tf_mmdrl.core import algorithms, errors, settings
from tf_mmdrl.networks import heads, implicit_heads
from tf_mmdrl.ops import bandwidths, kernel_names, kernels


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
    kernel: Union[
      kernels.Kernel, bandwidths.KernelRule
    ] = mmdqn_agent.DEFAULT_KERNEL,
    jit_compile: Optional[bool] = None,
    **options,
  ):
    """Makes the agent.

    Args:
      *args: those of the base class.
      samples: particles drawn of the action taken, of the target and to choose
        the target's action by; 64, 64 and 32 if None.
      kernel: the kernel, as MMDQN takes it.
      jit_compile: whether XLA compiles the update; what is faster here if None.
      **options: those of the base class.
    """
    super().__init__(
      *args,
      loss=mmdqn_agent.mmd_loss(kernel, jit_compile),
      samples=samples or Samples(),
      jit_compile=jit_compile,
      **options,
    )

  def _check_network(self, net):
    if not getattr(getattr(net, "head", None), "is_stratified", False):
      raise errors.UserError(
        "implicit MMDQN wants stratified draws, because with independent ones"
        " its loss narrows the distribution; use ReturnNetwork(...,"
        " implicit_heads.implicit(32, stratified=True))"
      )


@dataclasses.dataclass(frozen=True)
class Settings(iqn_agent.Drawn):
  """How particles are drawn, and MMDQN's kernel."""

  base: str = settings.setting(
    "uniform",
    "distribution of the random numbers that the network maps to particles",
    choices=("uniform", "normal"),
  )
  kernel: str = mmdqn_agent.kernel_setting()

  def head(self, run: algorithms.Run) -> heads.MakeHead:
    """Particles of stratified draws."""
    del run
    return implicit_heads.implicit(
      self.choice_particles,
      base=self.base,
      embedding=self.embedding,
      stratified=True,
    )

  def options(self, run: algorithms.Run) -> Dict[str, Any]:
    """How many particles to draw for what, and the kernel."""
    rule = kernel_names.parse_rule(self.kernel, run.num_updates)
    return {**super().options(run), "kernel": rule}


ALGORITHM = algorithms.Algorithm(
  summary="particles as images of draws, any number of them",
  paper=mmdqn_agent.PROPOSED,
  url=mmdqn_agent.ALGORITHM.url,
  agent=ImplicitMMDQNAgent,
  settings=Settings,
  shared={"network.num_particles": 64},
)
