"""Theorem 3: how fast particles that minimise the MMD approach their target.

The target is the standard normal, whose mean embedding is known in closed form
for both kernels here, so the error of n particles is exact.
"""

import dataclasses
import math
from typing import Callable, Dict

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from tf_mmdrl.ops import kernels
from tf_mmdrl.tabular import claims

_SIZES = (2, 4, 8, 16, 32, 64)
_REPEATS = 400  # i.i.d. samples of each size
_GRID = np.linspace(-5, 5, 4001)  # where herding looks for its next point


@dataclasses.dataclass(frozen=True)
class Embedding:
  """A kernel and what it makes of the standard normal Y.

  Attributes:
    kernel: the kernel k.
    potential: x [...] -> E k(x, Y) [...], float64.
    energy: E k(Y, Y') of two independent ones.
  """

  kernel: kernels.Kernel
  potential: Callable[[tf.Tensor], tf.Tensor]
  energy: float

  def mmd_squared(self, x: tf.Tensor) -> tf.Tensor:
    """[...] squared MMD between the normal and the particles x [..., n]."""
    gram = self.kernel(x[..., :, None], x[..., None, :])
    own = tf.reduce_mean(gram, [-1, -2])
    return own - 2 * tf.reduce_mean(self.potential(x), -1) + self.energy

  def iid_mmd(self, n: int) -> float:
    """The root mean square MMD of n i.i.d. samples, exactly."""
    return math.sqrt((self.kernel.at_zero - self.energy) / n)


def gaussian_embedding(h: float = 1.0) -> Embedding:
  """The mean embedding of the standard normal by exp(-d2 / h)."""
  return Embedding(
    kernels.gaussian(h),
    lambda x: math.sqrt(h / (h + 2)) * tf.exp(-(x**2) / (h + 2)),
    math.sqrt(h / (h + 4)),
  )


def energy_embedding() -> Embedding:
  """The mean embedding of the standard normal by -|x - y|."""

  def potential(x):
    density = math.sqrt(2 / math.pi) * tf.exp(-(x**2) / 2)
    return -(x * tf.math.erf(x / math.sqrt(2)) + density)

  return Embedding(kernels.unrectified(1.0), potential, -2 / math.sqrt(math.pi))


def optimiser(embedding: Embedding) -> Callable[[int], np.ndarray]:
  """Finds the n particles of least MMD, by L-BFGS from the quantiles.

  Args:
    embedding: the embedding of the target.

  Returns:
    n -> [n] particles; compiled once for all n.
  """

  @tf.function(input_signature=[tf.TensorSpec([None], tf.float64)])
  def search(start):
    return tfp.optimizer.lbfgs_minimize(
      lambda x: tfp.math.value_and_gradient(embedding.mmd_squared, x),
      initial_position=start,
      tolerance=1e-10,
      max_iterations=500,
    ).position

  def optimise(n: int) -> np.ndarray:
    levels = (np.arange(n) + 0.5) / n
    quantiles = math.sqrt(2) * tf.math.erfinv(tf.constant(2 * levels - 1))
    return search(quantiles).numpy()

  return optimise


def herding(embedding: Embedding, n: int) -> np.ndarray:
  """[n] points, each the best to add to those before it."""
  grid = tf.constant(_GRID)
  pull = embedding.potential(grid).numpy()
  push = np.zeros_like(pull)
  points = []
  for count in range(1, n + 1):
    # Adding x leaves 2 (sum_j k(x, x_j) / count - E k(x, Y)) + what is fixed.
    point = _GRID[np.argmax(pull - push / count)]
    points.append(point)
    push += embedding.kernel(grid, tf.constant(point, tf.float64)).numpy()
  return np.array(points)


def slope(sizes: np.ndarray, errors: np.ndarray) -> float:
  """The exponent of n in the error: a line through the logarithms."""
  return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def convergence() -> claims.Result:
  """Theorem 3: errors against n, and their fitted slopes."""
  sizes = np.array(_SIZES)
  rows, curves = [], {}
  embeddings = {
    "gaussian:1": gaussian_embedding(),
    "unrectified:1": energy_embedding(),
  }
  for name, embedding in embeddings.items():
    errors = _errors(embedding)
    bound = np.array([embedding.iid_mmd(n) for n in _SIZES])
    worst = float((errors["optimised"] / bound).max())
    rows.append(
      claims.Claim(
        "Theorem 3: optimised particles beat i.i.d. ones at every n",
        f"{name}, standard normal; worst ratio of errors, n = 2 ... 64",
        worst,
        1.0,
        worst <= 1,
      )
    )
    for way, values in errors.items():
      fitted = slope(sizes, values)
      iid = way == "i.i.d."
      rows.append(
        claims.Claim(
          "Theorem 3: error ~ n^slope",
          f"{way}, {name}, standard normal; slope for n = 2 ... 64",
          fitted,
          -0.5,
          abs(fitted + 0.5) < 0.05 if iid else fitted < -0.5,
        )
      )
    curves[name] = {
      f"{way}, slope {slope(sizes, values):.2f}": (sizes, values)
      for way, values in errors.items()
    }
  return claims.Result(rows, curves)


def _errors(embedding: Embedding) -> Dict[str, np.ndarray]:
  """The MMD to the target for each size, by way of choosing the points."""
  generator = np.random.default_rng(0)
  herd = herding(embedding, max(_SIZES))
  ways: Dict[str, Callable[[int], np.ndarray]] = {
    "i.i.d.": lambda n: generator.normal(size=[_REPEATS, n]),
    "herding": lambda n: herd[:n],
    "optimised": optimiser(embedding),
  }
  return {
    way: np.array([_root_mean_mmd(embedding, points(n)) for n in _SIZES])
    for way, points in ways.items()
  }


def _root_mean_mmd(embedding: Embedding, points: np.ndarray) -> float:
  squared = embedding.mmd_squared(tf.constant(points, tf.float64))
  return math.sqrt(max(float(tf.reduce_mean(squared)), 1e-32))
