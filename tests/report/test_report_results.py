"""How runs become agents, and curves become points."""

import dataclasses

import numpy as np
import pytest

from tf_mmdrl.core import errors
from tf_mmdrl.report import agent_curves, results, scales, score_statistics


def run(agent="mmdqn", game="Pong", seed=0, *, curve=(1.0, 2.0), **settings):
  curve = np.array(curve)
  steps = 100 * np.arange(1, len(curve) + 1)
  named = {name.replace("__", "."): v for name, v in settings.items()}
  episodes = np.full(len(curve), 8.0)
  where = f"{agent}-{game}-{seed}-{settings}"
  return results.Run(agent, game, seed, steps, curve, episodes, named, where)


def test_best_and_last_evaluations():
  runs = [run(seed=0, curve=[1, 9, 2, 4]), run(seed=1, curve=[3, 3, 5, 1])]
  (agent,) = results.agents(runs)
  measured = agent.measured["Pong"]
  np.testing.assert_array_equal(measured.values, [9, 5])
  assert (measured.seeds, measured.episodes) == ("0, 1", 16)
  (agent,) = results.agents(runs, last=3)
  measured = agent.measured["Pong"]
  np.testing.assert_allclose(measured.values, [5, 3])
  assert measured.episodes == 48


def test_the_matrix_is_normalised_and_has_the_seeds_of_all_games():
  runs = [run(seed=s, curve=[s]) for s in (0, 1, 2)]
  runs += [run(game="Breakout", seed=s, curve=[30.5]) for s in (0, 1)]
  (agent,) = results.agents(runs)
  matrix = scales.human(["Pong", "Breakout"]).matrix(agent)
  assert matrix.shape == (2, 2)
  np.testing.assert_allclose(matrix[:, 1], 1)  # human play
  np.testing.assert_allclose(matrix[1, 0], (1 + 20.7) / (14.6 + 20.7))


def test_without_human_scores_1_is_the_baseline():
  games = {"MinAtar/Freeway": 40.135, "MinAtar/Seaquest": 0.05, "my:Own-v0": 9}
  runs = [
    run(agent, game, seed, curve=[factor * score])
    for game, score in games.items()
    for agent, factor in (("dqn", 1), ("mmdqn", 2))
    for seed in (0, 1)
  ]
  dqn, mmdqn = results.agents(runs)
  scale = scales.relative(list(games), dqn)
  # Seaquest: below random play. My own: nobody has measured random play.
  assert scale.games == ["MinAtar/Freeway"]
  np.testing.assert_allclose(scale.matrix(dqn), [[1], [1]])
  share = (2 * 40.135 - 0.135) / 40  # random play scores 0.135
  np.testing.assert_allclose(scale.matrix(mmdqn), [[share], [share]])


def test_curves_at_the_steps_that_all_runs_cover():
  one = run(curve=[0, 10, 20, 30])  # at 100 to 400
  other = dataclasses.replace(
    one, steps=np.array([150, 250]), scores=np.array([5.0, 6.0])
  )
  steps, curves = results.aligned([one, other])
  np.testing.assert_array_equal(steps, [150, 200, 250])
  np.testing.assert_allclose(curves, [[5, 10, 15], [5, 5.5, 6]])


def test_runs_without_a_common_step_have_no_curve():
  late = run(seed=1, curve=[1.0])
  late = dataclasses.replace(late, steps=np.array([900]))
  assert agent_curves.by_game([run(), late], 1) == {}
  pong = scales.human(["Pong"])
  assert agent_curves.over_games([run(), late], pong, 1, "iqm") == []


def test_variants_are_named_by_what_differs():
  runs = [
    run(seed=s, network__num_particles=n, system__xla=x, schedule__steps=5 * n)
    for s, x in ((0, "on"), (1, "off"))
    for n in (50, 200)
  ]
  runs.append(run("qrdqn", network__num_particles=7))
  names = [item.agent for item in results.name_variants(runs)]
  assert names == [
    "mmdqn, num_particles=50",
    "mmdqn, num_particles=200",
    "mmdqn, num_particles=50",
    "mmdqn, num_particles=200",
    "qrdqn",
  ]


def test_a_setting_of_another_game_makes_no_variant():
  runs = [
    run(game="Pong", environment__max_episode_steps=1),
    run(game="Breakout", environment__max_episode_steps=2),
  ]
  assert results.varied(runs) == {}


def test_a_setting_that_was_not_recorded_makes_no_variant():
  runs = [run(seed=0, agent__gamma=0.9, agent__new=1), run(seed=1)]
  assert results.varied(runs) == {}
  assert results.name_variants(runs)[1].agent == "mmdqn"


def test_one_experiment_is_not_two_seeds():
  twice = [run(seed=3), dataclasses.replace(run(seed=3), origin="copy")]
  with pytest.raises(errors.UserError, match="'copy' are the same experiment"):
    results.name_variants(twice)


def test_studies_change_one_setting_at_a_time():
  tried = [(10, "mix"), (200, "mix"), (50, "mix"), (200, "h=1")]
  runs = [
    run(network__num_particles=n, agent__kernel=k, curve=[n / 10])
    for n, k in tried
  ]
  kernel, particles = agent_curves.studies(runs)
  assert (kernel.field, kernel.fixed) == ("agent.kernel", "num_particles=200")
  assert list(kernel.groups) == ["h=1", "mix"]
  assert particles.field == "network.num_particles"
  assert particles.fixed == "kernel=mix"
  assert list(particles.groups) == ["10", "50", "200"]  # by size
  ((measure, (curves, reached)),) = agent_curves.study_curves(
    particles, 1
  ).items()
  assert measure == "human-normalised score, %"
  expected = [
    100 * score_statistics.human_normalized("Pong", n) for n in (1, 5, 20)
  ]
  np.testing.assert_allclose([item.point for item in reached], expected)
  assert [curve.label for curve in curves] == ["10", "50", "200"]


def test_a_gap_is_no_gap_in_percents():
  """The optimality gap is cut off at 1, so it must be taken of shares."""
  runs = [run(seed=seed, curve=[14.6, -20.7]) for seed in (0, 1)]
  pong = scales.human(["Pong"])
  (curve,) = agent_curves.over_games(runs, pong, 1, "optimality_gap")
  np.testing.assert_allclose(curve.estimate.point, [0, 100], atol=1e-9)


def test_aggregate_curves_are_those_of_normalised_scores():
  runs = [
    run(game=game, seed=seed, curve=[base + seed, base + 2 * seed])
    for game, base in (("Pong", 1.0), ("Breakout", 10.0))
    for seed in (0, 1, 2)
  ]
  scale = scales.human(["Breakout", "Pong"])
  (curve,) = agent_curves.over_games(runs, scale, 1, "median")
  for point, factor in zip(curve.estimate.point, (1, 2)):
    means = [
      np.mean(
        [score_statistics.human_normalized(g, b + factor * s) for s in range(3)]
      )
      for g, b in (("Pong", 1.0), ("Breakout", 10.0))
    ]
    assert point == pytest.approx(100 * np.median(means))
  assert (curve.estimate.low <= curve.estimate.point).all()
