"""Joint particles beside Monte Carlo returns: numbers, a table and a picture.

`mmdrl calibrate` measures, and leaves what it found with the run; reports read
it there.
"""

from typing import Any, Dict, List, NamedTuple, Sequence

import numpy as np

from tf_mmdrl.core import plotting, run_files, whole_files
from tf_mmdrl.report import joint_figures
from tf_mmdrl.report.tables import Table

# Particles of more first states than this are thinned out; their picture would
# be no other.
_KEPT = 2000


class JointForecast(NamedTuple):
  """One action's prediction at first states, and what came of it.

  Attributes:
    particles: [S, D] of all first states together.
    weights: [S] their probabilities.
    returns: [K, D] Monte Carlo returns of games that began with the action.
  """

  particles: np.ndarray
  weights: np.ndarray
  returns: np.ndarray

  def thinned(self) -> "JointForecast":
    """With at most 2,000 particles, evenly chosen."""
    every = -(-len(self.particles) // _KEPT)
    weights = self.weights[::every]
    return self._replace(
      particles=self.particles[::every], weights=weights / weights.sum()
    )


class Numbers(NamedTuple):
  """What particles say, or what returns came to.

  Attributes:
    correlations: of each pair (i, j) with i < j, in order; 0 where one of the
      two does not vary.
    probability: that all limits hold.
  """

  correlations: List[float]
  probability: float


class Row(NamedTuple):
  """A run, and what its policy predicts of first states.

  Attributes:
    identity: environment, agent and seed of the run.
    step: of the run, where the policy was exported.
    names: of the actions.
    limits: [D] that probabilities are asked for.
    forecasts: of every action.
  """

  identity: run_files.Identity
  step: int
  names: Sequence[str]
  limits: np.ndarray
  forecasts: Sequence[JointForecast]


def default_limits(forecasts: Sequence[JointForecast]) -> np.ndarray:
  """[D] limits to ask for, where the utility has none.

  About a standard deviation below the mean of all returns that came, and in
  the middle between two values that they take: of a limit on such a value half
  the particles near it would fall short. A tenth below the value if there is
  but one.

  Args:
    forecasts: of every action.

  Returns:
    The limits.
  """
  together = np.concatenate([one.returns for one in forecasts])
  return np.array([_limit(returns) for returns in together.T])


def _limit(returns: np.ndarray) -> float:
  values = np.sort(returns)
  size = np.abs(values).max()
  # Sums of the same rewards may differ by rounding.
  apart = np.diff(values) > 1e-6 * size
  if not apart.any():
    return values[0] - 0.1 * (size or 1.0)
  gaps = np.stack([values[:-1][apart], values[1:][apart]], axis=1)
  wanted = values.mean() - values.std()
  # The first gap that ends above what is wanted.
  above = gaps[:, 1] > wanted + 1e-6 * size
  return gaps[np.argmax(above)].mean()


def numbers(
  vectors: np.ndarray, weights: np.ndarray, limits: np.ndarray
) -> Numbers:
  """Numbers of weighted vectors.

  Args:
    vectors: [S, D], at least one.
    weights: [S], summing to 1.
    limits: [D].

  Returns:
    The numbers.
  """
  pairs = joint_figures.pairs(vectors.shape[1])
  found = [joint_figures.correlation(vectors, i, j, weights) for i, j in pairs]
  holds = (vectors >= limits).all(axis=1)
  return Numbers(found, float(weights @ holds))


def write(row: Row, files: run_files.RunFiles) -> None:
  """Leaves a row with its run."""
  content = {
    "step": row.step,
    "names": list(row.names),
    "limits": [_plain(limit) for limit in row.limits],
    "forecasts": [
      {name: part.tolist() for name, part in one._asdict().items()}
      for one in row.forecasts
    ],
  }
  whole_files.write_json(files.joint_returns, content)


def read(files: run_files.RunFiles) -> List[Row]:
  """What was left with a run; nothing if nothing was."""
  if not files.joint_returns.exists():
    return []
  content = whole_files.read_json(files.joint_returns)
  limits = np.array([float(limit) for limit in content["limits"]])
  forecasts = [
    JointForecast(
      np.reshape(one["particles"], [-1, len(limits)]),
      np.array(one["weights"]),
      np.reshape(one["returns"], [-1, len(limits)]),
    )
    for one in content["forecasts"]
  ]
  names = content["names"]
  return [Row(files.identity(), content["step"], names, limits, forecasts)]


def table(rows: Sequence[Row]) -> Table:
  """A line for each action and pair of returns."""
  headings = [
    *("Agent", "Game", "Seed", "Step", "Action", "Games", "Pair"),
    *("Correlation", "Played", "P(limits)", "Came true", "Limits"),
  ]
  lines: List[List[Any]] = []
  for row in rows:
    for name, one in zip(row.names, row.forecasts):
      lines += [[*_who(row), name, *cells] for cells in _cells(row, one)]
  notes = [
    "Correlation and P(limits) are what the particles of the action say at the"
    " start of games; Played and Came true are of the games that began with the"
    " action and were then played by the policy. P(limits): the probability"
    " that every return is at least its limit. Returns are discounted."
  ]
  if any(not len(one.returns) for row in rows for one in row.forecasts):
    notes.append(
      "0 games: all that began with the action were cut off"
      " (environment.max_episode_steps) while the rest might still count 1 % or"
      " more, so no return of theirs is known."
    )
  columns = [
    *("agent", "game", "seed", "step", "action", "games", "pair"),
    *("correlation", "correlation_played", "probability"),
    *("probability_played", "limits"),
  ]
  title = "Joint particles beside Monte Carlo returns"
  return Table("joint_returns", title, columns, headings, lines, notes, 3)


def draw(row: Row) -> Any:
  """Scatter plots of each action's particles over what was played.

  Only within `plotting.style`.
  """
  thinned = [one.thinned() for one in row.forecasts]
  return joint_figures.draw(
    [one.particles for one in thinned],
    row.names,
    [one.returns for one in row.forecasts],
    weights=[one.weights for one in thinned],
  )


def picture(row: Row) -> bytes:
  """What `draw` draws, as a PNG."""
  with plotting.style():
    return plotting.to_png(draw(row))


def title(row: Row) -> str:
  """Names the run of a row."""
  environment, agent, seed = row.identity
  return f"{agent}, {environment}, seed {seed}, step {row.step:,}"


def _who(row: Row) -> List[Any]:
  environment, agent, seed = row.identity
  return [agent, environment, str(seed), row.step]


def _cells(row: Row, one: JointForecast) -> List[List[Any]]:
  said = numbers(one.particles, one.weights, row.limits)
  count = len(one.returns)
  came: Dict[str, Any] = {"correlations": None, "probability": None}
  if count:
    even = np.full([count], 1 / count)
    came = numbers(one.returns, even, row.limits)._asdict()
  limits = ", ".join(f"{limit:.4g}" for limit in row.limits)
  return [
    [
      count,
      f"{i}, {j}",
      said.correlations[index],
      came["correlations"] and came["correlations"][index],
      said.probability,
      came["probability"],
      limits,
    ]
    for index, (i, j) in enumerate(joint_figures.pairs(len(row.limits)))
  ]


def _plain(limit: float) -> Any:
  """JSON has no infinity."""
  return float(limit) if np.isfinite(limit) else str(float(limit))
