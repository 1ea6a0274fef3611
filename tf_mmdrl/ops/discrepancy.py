"""What every way to compute an MMD returns."""

from typing import NamedTuple, Optional

import tensorflow as tf


class Discrepancy(NamedTuple):
  """A squared MMD with its derivatives, computed in one pass.

  Attributes:
    value: [B] squared discrepancies.
    d_particles: [B, N] or [B, N, D] derivatives in the particles.
    d_weights: [B, N] derivatives in their weights (up to a constant, which
      cancels for weights that sum to 1), or None if not asked for.
  """

  value: tf.Tensor
  d_particles: tf.Tensor
  d_weights: Optional[tf.Tensor]
