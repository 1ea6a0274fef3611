"""What a reader should know about a report, in sentences."""

from typing import List, Sequence

import numpy as np

from tf_mmdrl.report import results
from tf_mmdrl.report.aggregate_tables import Aggregate
from tf_mmdrl.report.results import Run
from tf_mmdrl.report.scales import Scale

_PAPER_STEPS = 50_000_000
_FEW_SEEDS = 5


def of_published(aggregates: Sequence[Aggregate]) -> List[str]:
  """On the paper's table; all figures are computed from it."""
  ours = {item.agent.name: _percents(item) for item in aggregates}
  mmdqn, qrdqn = ours["MMDQN"], ours["QR-DQN-1"]
  others = "; ".join(
    f"{name} {mean:,.0f} %, {without:,.0f} % without VideoPinball"
    for name, (mean, without, _) in ours.items()
    if name != "MMDQN"
  )
  return [
    f"MMDQN's mean of {mmdqn[0]:,.0f} % is {mmdqn[1]:,.0f} % without one game,"
    " VideoPinball, where human play is hardly better than random play. The"
    " median and the interquartile mean (IQM) do not hang on single games.",
    f"By IQM, MMDQN ({mmdqn[2]:,.1f} %) and QR-DQN-1 ({qrdqn[2]:,.1f} %) are"
    " level.",
    "Normalised with the same human and random columns, the other agents' means"
    f" differ from the paper's Table 1: {others}. Table 1 took them from"
    " elsewhere; see the comparison below.",
    _on_dqn(aggregates),
    "Scores are each seed's best evaluation in 200M frames; MMDQN's are means"
    " of 3 seeds. One number for each game gives no intervals and no curves.",
    "The numbers are the paper's own; its errata stand in a table at the end.",
  ]


def _on_dqn(aggregates: Sequence[Aggregate]) -> str:
  """How MMDQN and DQN compare, game by game."""
  agents = {item.agent.name: item.agent.measured for item in aggregates}
  mine, theirs = agents["MMDQN"], agents["DQN"]
  gains = {game: mine[game].values[0] - theirs[game].values[0] for game in mine}
  level = [game for game, gain in gains.items() if gain == 0]
  above = sum(gain > 0 for gain in gains.values())
  return (
    f"MMDQN is at or above DQN in {above + len(level)} of {len(gains)} games"
    f" and strictly above in {above}: {', '.join(level)} is a tie."
  )


def of_runs(runs: Sequence[Run], scale: Scale, last: int) -> List[str]:
  """On runs of one's own.

  Args:
    runs: named apart.
    scale: the scale of figures over all games.
    last: as `results.agents` takes it.
  """
  return [
    _on_score(last),
    *_on_seeds(runs),
    *_on_games(runs, scale),
    *_on_paper(runs),
    *_on_unfinished(runs),
    "Evaluations of mmdrl's runs count whole games and leave none out for being"
    " long: every environment plays an equal number, or every game that began"
    " before its share of steps was through. The counts stand in the tables.",
  ]


def score_in_words(last: int) -> str:
  """What a seed's score is."""
  if last == 1:
    return "a seed's score is its last evaluation"
  if last:
    return f"a seed's score is the mean of its last {last} evaluations"
  return "a seed's score is its best evaluation"


def _on_score(last: int) -> str:
  if last:
    return f"In tables {score_in_words(last)}."
  return (
    "In tables a seed's score is its best evaluation, as in the paper. The best"
    " of many noisy evaluations flatters every agent; --last K takes the mean"
    " of the last K."
  )


def _on_seeds(runs: Sequence[Run]) -> List[str]:
  groups = results.grouped(runs, lambda run: (run.agent, run.game))
  counts = sorted({len(group) for group in groups.values()})
  told = []
  if counts[0] == 1:
    told.append("Where there is one seed there is no interval.")
  if 1 < counts[-1] < _FEW_SEEDS:
    told.append(
      f"Intervals of {counts[-1]} seeds are too narrow: a bootstrap of few"
      " values cannot show how much others would differ."
    )
  if len(counts) > 1:
    told.append(
      f"Agents have {counts[0]} to {counts[-1]} seeds in a game; figures over"
      " all games use as many as every game of the agent has."
    )
  return told


def _on_games(runs: Sequence[Run], scale: Scale) -> List[str]:
  played = sorted({run.game for run in runs})
  unknown = [game for game in played if not results.has_reference(game)]
  raw = [game for game in unknown if game not in scale.games]
  missing = [g for g in played if g not in unknown and g not in scale.games]
  told = []
  if len(raw) < len(unknown):
    told.append(
      "No human scores are known for these games. In figures over all games 0"
      f" is random play and 1 is the mean of {scale.one}."
    )
  if raw:
    told.append(f"No scale is known for {', '.join(raw)}: raw scores only.")
  if missing:
    told.append(
      f"Not every agent has played {', '.join(missing)}; figures over all games"
      " leave them out."
    )
  return told


def _on_paper(runs: Sequence[Run]) -> List[str]:
  known = [run for run in runs if results.has_reference(run.game)]
  if not known:
    return []
  told = []
  longest = int(max(run.steps[-1] for run in known))
  if longest != _PAPER_STEPS:
    told.append(
      "The paper's scores are after 50M agent steps (200M frames); these runs"
      f" have up to {longest:,}."
    )
  if any(run.settings.get("environment.protocol") == "sticky" for run in known):
    told.append(
      "Some runs have sticky actions; the paper's scores are without them."
    )
  return told


def _on_unfinished(runs: Sequence[Run]) -> List[str]:
  """Curves end where the shortest of their runs does."""
  groups = results.grouped(runs, lambda run: (run.agent, run.game))
  cut = [
    f"{agent} in {game}"
    for (agent, game), group in groups.items()
    if np.ptp([run.steps[-1] for run in group])
  ]
  if not cut:
    return []
  more = f" and {len(cut) - 3} more" if len(cut) > 3 else ""
  return [
    f"Some seeds have come further than others ({'; '.join(cut[:3])}{more});"
    " curves end with the shortest."
  ]


def _percents(item: Aggregate) -> List[float]:
  names = ("mean", "mean_without_videopinball", "iqm")
  return [100 * float(item.estimates[name].point) for name in names]
