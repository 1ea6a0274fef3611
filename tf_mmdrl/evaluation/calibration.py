"""Do the returns that came look like draws of the distributions predicted?

Pure functions of NumPy arrays. G is the return that was earned from a state on,
and the forecast a distribution of N weighted particles.
"""

from typing import Dict, NamedTuple

import numpy as np

LEVELS = (0.5, 0.9)  # of central intervals
BINS = 10  # of the histogram of PIT values
_REPETITIONS = 1_000


class Forecasts(NamedTuple):
  """Predictions beside what happened, state by state.

  Attributes:
    particles: [S, N] predicted returns of the action taken.
    weights: [S, N] their probabilities.
    returns: [S] G, earned from the state on.
    games: [S] which game each state is of; states of a game are no independent
      evidence.
  """

  particles: np.ndarray
  weights: np.ndarray
  returns: np.ndarray
  games: np.ndarray


class Interval(NamedTuple):
  """A number and its 95 % interval; the interval is empty with one game."""

  point: float
  low: float
  high: float


class Calibration(NamedTuple):
  """What forecasts are worth.

  Attributes:
    states: S.
    games: how many games they are of.
    histogram: [BINS] shares of the PIT values; 1 / BINS each if calibrated.
    coverage: level -> share of the returns within the central interval that
      has that probability.
    crps: continuous ranked probability score, in rewards; 0 is perfect.
    skill: 1 - crps / that of the returns of all states as the forecast of each;
      1 is perfect, 0 says nothing of the state.
    energy_distance: between the mean of all predicted distributions and the
      distribution of all returns, 2 x the integral of the squared difference of
      their distribution functions.
    bias: mean prediction less mean return.
  """

  states: int
  games: int
  histogram: np.ndarray
  coverage: Dict[float, Interval]
  crps: Interval
  skill: Interval
  energy_distance: float
  bias: Interval


def measure(forecasts: Forecasts, seed: int = 0) -> Calibration:
  """Measures forecasts; intervals are a bootstrap over whole games.

  Args:
    forecasts: at least one.
    seed: of what is random: ties, and the draws of the bootstrap.

  Returns:
    The measures.
  """
  generator = np.random.default_rng(seed)
  pit = pit_values(forecasts, generator)
  means = np.sum(forecasts.weights * forecasts.particles, axis=1)
  numbers = {
    "crps": crps(forecasts),
    "blind": _blind_crps(forecasts.returns),
    "bias": means - forecasts.returns,
  }
  for level in LEVELS:
    numbers[f"{level}"] = np.abs(pit - 0.5) <= level / 2
  drawn = _by_game(numbers, forecasts.games, generator)
  skill = 1 - np.divide(
    drawn["crps"],
    drawn["blind"],
    out=np.full_like(drawn["blind"], np.nan),
    where=drawn["blind"] > 0,
  )
  return Calibration(
    states=len(pit),
    games=len(np.unique(forecasts.games)),
    histogram=np.histogram(pit, BINS, (0, 1))[0] / len(pit),
    coverage={level: _interval(drawn[f"{level}"]) for level in LEVELS},
    crps=_interval(drawn["crps"]),
    skill=_interval(skill),
    energy_distance=energy_distance(forecasts),
    bias=_interval(drawn["bias"]),
  )


def pit_values(
  forecasts: Forecasts, generator: np.random.Generator
) -> np.ndarray:
  """[S] probability integral transforms, uniform on [0, 1] if calibrated.

  The rank of G among N particles, with ties in random order, is uniform on
  0 ... N if G is one more draw of the distribution that they are drawn from.
  So the rank and a random part of a step are taken as a share of N + 1.

  Args:
    forecasts: of S states.
    generator: of the random parts.

  Returns:
    The values.
  """
  num = forecasts.particles.shape[1]
  returns = forecasts.returns[:, np.newaxis]
  below = np.sum(forecasts.weights * (forecasts.particles < returns), axis=1)
  tied = np.sum(forecasts.weights * (forecasts.particles == returns), axis=1)
  part = generator.uniform(size=len(below)) * (1 + num * tied)
  return (num * below + part) / (num + 1)


def crps(forecasts: Forecasts) -> np.ndarray:
  """[S] E|X - G| - E|X - X'| / 2, for X and X' of a forecast.

  It is the integral of (F(x) - 1[G <= x])^2 over x.
  """
  values = np.concatenate(
    [forecasts.particles, forecasts.returns[:, np.newaxis]], axis=1
  )
  signed = np.concatenate(
    [forecasts.weights, -np.ones([len(values), 1])], axis=1
  )
  return _squared_differences(values, signed)


def energy_distance(forecasts: Forecasts) -> float:
  """Between all predictions together and all returns together."""
  count = len(forecasts.returns)
  values = np.concatenate([forecasts.particles.ravel(), forecasts.returns])
  signed = np.concatenate(
    [forecasts.weights.ravel() / count, np.full([count], -1 / count)]
  )
  return 2 * float(_squared_differences(values, signed))


def _squared_differences(values: np.ndarray, signed: np.ndarray) -> np.ndarray:
  """[...] integrals of the squared difference of two distribution functions.

  Args:
    values: [..., K] points of both.
    signed: [..., K] probabilities of the one, less those of the other.

  Returns:
    The integrals.
  """
  order = np.argsort(values, axis=-1, kind="stable")
  values = np.take_along_axis(values, order, axis=-1)
  apart = np.cumsum(np.take_along_axis(signed, order, axis=-1), axis=-1)
  return np.sum(apart[..., :-1] ** 2 * np.diff(values, axis=-1), axis=-1)


def _blind_crps(returns: np.ndarray) -> np.ndarray:
  """[S] scores of the distribution of all returns as each state's forecast."""
  ordered = np.sort(returns)
  count = len(returns)
  ranks = np.arange(count)
  # Sums of |G - G'| over G', from sums of those below and above.
  below = np.concatenate([[0.0], np.cumsum(ordered)])
  place = np.searchsorted(ordered, returns)
  total = below[-1]
  to_all = returns * (2 * place - count) + total - 2 * below[place]
  spread = 2 * np.sum((2 * ranks - count + 1) * ordered) / count**2
  return to_all / count - spread / 2


def _by_game(
  numbers: Dict[str, np.ndarray],
  games: np.ndarray,
  generator: np.random.Generator,
) -> Dict[str, np.ndarray]:
  """Means over states, and as many means with games drawn anew.

  Args:
    numbers: [S] by name.
    games: [S].
    generator: of the draws.

  Returns:
    [1 + repetitions] by name, the first of the games as they were.
  """
  _, place = np.unique(games, return_inverse=True)
  count = int(place.max()) + 1
  again = generator.multinomial(count, np.full(count, 1 / count), _REPETITIONS)
  counts = np.concatenate([np.ones([1, count]), again])
  states = counts @ np.bincount(place)
  return {
    name: counts @ np.bincount(place, of_states) / states
    for name, of_states in numbers.items()
  }


def _interval(drawn: np.ndarray) -> Interval:
  low, high = np.quantile(drawn[1:], [0.025, 0.975])
  return Interval(float(drawn[0]), float(low), float(high))
