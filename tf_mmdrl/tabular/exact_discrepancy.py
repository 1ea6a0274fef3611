"""Exact discrepancies between weighted particles, in float64.

For measurements of the theory, where a difference of 1e-12 must mean something;
the losses have faster forms in `ops`.
"""

from typing import Tuple

import numpy as np
import tensorflow as tf

from tf_mmdrl.ops import kernels

# Values [..., N] and weights [..., N] that sum to 1 over N.
Particles = Tuple[np.ndarray, np.ndarray]


def mmd_squared(
  p: Particles, q: Particles, kernel: kernels.Kernel
) -> np.ndarray:
  """Squared MMD of two weighted particle distributions.

  As one sum over signed weights, sum_ij w_i w_j k(z_i, z_j) with z the values
  of both and w the weights of p and minus those of q.

  Args:
    p: values and weights, each [..., N].
    q: values and weights, each [..., M].
    kernel: the kernel k.

  Returns:
    [...] squared discrepancies; rounding may leave one just below zero.
  """
  values = np.concatenate([p[0], q[0]], -1).astype(np.float64)
  weights = np.concatenate([p[1], -np.asarray(q[1])], -1).astype(np.float64)
  z = tf.constant(values)
  gram = kernel(z[..., :, None], z[..., None, :]).numpy()
  return np.einsum("...i,...ij,...j->...", weights, gram, weights)


def mmd(p: Particles, q: Particles, kernel: kernels.Kernel) -> np.ndarray:
  """[...] the MMD itself; see `mmd_squared`."""
  return np.sqrt(np.maximum(mmd_squared(p, q, kernel), 0.0))
