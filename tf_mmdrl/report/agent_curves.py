"""Learning curves of agents: game by game, over all games, by a setting."""

from typing import Any, Callable, Dict, List, NamedTuple, Sequence, Tuple

import numpy as np

from tf_mmdrl.report import (
  aggregate_tables,
  intervals,
  results,
  scales,
  score_statistics,
)
from tf_mmdrl.report.figures import Curve
from tf_mmdrl.report.results import Run
from tf_mmdrl.report.scales import Scale

_REPETITIONS = 1_000  # for each point of a curve


def by_game(runs: Sequence[Run], smooth: int) -> Dict[str, List[Curve]]:
  """Each game's curves: the mean over seeds of every agent.

  Args:
    runs: named apart.
    smooth: evaluations in the window of the moving average.

  Returns:
    The curves, by game; none where seeds have no step in common.
  """
  found: Dict[str, List[Curve]] = {}
  for game, of_game in results.grouped(runs, lambda run: run.game).items():
    by_agent = results.grouped(of_game, lambda run: run.agent)
    curves = [
      _curve(agent, *results.aligned(seeds), smooth)
      for agent, seeds in by_agent.items()
    ]
    found[game] = [curve for curve in curves if curve.steps.size]
  return {game: curves for game, curves in found.items() if curves}


def over_games(
  runs: Sequence[Run], scale: Scale, smooth: int, statistic: str
) -> List[Curve]:
  """Each agent's curve over the games of a scale, in percent.

  Args:
    runs: named apart; every agent has all the games.
    scale: the scale.
    smooth: how many evaluations a point is the mean of.
    statistic: one of `aggregate_tables.STATISTICS`.

  Returns:
    A curve for each agent whose runs have steps in common.
  """
  curves = [
    normalized_curve(
      agent, mine, scale, smooth, aggregate_tables.STATISTICS[statistic]
    )
    for agent, mine in results.grouped(runs, lambda run: run.agent).items()
  ]
  return [curve for curve in curves if curve.steps.size]


def normalized_curve(
  label: str,
  runs: Sequence[Run],
  scale: Scale,
  smooth: int,
  statistic: Callable[[np.ndarray], np.ndarray],
) -> Curve:
  """One agent's curve over games, in percent of what is 1 on the scale."""
  steps, cube = _cube(runs, scale)
  found = intervals.estimate(
    statistic, score_statistics.smooth(cube, smooth), repetitions=_REPETITIONS
  )
  return Curve(label, steps, found.percent())


class Study(NamedTuple):
  """Runs of one algorithm that differ in one setting.

  Attributes:
    agent: the algorithm.
    field: the setting.
    fixed: the other settings that differ between runs, with their values here.
    groups: the runs with each value.
  """

  agent: str
  field: str
  fixed: str
  groups: Dict[str, List[Run]]


def studies(runs: Sequence[Run]) -> List[Study]:
  """The settings whose effect runs show, all others being equal.

  Args:
    runs: named by their algorithm.

  Returns:
    A study for each setting and each choice of the others that has at least two
    of its values.
  """
  found = []
  for agent, fields in results.varied(runs).items():
    mine = [run for run in runs if run.agent == agent]
    for field in fields:
      others = [name for name in fields if name != field]
      for fixed, group in results.grouped(mine, _values(others)).items():
        by_value = results.grouped(group, _values([field]))
        if len(by_value) > 1:
          pairs = (f"{_last(n)}={_word(v)}" for n, v in zip(others, fixed))
          ordered = sorted(by_value, key=lambda value: _order(value[0]))
          groups = {_word(value[0]): by_value[value] for value in ordered}
          found.append(Study(agent, field, ", ".join(pairs), groups))
  return found


def study_curves(
  study: Study, smooth: int
) -> Dict[str, Tuple[List[Curve], List[intervals.Estimate]]]:
  """What a study shows, by what is measured.

  Args:
    study: the runs.
    smooth: how many evaluations a point is the mean of.

  Returns:
    For the mean over the games with a reference, and for each other game that
    all values were tried on: the curve of each value, and the mean of its
    seeds' best evaluations.
  """
  played = [{run.game for run in group} for group in study.groups.values()]
  games = sorted(set.intersection(*played))
  known = [game for game in games if results.has_reference(game)]
  found = {}
  if known:
    scale = scales.human(known)
    curves = [
      normalized_curve(value, group, scale, smooth, score_statistics.mean)
      for value, group in study.groups.items()
    ]
    reached = [
      intervals.estimate(score_statistics.mean, scale.matrix(agent)).percent()
      for agent in map(_agent, study.groups.values())
    ]
    found["human-normalised score, %"] = (curves, reached)
  for game in (game for game in games if game not in known):
    curves, reached = [], []
    for value, group in study.groups.items():
      mine = [run for run in group if run.game == game]
      curves.append(_curve(value, *results.aligned(mine), smooth))
      best = _agent(mine).measured[game].values
      reached.append(
        intervals.estimate(score_statistics.mean, best[:, np.newaxis])
      )
    found[f"score in {game}"] = (curves, reached)
  return found


def _curve(
  label: str, steps: np.ndarray, seeds: np.ndarray, smooth: int
) -> Curve:
  """The mean of [S, F] scores."""
  matrix = score_statistics.smooth(seeds, smooth)[:, np.newaxis]
  found = intervals.estimate(
    score_statistics.mean, matrix, repetitions=_REPETITIONS
  )
  return Curve(label, steps, found)


def _cube(runs: Sequence[Run], scale: Scale) -> Tuple[np.ndarray, np.ndarray]:
  """[F] steps and [S, G, F] scores of a scale."""
  games = scale.games
  by_game = results.grouped(runs, lambda run: run.game)
  count = min(len(by_game[game]) for game in games)
  chosen = [run for game in games for run in by_game[game][:count]]
  steps, raw = results.aligned(chosen)
  shares = [
    scale.references[run.game].normalized(curve)
    for run, curve in zip(chosen, raw)
  ]
  cube = np.stack(shares).reshape(len(games), count, len(steps))
  return steps, cube.transpose(1, 0, 2)


def _agent(runs: Sequence[Run]) -> results.Agent:
  (agent,) = results.agents(runs)
  return agent


def _values(names: Sequence[str]) -> Callable[[Run], tuple]:
  return lambda run: tuple(run.settings.get(name) for name in names)


def _order(value: Any) -> Tuple[int, float, str]:
  """Numbers by size, then words."""
  if isinstance(value, (int, float)):
    return 0, value, ""
  return 1, 0.0, str(value)


def _word(value: Any) -> str:
  return "not recorded" if value is None else str(value)


def _last(name: str) -> str:
  return name.rpartition(".")[2]
