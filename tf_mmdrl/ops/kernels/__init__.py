"""Kernels on returns, with their derivatives and what theory says of them."""

from tf_mmdrl.ops.kernels.gaussian_kernel import (
  ExpProd,
  GaussianMixture,
  Kernel,
  Laplace,
  Multiquadric,
  Properties,
  Sum,
  Unrectified,
  gaussian,
  gaussian_mixture,
  geometric_mixture,
  merged,
  smooth_energy,
  weighted_sum,
)

exp_prod = ExpProd
laplace = Laplace
multiquadric = Multiquadric
unrectified = Unrectified

__all__ = [
  "ExpProd",
  "GaussianMixture",
  "Kernel",
  "Laplace",
  "Multiquadric",
  "Properties",
  "Sum",
  "Unrectified",
  "exp_prod",
  "gaussian",
  "gaussian_mixture",
  "geometric_mixture",
  "laplace",
  "merged",
  "multiquadric",
  "smooth_energy",
  "unrectified",
  "weighted_sum",
]
