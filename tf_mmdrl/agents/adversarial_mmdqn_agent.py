"""MMDQN with a learned kernel, which the paper proposes in its discussion.

The kernel looks at returns through a monotone map that is trained to tell
prediction and target apart, while the particles are trained to match. The map
is piecewise linear with slopes within bounds, so that it stays one to one (the
kernel stays characteristic) and cannot blow up.
"""

import dataclasses
from typing import Any, Dict, Optional, Sequence, Tuple, Union

import numpy as np
import tensorflow as tf
from tf_agents.networks import network
from tf_agents.typing import types

from tf_mmdrl.agents import auxiliary, base, mmdqn_agent
from tf_mmdrl.core import algorithms, errors, settings
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.losses import Loss, MMDLoss
from tf_mmdrl.networks import heads
from tf_mmdrl.ops import bandwidths, kernel_names, kernels

_KERNEL = kernels.gaussian_mixture()


class MonotoneMap(tf.Module):
  """x -> f(x), increasing, f(0) = 0, with slopes in [1 / bound, bound].

  With no knots, f(x) = slope x: a bandwidth h becomes h / slope^2.
  """

  def __init__(self, knots, bound: float):
    """Starts as the identity.

    Args:
      knots: where the slope may change, increasing; none for one slope.
      bound: slopes lie within [1 / bound, bound].
    """
    super().__init__(name="monotone_map")
    knots = np.float32(knots).reshape([-1])
    if not bound > 1 or np.any(np.diff(knots) <= 0):
      raise errors.UserError(
        "a map wants increasing knots and bound > 1, got"
        f" {knots.tolist()} and {bound}"
      )
    self._knots = knots
    self._bound = bound
    self.parameters = tf.Variable(tf.zeros([len(knots) + 1]), name="slopes")

  def slopes(self) -> tf.Tensor:
    """[K + 1] slopes, left to right."""
    return self._bound ** tf.tanh(self.parameters)

  def __call__(
    self, x: tf.Tensor, slopes: Optional[tf.Tensor] = None
  ) -> tf.Tensor:
    """f(x), elementwise, with its own slopes or others."""
    slopes = self.slopes() if slopes is None else slopes
    result = slopes[0] * x
    changes = slopes[1:] - slopes[:-1]
    for index, knot in enumerate(self._knots):
      # relu(0 - knot) is taken off, for f(0) = 0.
      bend = tf.nn.relu(x - knot) - max(0.0, -knot)
      result += changes[index] * bend
    return result


class MappedMMDLoss(Loss):
  """The MMD of particles seen through a map, which this does not train.

  Attributes:
    map: the map of returns.
    mmd: (predicted, target, step) -> [B], the loss of what the map gives.
  """

  beyond_what = MMDLoss.beyond_what
  too_far_beyond = MMDLoss.too_far_beyond

  def __init__(self, loss: MMDLoss, through: MonotoneMap, *, xla: bool):
    """Compiles the MMD by itself: the map's own loss stands outside of what is.

    Args:
      loss: the MMD.
      through: the map.
      xla: whether XLA compiles it.
    """
    self._loss = loss
    self.map = through
    self.mmd = tf.function(loss.__call__, autograph=False, jit_compile=xla)

  def __call__(
    self,
    predicted: ReturnDistribution,
    target: ReturnDistribution,
    step: tf.Tensor,
  ) -> tf.Tensor:
    """[B] losses of predicted [B, N] against target [B, M] distributions."""
    # The map's own gradient is stopped, that through it to the particles kept.
    frozen = tf.stop_gradient(self.map.slopes())
    return self.seen(
      predicted, target, step, lambda x: self.map(x, slopes=frozen)
    )

  def seen(self, predicted, target, step, through) -> tf.Tensor:
    """[B] MMD^2 through a map."""
    return self.mmd(
      predicted.map_values(through), target.map_values(through), step
    )

  @property
  def has_reach(self) -> bool:
    """Whether the kernel is flat somewhere."""
    return self._loss.has_reach

  def share_beyond(
    self,
    predicted: ReturnDistribution,
    target: ReturnDistribution,
    error: tf.Tensor,
    step: tf.Tensor,
  ) -> tf.Tensor:
    """[] the share of particles that no target pulls, averaged by the error."""
    return self._loss.share_beyond(
      predicted.map_values(self.map), target.map_values(self.map), error, step
    )


class Adversary(auxiliary.Auxiliary):
  """The map, which maximises the MMD."""

  def __init__(self, optimizer: types.Optimizer, loss: MappedMMDLoss):
    """Keeps what the particles minimise.

    Args:
      optimizer: the optimizer of the map.
      loss: the loss of the particles.
    """
    super().__init__(optimizer, name="adversary")
    self._loss = loss
    self.map = loss.map  # for checkpoints

  def weights(self, net: network.Network) -> Sequence[tf.Variable]:
    """The map's slopes."""
    del net
    return [self.map.parameters]

  def loss(self, net: network.Network, batch: auxiliary.Batch) -> tf.Tensor:
    """[B] losses of the map: -MMD^2, summed over both orders of its arguments.

    Args:
      net: not read.
      batch: the batch of the update.

    Returns:
      What the map minimises.
    """
    del net
    predicted, step = batch.predicted.stop_gradient(), batch.step
    # The MMD is symmetric, and has a gradient in its first argument only.
    one = self._loss.seen(predicted, batch.target, step, self.map)
    return -one - self._loss.seen(batch.target, predicted, step, self.map)


class AdversarialMMDQNAgent(base.ReturnDistributionAgent):
  """Particles minimise the MMD, the kernel's map maximises it.

  Head: `heads.particles`.
  """

  def __init__(
    self,
    *args,
    kernel_optimizer: types.Optimizer,
    kernel: Union[kernels.Kernel, bandwidths.KernelRule] = _KERNEL,
    knots: Tuple[float, ...] = (),
    bound: float = 3.0,
    jit_compile: Optional[bool] = None,
    **options,
  ):
    """Makes the agent.

    Args:
      *args: those of the base class.
      kernel_optimizer: the optimizer of the kernel's map.
      kernel: the kernel of what the map gives. A kernel with a tail would be
        largest for the steepest map, whatever the returns.
      knots: the knots of the map; none to learn the bandwidths' common scale
        alone.
      bound: the map's slopes lie within [1 / bound, bound], so bandwidths
        change by a factor of at most bound^2.
      jit_compile: whether XLA compiles the update; what is faster here if None.
      **options: those of the base class.
    """
    loss = MappedMMDLoss(
      mmdqn_agent.mmd_loss(kernel, jit_compile),
      MonotoneMap(knots, bound),
      xla=jit_compile is not False,
    )
    super().__init__(
      *args,
      loss=loss,
      auxiliary=Adversary(kernel_optimizer, loss),
      jit_compile=jit_compile,
      **options,
    )


@dataclasses.dataclass(frozen=True)
class Settings(algorithms.Settings):
  """The kernel and its map."""

  # The map would only grow steeper under a kernel with a tail.
  kernel: str = mmdqn_agent.kernel_setting("gaussian_mixture:1..10")
  kernel_learning_rate: float = settings.setting(
    1e-4,
    "learning rate, of Adam, of the map through which the kernel sees returns",
    above=0,
  )
  knots: str = settings.setting(
    "",
    "returns, in units and joined by commas, where the map through which the"
    " kernel sees returns may bend; none: it only scales the bandwidths",
  )
  bound: float = settings.setting(
    3.0,
    "largest slope of the map through which the kernel sees returns; the"
    " smallest is 1 over it",
    above=1,
  )

  def head(self, run: algorithms.Run) -> heads.MakeHead:
    """N free particles."""
    return heads.particles(run.num_particles)

  def options(self, run: algorithms.Run) -> Dict[str, Any]:
    """The kernel, and how its map learns."""
    if self.kernel.startswith("gaussian_median"):
      raise errors.UserError(
        "adversarial_mmdqn learns the bandwidth, which gaussian_median would"
        " take from what the map gives and so undo; set another agent.kernel"
      )
    return {
      "kernel": kernel_names.parse_rule(self.kernel, run.num_updates),
      "kernel_optimizer": tf.keras.optimizers.Adam(self.kernel_learning_rate),
      "knots": _numbers(self.knots),
      "bound": self.bound,
    }


def _numbers(text: str) -> Tuple[float, ...]:
  try:
    return tuple(float(part) for part in text.split(",") if part.strip())
  except ValueError:
    raise errors.UserError(
      f"agent.knots wants numbers joined by commas, got {text!r}"
    ) from None


ALGORITHM = algorithms.Algorithm(
  summary="the kernel learns to tell prediction and target apart",
  paper=mmdqn_agent.PROPOSED,
  url=mmdqn_agent.ALGORITHM.url,
  agent=AdversarialMMDQNAgent,
  settings=Settings,
)
