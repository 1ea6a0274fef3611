"""Reports of runs whose scores are vectors."""

import dataclasses

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from tf_mmdrl.core import plotting, run_files
from tf_mmdrl.report import (
  game_tables,
  joint_calibration,
  joint_figures,
  run_results,
  sections,
)
from tf_mmdrl.report.results import Run


def _run(vectors, scores):
  settings = {"agent.utility": "linear:1,2", "agent.criterion": "esr"}
  return Run(
    "joint_mmdqn",
    "fishwood-v0",
    3,
    np.array([10.0, 20.0]),
    np.array(scores),
    np.array([4.0, 4.0]),
    settings,
    "runs/a",
    None if vectors is None else np.array(vectors),
  )


def test_the_best_evaluation_is_shown_with_its_parts():
  vector = _run([[1.0, 2.0], [0.5, 0.25]], [5.0, 1.0])
  table = game_tables.vector_scores([vector, _run(None, [1.0, 2.0])])
  assert len(table.rows) == 1
  assert list(table.rows[0]) == [
    "joint_mmdqn",
    "fishwood-v0",
    "3",
    "linear:1,2",
    "esr",
    10,
    5.0,
    1.0,
    2.0,
  ]
  assert len(table.headings) == len(table.rows[0])
  assert not sections.vector_scores([_run(None, [1.0, 2.0])]).tables


def test_parts_are_read_in_order():
  rows = [
    {"step": 1.0, "evaluation_score": 3.0}
    | {"evaluation_score_0": 1.0}
    | {"evaluation_score_1": 2.0, "unit_0": 4.0}
  ]
  np.testing.assert_array_equal(run_results._vectors(rows), [[1.0, 2.0]])
  assert run_results._vectors([{"evaluation_score": 3.0}]) is None


def _row():
  """Of two actions: dependent particles by hand, and one not played."""
  particles = np.array([[0.0, 0.0], [2.0, 2.0], [1.0, 3.0]])
  played = np.array([[0.0, 1.0], [1.0, 0.0], [3.0, 3.0], [0.0, 0.0]])
  forecasts = [
    joint_calibration.JointForecast(
      particles, np.array([0.5, 0.25, 0.25]), played
    ),
    joint_calibration.JointForecast(
      particles[:1], np.ones([1]), np.zeros([0, 2])
    ),
  ]
  identity = run_files.Identity("fishwood-v0", "joint_mmdqn", 3)
  limits = np.array([1.0, -np.inf])
  names = ["fish", "wood"]
  return joint_calibration.Row(identity, 40, names, limits, forecasts)


def test_correlations_and_probabilities_by_hand():
  table = joint_calibration.table([_row()])
  first, second = (dict(zip(table.columns, row)) for row in table.rows)
  assert (first["action"], first["games"], first["pair"]) == ("fish", 4, "0, 1")
  # Weighted means (0.75, 1.25); squares 0.6875 and 1.6875, products 0.8125.
  wanted = 0.8125 / np.sqrt(0.6875 * 1.6875)
  assert first["correlation"] == pytest.approx(wanted)
  # Of (0, 1), (1, 0), (3, 3), (0, 0): both sums of squares are 6, products 5.
  assert first["correlation_played"] == pytest.approx(5 / 6)
  assert (first["probability"], first["probability_played"]) == (0.5, 0.5)
  assert (second["games"], second["correlation"]) == (0, 0.0)
  assert second["correlation_played"] is second["probability_played"] is None
  assert second["probability"] == 0.0 and second["limits"] == "1, -inf"


def test_equal_numbers_do_not_correlate_by_rounding():
  vectors = np.stack([np.full([7], 0.1), np.arange(7.0)], axis=1)
  assert joint_figures.correlation(vectors, 0, 1) == 0.0


def test_what_was_found_stays_with_the_run_and_is_reported(tmp_path):
  files = run_files.RunFiles(tmp_path)
  assert joint_calibration.read(files) == []
  files.config_file.write_text(
    '{"config": {"environment": {"name": "fishwood-v0"},'
    ' "agent": {"name": "joint_mmdqn"}, "system": {"seed": 3}}}'
  )
  joint_calibration.write(_row(), files)
  (read,) = joint_calibration.read(files)
  np.testing.assert_equal(read._asdict(), _row()._asdict())
  run = _run([[1.0, 2.0]] * 2, [5.0, 1.0])
  assert "mmdrl calibrate" in sections.joint_returns([run]).words[0]
  scalar = _run(None, [1.0, 2.0])
  assert not sections.joint_returns([scalar]).words
  run = dataclasses.replace(run, joint=[read])
  section = sections.joint_returns([run, scalar])
  assert len(section.tables[0].rows) == 2
  assert section.pictures[0].png.startswith(b"\x89PNG")


def _limits_of(*returns):
  returns = np.array(returns, np.float64)
  even = np.full([len(returns)], 1 / len(returns))
  forecast = joint_calibration.JointForecast(returns, even, returns)
  return joint_calibration.default_limits([forecast])


def test_limits_lie_between_values_that_were_played():
  # Of (0, 1), (1, 0), (3, 3), (0, 0) both parts are 0, 0, 1, 3: 1 - 1.22 is
  # below all, and the lowest gap is from 0 to 1.
  limits = joint_calibration.default_limits(_row().forecasts)
  np.testing.assert_allclose(limits, [0.5, 0.5])
  # -1 and 1: the mean less a deviation is -1 itself.
  np.testing.assert_allclose(_limits_of([1.0], [-1.0]), [0.0])
  np.testing.assert_allclose(_limits_of([0.0], [10.0], [10.0]), [5.0])


def test_limits_of_games_that_are_all_alike_lie_below_them():
  limits = _limits_of(*[[23.7, -19.0, 0.0]] * 5)
  np.testing.assert_allclose(limits, [21.33, -20.9, -0.1])
  rounded = _limits_of([0.3], [0.1 + 0.2], [0.3 - 1e-16])
  np.testing.assert_allclose(rounded, [0.27])


def test_actions_without_returns_say_why():
  (note,) = joint_calibration.table([_row()]).notes[1:]
  assert "cut off (environment.max_episode_steps)" in note
  row = _row()
  row = row._replace(forecasts=row.forecasts[:1])
  assert len(joint_calibration.table([row]).notes) == 1


def test_correlations_of_pictures_heed_the_weights():
  with plotting.style():
    titles = [
      one.get_title("left") for one in joint_calibration.draw(_row()).axes
    ]
  (line,) = (
    row for row in joint_calibration.table([_row()]).rows if row[4] == "fish"
  )
  assert titles[0] == f"fish: {line[7]:.2f} ({line[8]:.2f})"


@pytest.mark.parametrize("place", [(23.7, -19.0), (0.0, 0.0), (1e-3, 12345.6)])
def test_ticks_of_particles_in_one_place_do_not_collide(place):
  particles = np.tile(place, [4, 30, 1])
  with plotting.style():
    figure = plotting.new_figure(2.5, 2.5)
    joint_figures.draw_actions(
      figure.add_subplot(1, 1, 1),
      particles,
      ["up", "down", "left", "right"],
      1,
      joint_figures.limits(particles),
    )
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    for panel in figure.axes:
      ends = [
        label.get_window_extent(canvas.get_renderer())
        for label in panel.get_xticklabels()
        if label.get_visible() and label.get_text()
      ]
      for left, right in zip(ends, ends[1:]):
        assert left.x1 < right.x0
