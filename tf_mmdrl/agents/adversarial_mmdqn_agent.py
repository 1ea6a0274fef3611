"""MMDQN with a learned kernel, which the paper proposes in its discussion.

The kernel looks at returns through a monotone map that is trained to tell
prediction and target apart, while the particles are trained to match. The map
is piecewise linear with slopes within bounds, so that it stays one to one (the
kernel stays characteristic) and cannot blow up.
"""

import math
from typing import Optional, Tuple, Union

import numpy as np
import tensorflow as tf
from tf_agents.typing import types

from tf_mmdrl.agents import base, compiling, transitions
from tf_mmdrl.agents.mmdqn_agent import mmd_loss
from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.ops import bandwidths, kernels

_KERNEL = kernels.gaussian_mixture()


class MonotoneMap(tf.Module):
  """x -> f(x), increasing, f(0) = 0, with slopes in [1 / bound, bound].

  With no knots, f(x) = slope x: a bandwidth h becomes h / slope^2.
  """

  def __init__(self, knots, bound: float):
    """Starts as the identity.

    Args:
      knots: where the slope may change, increasing; none for one slope.
      bound: of the slopes.
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
      kernel_optimizer: of the kernel's map.
      kernel: the kernel of what the map gives. A kernel with a tail would be
        largest for the steepest map, whatever the returns.
      knots: of the map; none to learn the bandwidths' common scale alone.
      bound: of the map's slopes: bandwidths within a factor bound^2.
      jit_compile: whether XLA compiles the update; what is faster here if None.
      **options: those of the base class.
    """
    self._mmd_loss = mmd_loss(kernel, jit_compile)
    # Compiled by itself, because the map's loss stands outside what is.
    self._mmd = tf.function(
      self._mmd_loss.__call__,
      autograph=False,
      jit_compile=compiling.resolve(jit_compile).pieces,
    )
    self._map = MonotoneMap(knots, bound)
    self._kernel_optimizer = kernel_optimizer
    super().__init__(*args, jit_compile=jit_compile, **options)

  def _loss_per_example(
    self, predicted: ReturnDistribution, target: ReturnDistribution
  ) -> tf.Tensor:
    # The map's own gradient is stopped, that through it to the particles kept.
    frozen = tf.stop_gradient(self._map.slopes())
    return self._seen(predicted, target, lambda x: self._map(x, slopes=frozen))

  @property
  def _has_a_reach(self) -> bool:
    return math.isfinite(self._mmd_loss.reach)

  def _beyond_reach(
    self, predicted: ReturnDistribution, target: ReturnDistribution
  ) -> tf.Tensor:
    return self._mmd_loss.share_beyond(
      predicted.map_values(self._map), target.map_values(self._map)
    )

  def _auxiliary_loss(
    self,
    data: transitions.Transition,
    predicted: ReturnDistribution,
    target: ReturnDistribution,
  ) -> tf.Tensor:
    """-MMD^2 as a function of the map (twice its value, its gradient once)."""
    del data
    predicted = predicted.stop_gradient()
    # The MMD is symmetric, and has a gradient in its first argument only.
    return -self._seen(predicted, target, self._map) - self._seen(
      target, predicted, self._map
    )

  def _seen(self, predicted, target, through) -> tf.Tensor:
    return self._mmd(
      predicted.map_values(through),
      target.map_values(through),
      self.train_step_counter,
    )

  def _groups(self):
    return [
      *super()._groups(),
      base.Group(self._kernel_optimizer, [self._map.parameters]),
    ]
