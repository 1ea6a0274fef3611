"""The evaluations that reports read from runs."""

import pytest
import report_fixtures

from tf_mmdrl.core import errors
from tf_mmdrl.report import run_results


def test_every_evaluation_counts_also_one_of_zero(tmp_path):
  report_fixtures.write_run(
    tmp_path / "a",
    "environment.name=ALE/Pong-v5",
    "system.seed=4",
    scores=[0.0, -3.5],
    episodes=7,
  )
  report_fixtures.write_run(tmp_path / "b", scores=[])
  found = run_results.read([str(tmp_path)])
  (run,) = found.runs
  assert (run.agent, run.game, run.seed) == ("mmdqn", "Pong", 4)
  assert run.steps.tolist() == [1000, 2000]
  assert run.scores.tolist() == [0.0, -3.5]
  assert run.episodes.tolist() == [7, 7]
  assert run.settings["environment.name"] == "ALE/Pong-v5"
  assert found.without_evaluations == [str(tmp_path / "b")]


@pytest.mark.parametrize("number", ["inf", "nan"])
def test_an_evaluation_at_no_finite_step_is_told(tmp_path, number):
  path = report_fixtures.write_run(tmp_path / "a", scores=[1.0])
  text = (path / "metrics.csv").read_text()
  (path / "metrics.csv").write_text(text.replace("1000,", f"{number},", 1))
  with pytest.raises(errors.UserError, match="line 2 has no step"):
    run_results.read([str(path)])


@pytest.mark.parametrize("how", ["column", "cell"])
def test_an_evaluation_without_its_step_is_told(tmp_path, how):
  path = report_fixtures.write_run(tmp_path / "a", scores=[1.0])
  text = (path / "metrics.csv").read_text()
  old, new = ("step,", "steps,") if how == "column" else ("1000,", ",")
  (path / "metrics.csv").write_text(text.replace(old, new, 1))
  with pytest.raises(errors.UserError, match="line 2 has no step"):
    run_results.read([str(path)])
