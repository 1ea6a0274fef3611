"""Puts reports together: of the published table, and of runs."""

import dataclasses
from typing import List, Optional, Sequence, Tuple

from tf_mmdrl.core import errors, plotting
from tf_mmdrl.report import (
  aggregate_tables,
  caveats,
  evaluation_files,
  figures,
  game_tables,
  published,
  results,
  scales,
  score_statistics,
  sections,
)
from tf_mmdrl.report.page import Report, Section
from tf_mmdrl.report.results import Agent, Run
from tf_mmdrl.report.scales import Scale

_MARK = " (paper)"
_USUAL = ("qrdqn", "dqn")  # the baselines to look for among runs


@dataclasses.dataclass(frozen=True)
class Options:
  """How a report is made.

  Attributes:
    baseline: the agent that others are compared with. By default QR-DQN as in
      the paper, or DQN, or the first agent of the runs; if the runs have one
      agent only, the paper's QR-DQN-1.
    last: a seed's score is the mean of its last evaluations; 0: its best.
    smooth: evaluations in the curves' moving average.
  """

  baseline: Optional[str] = None
  last: int = 0
  smooth: int = 1


def of_published(options: Options) -> Report:
  """The report of the paper's own scores."""
  agents = results.published_agents()
  order = [agent.name for agent in agents]
  games = list(published.raw_scores())
  baseline = _named(options.baseline or "QR-DQN-1", agents)
  scale = scales.human(games)
  aggregates = [aggregate_tables.aggregate(agent, scale) for agent in agents]
  best = aggregates[order.index("MMDQN")]
  mmdqn = best.agent
  percent = {n: 100 * float(e.point) for n, e in best.estimates.items()}
  with plotting.style():
    parts = [
      Section(
        "Table 1",
        pictures=[
          *sections.statistics(aggregates, scale, order),
          sections.profile(agents, scale, order),
          sections.picture(
            "mean_by_game",
            "The twelve games that give the most to MMDQN's mean.",
            figures.shares_of_mean(mmdqn, scale),
          ),
        ],
        tables=[
          aggregate_tables.table1(aggregates, caveats.score_in_words(0)),
          aggregate_tables.table1_compared(aggregates),
        ],
      ),
      sections.improvements([mmdqn], baseline),
      sections.by_game(agents, games),
      Section("Errata", tables=[game_tables.errata()]),
    ]
  return Report(
    "MMDQN in print",
    "The paper's 55 Atari games, 5 agents: what its raw scores say.",
    [
      (f"{percent['mean']:,.0f} %", "MMDQN's mean human-normalised score"),
      (
        f"{percent['mean_without_videopinball']:,.0f} %",
        "the same without VideoPinball",
      ),
      (f"{percent['median']:,.0f} %", "its median"),
      (f"{percent['iqm']:,.0f} %", "its interquartile mean"),
    ],
    caveats.of_published(aggregates),
    parts,
  )


def of_runs(
  found: Sequence[Run], options: Options, warnings: Sequence[str] = ()
) -> Report:
  """The report of runs, beside the paper's scores.

  Args:
    found: at least one, named by their algorithms.
    options: how.
    warnings: what was left out, for the reader.

  Returns:
    The report.
  """
  runs = results.name_variants(found)
  own = results.agents(runs, last=options.last)
  order = [agent.name for agent in own]
  played = sorted({run.game for run in runs})
  known = [game for game in played if results.has_reference(game)]
  paper = results.published_agents(_MARK) if known else []
  baseline = _baseline(options.baseline, own, paper)
  scale = _scale(own, played, baseline)
  compared = [agent for agent in own if agent is not baseline]
  with plotting.style():
    parts = [
      sections.learning_curves(runs, order, options.smooth),
      sections.over_games(runs, scale, order, options.smooth),
      sections.table1(own, paper, scale, options.last),
      sections.comparisons(own, baseline, order),
      sections.improvements(compared, baseline),
      sections.sensitivity(found, options.smooth),
      sections.by_game([*paper, *own], played),
      sections.vector_scores(runs),
      sections.joint_returns(runs),
      Section("Runs", tables=[game_tables.runs(runs)], folded=len(runs) > 30),
    ]
  seeds = sorted({run.seed for run in runs})
  count = lambda n, word: f"{n} {word}{'' if n == 1 else 's'}"  # noqa: E731
  return Report(
    "Training report",
    f"{count(len(runs), 'run')}: {count(len(own), 'agent')},"
    f" {count(len(played), 'game')}, {'seeds' if len(seeds) > 1 else 'seed'}"
    f" {', '.join(map(str, seeds))}.",
    _headline(own, scale),
    [*warnings, *caveats.of_runs(runs, scale, options.last)],
    parts,
    {evaluation_files.NAME: evaluation_files.to_csv(runs)},
  )


def _scale(
  own: Sequence[Agent], played: Sequence[str], baseline: Optional[Agent]
) -> Scale:
  """What scores over all games are normalised by: human play where known."""
  common = [g for g in played if all(g in agent.measured for agent in own)]
  known = [game for game in common if results.has_reference(game)]
  if known or baseline is None or baseline.published or len(own) == 1:
    return scales.human(known)
  return scales.relative(common, baseline)


def _headline(own: Sequence[Agent], scale: Scale) -> List[Tuple]:
  """The interquartile mean, or a single game's score, of the first agents."""
  shown = []
  games = scale.games
  for agent in own[:4]:
    if len(games) > 1 or any(map(results.has_reference, games)):
      point = score_statistics.iqm(scale.matrix(agent))
      over = games[0] if len(games) == 1 else f"{len(games)} games"
      words = f"{agent.name}: {scale.name} IQM, {over}"
      shown.append((f"{100 * float(point):,.1f} %", words))
    elif len(agent.measured) == 1:
      ((game, measured),) = agent.measured.items()
      words = f"{agent.name}: score in {game}"
      shown.append((f"{measured.values.mean():,.1f}", words))
  return shown


def _baseline(
  name: Optional[str], own: Sequence[Agent], paper: Sequence[Agent]
) -> Optional[Agent]:
  if name is not None:
    return _named(name, [*own, *paper])
  if len(own) > 1:
    usual = [a for word in _USUAL for a in own if a.name == word]
    return [*usual, *own][0]
  return _named("QR-DQN-1", paper) if paper else None


def _named(name: str, agents: Sequence[Agent]) -> Agent:
  """The agent of that name; the paper's with or without its mark."""
  for agent in agents:
    if name in (agent.name, agent.name.removesuffix(_MARK)):
      return agent
  known = [agent.name for agent in agents]
  raise errors.unknown_name("baseline", name, known)
