"""Reports of runs whose scores are vectors."""

import numpy as np

from tf_mmdrl.report import game_tables, run_results, sections
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
