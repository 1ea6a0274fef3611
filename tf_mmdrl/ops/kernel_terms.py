"""A kernel as a sum of kernels that are not sums."""

from typing import List, Optional, Tuple

import tensorflow as tf

from tf_mmdrl.ops import kernels

Term = Tuple[float, kernels.Kernel]


def terms(
  kernel: kernels.Kernel, *, by_width: Optional[float] = None
) -> List[Term]:
  """The terms, with all Gaussians in one, or in few.

  Args:
    kernel: the kernel.
    by_width: if given, the most by which bandwidths of one term differ. In the
      frequency domain narrow Gaussians want many frequencies, and wide ones
      want them close to each other: apart both need fewer.

  Returns:
    Coefficients and kernels.
  """
  leaves = _leaves(kernel)
  gaussian = [leaf for leaf in leaves if _is_gaussian(leaf[1])]
  if not gaussian:
    return leaves
  coefficients, mixtures = zip(*gaussian)
  merged = kernels.merged(mixtures, coefficients)
  groups = [merged] if by_width is None else merged.by_width(by_width)
  others = [leaf for leaf in leaves if not _is_gaussian(leaf[1])]
  return [*((1.0, group) for group in groups), *others]


def _is_gaussian(kernel: kernels.Kernel) -> bool:
  return isinstance(kernel, kernels.GaussianMixture) and not tf.is_tensor(
    kernel.bandwidths
  )


def _leaves(kernel: kernels.Kernel) -> List[Term]:
  if not isinstance(kernel, kernels.Sum):
    return [(1.0, kernel)]
  return [
    (coefficient * inner, leaf)
    for coefficient, term in zip(kernel.coefficients, kernel.terms)
    if coefficient
    for inner, leaf in _leaves(term)
  ]
