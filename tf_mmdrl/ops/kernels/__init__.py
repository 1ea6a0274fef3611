"""Kernels on returns, with their derivatives and what theory says of them."""

from tf_mmdrl.ops.kernels.exp_prod_kernel import ExpProd
from tf_mmdrl.ops.kernels.gaussian_kernel import (
  GaussianMixture,
  gaussian,
  gaussian_mixture,
  geometric_mixture,
  merged,
  smooth_energy,
)
from tf_mmdrl.ops.kernels.kernel import Kernel, Properties
from tf_mmdrl.ops.kernels.laplace_kernel import Laplace
from tf_mmdrl.ops.kernels.multiquadric_kernel import Multiquadric
from tf_mmdrl.ops.kernels.sum_kernel import Sum, weighted_sum
from tf_mmdrl.ops.kernels.unrectified_kernel import Unrectified, power

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
  "power",
  "smooth_energy",
  "unrectified",
  "weighted_sum",
]
