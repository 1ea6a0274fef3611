"""The published data, and that the paper's own figures follow from it."""

import re

import numpy as np
import pytest

from tf_mmdrl.report import (
  aggregate_tables,
  published,
  results,
  scales,
  score_statistics,
)

GAMES = list(published.raw_scores())


@pytest.fixture(scope="module")
def aggregates():
  agents = results.published_agents()
  scale = scales.human(GAMES)
  return {a.name: aggregate_tables.aggregate(a, scale) for a in agents}


def percent(aggregate, statistic):
  return round(100 * float(aggregate.estimates[statistic].point))


def test_there_are_55_games():
  assert len(GAMES) == 55
  assert {"BankHeist", "QBert", "Zaxxon"} <= set(GAMES)


@pytest.mark.parametrize("game", GAMES)
def test_random_play_is_0_and_human_play_is_1(game):
  row = published.raw_scores()[game]
  assert score_statistics.human_normalized(game, row["Random"]) == 0
  assert score_statistics.human_normalized(game, row["Human"]) == 1


def test_mmdqns_row_of_table_1_follows_from_its_raw_scores(aggregates):
  found = aggregates["MMDQN"]
  (printed,) = (row for row in published.table1() if row.agent == "MMDQN")
  assert percent(found, "mean") == printed.mean == 1969
  assert percent(found, "median") == printed.median == 213
  raw = published.raw_scores()
  human = {game: raw[game]["Human"] for game in GAMES}
  dqn = {game: raw[game]["DQN"] for game in GAMES}
  agent = found.agent
  assert aggregate_tables.games_above(agent, human, strictly=True) == 41
  assert (
    aggregate_tables.games_above(agent, dqn, strictly=False)
    == printed.above_dqn
  )
  assert aggregate_tables.games_above(agent, dqn, strictly=True) == 54
  assert raw["MontezumaRevenge"]["MMDQN"] == raw["MontezumaRevenge"]["DQN"] == 0


def test_mmdqns_mean_hangs_on_one_game(aggregates):
  assert percent(aggregates["MMDQN"], "mean_without_videopinball") == 1034


@pytest.mark.parametrize(
  "agent, mean, median",
  [("QR-DQN-1", 1757, 211), ("C51", 1775, 178), ("DQN", 445, 79)],
)
def test_the_other_columns_give_what_they_give(aggregates, agent, mean, median):
  assert percent(aggregates[agent], "mean") == mean
  assert percent(aggregates[agent], "median") == median


def test_table_1_is_the_papers():
  printed = {row.agent: row[1:] for row in published.table1()}
  assert len(printed) == 8
  assert printed["FQF"] == (1426, 272, 44, 54)
  assert printed["QR-DQN-1"] == (902, 193, 41, 54)


def test_slips_are_noted_and_their_numbers_kept():
  raw = published.raw_scores()
  for erratum in published.errata():
    assert erratum.game in raw
    if erratum.column != "game":
      assert raw[erratum.game][erratum.column] == float(erratum.kept)
      # The digits are the paper's; only the punctuation may differ.
      digits = re.sub(r"\D", "", erratum.printed)
      assert digits == re.sub(r"\D", "", erratum.kept)
  noted = {(erratum.game, erratum.column) for erratum in published.errata()}
  assert {("Atlantis", "C51"), ("Seaquest", "QR-DQN-1")} <= noted


@pytest.mark.parametrize(
  "name", ["Breakout", "breakout", "ALE/Breakout-v5", "BreakoutNoFrameskip-v4"]
)
def test_spellings_of_a_game(name):
  assert published.game(name) == "Breakout"
  assert published.reference(name) == (1.7, 30.5)


@pytest.mark.parametrize(
  "name", ["MinAtar/Breakout", "CartPole-v1", "chain/5", "Defender", ""]
)
def test_games_without_a_reference(name):
  assert published.game(name) is None
  assert score_statistics.human_normalized(name, 3.0) is None


def test_the_iqm_of_the_table(aggregates):
  column = [
    score_statistics.human_normalized(
      game, published.raw_scores()[game]["MMDQN"]
    )
    for game in GAMES
  ]
  middle = np.sort(column)[13:42]  # 55 less a quarter, 13, at either end
  found = float(aggregates["MMDQN"].estimates["iqm"].point)
  assert found == pytest.approx(np.mean(middle))
