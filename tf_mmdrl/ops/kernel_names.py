"""Kernels by name, as the command line and configurations write them.

`gaussian:8`, `gaussian_mixture:8,10,12`, `gaussian_mixture:1..10`,
`gaussian_geometric` (or with other exponents of two than its own, as in
`gaussian_geometric:-8..8`), `smooth_energy:1`, `unrectified:1`, `laplace:2`,
`multiquadric:1`, `exp_prod:3`, and sums of these with coefficients:
`0.5*gaussian:1+unrectified:1`. Alone, rules that make a Gaussian as training
goes on: `gaussian_median` (a bandwidth of 2 x the median of the squared
distances; `gaussian_median:1` for another factor) and `gaussian_annealed:10->1`
(over the run). `package.module:NAME` is a kernel of your own.
"""

from typing import Callable, Dict, Union

import tensorflow as tf

from tf_mmdrl.core import errors, plugins
from tf_mmdrl.ops import bandwidths, kernel_words, kernels

_ONE_NUMBER: Dict[str, Callable[[float], kernels.Kernel]] = {
  "gaussian": kernels.gaussian,
  "unrectified": kernels.unrectified,
  "laplace": kernels.laplace,
  "multiquadric": kernels.multiquadric,
  "exp_prod": kernels.exp_prod,
  "smooth_energy": kernels.smooth_energy,
}


def parse_rule(
  text: str, num_updates: int
) -> Union[kernels.Kernel, bandwidths.KernelRule]:
  """The kernel, or the rule that makes one, that `text` names.

  Args:
    text: a rule, or what `parse` takes.
    num_updates: how many updates the run has, for annealing.

  Returns:
    The kernel or the rule.
  """
  rule = kernel_words.read_rule(text)
  if rule is not None and rule.name == kernel_words.MEDIAN:
    return bandwidths.median(*rule.numbers)
  if rule is not None:
    start, end = rule.numbers
    return bandwidths.annealed(start, end, num_updates)
  kernel = parse(text)
  if not kernel.properties.characteristic:
    raise errors.UserError(
      "training wants a kernel that tells distributions apart (characteristic),"
      f" got {text!r}; for unrectified, alpha in (0, 2)"
    )
  return kernel


def parse(text: str) -> kernels.Kernel:
  """The kernel that `text` names.

  Args:
    text: one term `[coefficient*]name:parameters`, or several joined by `+`.

  Returns:
    The kernel; a `Sum` if there are several terms or a coefficient.
  """
  terms = kernel_words.read(text)
  made = [_kernel(term) for term in terms]
  coefficients = [term.coefficient for term in terms]
  if coefficients == [1.0]:
    return made[0]
  return kernels.weighted_sum(made, coefficients)


def _kernel(term: kernel_words.Term) -> kernels.Kernel:
  if plugins.is_place(term.name):
    kernel = plugins.load("kernel", term.name, kernels.Kernel)
    return _checked(kernel, term.name)
  if term.name == kernel_words.GEOMETRIC:
    return kernels.geometric_mixture(*map(int, term.numbers))
  if term.name == kernel_words.MIXTURE:
    return kernels.gaussian_mixture(term.numbers)
  return _ONE_NUMBER[term.name](*term.numbers)


def _checked(kernel: kernels.Kernel, place: str) -> kernels.Kernel:
  """A kernel of somebody's own, if it gives what a kernel gives."""
  wanted = "the excess and the slope, both of the statistic's shape"
  with tf.Graph().as_default():  # nothing is computed, so no device is taken
    statistic = tf.zeros([2, 3, 5])
    try:
      excess, slope = kernel.excess_and_slope(statistic)
      shapes = [tf.convert_to_tensor(part).shape for part in (excess, slope)]
    except Exception as error:  # whatever somebody's kernel raises
      raise errors.UserError(
        f"the kernel {place!r} must give {wanted}, got"
        f" {type(error).__name__}: {str(error).partition(chr(10))[0]}"
      ) from error
  for shape in shapes:
    if not shape.is_compatible_with(statistic.shape):
      raise errors.UserError(
        f"the kernel {place!r} must give {wanted}, got the shapes"
        f" {shapes[0]} and {shapes[1]} for {statistic.shape}"
      )
  return kernel
