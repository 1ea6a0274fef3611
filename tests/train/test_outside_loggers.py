"""W&B and MLflow beside a run: what they are told, and what their faults do.

Faults are shown with a stand-in for MLflow's module. The real tools log real
runs in slow tests, offline, where MMDRL_LOG_PYTHON (or this Python) has them.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import time

import pytest
import train_fixtures

from tf_mmdrl.cli import main, train_command
from tf_mmdrl.core import errors
from tf_mmdrl.train import outside_loggers, run_directory, trainer

_STAND_IN = """
import json, os, types

def _say(*what):
  with open(os.environ["SAID"], "a") as file:
    file.write(json.dumps(what) + "\\n")

def set_experiment(name): _say("experiment", name)
def log_params(params): _say("params", params)
def log_metrics(values, step): _say(step, values)
def end_run(state): _say("end", state)
def start_run(run_name=None, run_id=None):
  _say("start", run_name, run_id)
  return types.SimpleNamespace(info=types.SimpleNamespace(run_id="17"))
"""


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
  """Writes a module called mlflow; returns what reads back what it was told."""
  said = tmp_path / "said"
  monkeypatch.setenv("SAID", str(said))
  monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
  monkeypatch.delenv(outside_loggers.PYTHON, raising=False)
  (tmp_path / "modules").mkdir()

  def write(more=""):
    text = _STAND_IN + textwrap.dedent(more)
    (tmp_path / "modules" / "mlflow.py").write_text(text)
    return lambda: [json.loads(line) for line in said.open()]

  return write


def _logger(path):
  return outside_loggers.OutsideLogger("mlflow", path, {"system.seed": 3})


def test_rows_and_the_end_are_passed_on_and_a_run_goes_on(stand_in, tmp_path):
  read = stand_in()
  path = tmp_path / "run"
  path.mkdir()
  logger = _logger(path)
  logger.log(5, {"Score/train": 1.5})
  logger.close(is_finished=False)
  logger = _logger(path)
  logger.log(10, {"Score/train": 2.5})
  logger.close(is_finished=True)
  assert read() == [
    ["experiment", "tf_mmdrl"],
    ["start", "run", None],
    ["params", {"system.seed": 3}],
    [5, {"Score/train": 1.5}],
    ["end", "KILLED"],
    ["experiment", "tf_mmdrl"],
    ["start", None, "17"],
    [10, {"Score/train": 2.5}],
    ["end", "FINISHED"],
  ]


def test_a_run_that_dies_is_not_called_finished(stand_in, tmp_path):
  read = stand_in()
  code = f"""
import os, pathlib
from tf_mmdrl.train import outside_loggers
logger = outside_loggers.OutsideLogger(
  "mlflow", pathlib.Path({str(tmp_path)!r}), {{}})
logger.log(5, {{}})
os._exit(1)
"""
  root = str(pathlib.Path(main.__file__).parents[2])
  paths = os.pathsep.join([os.environ["PYTHONPATH"], root])
  environment = {**os.environ, "PYTHONPATH": paths}
  subprocess.run([sys.executable, "-c", code], env=environment, check=False)
  for _ in range(300):
    if read()[-1] == ["end", "KILLED"]:
      break
    time.sleep(0.1)
  assert read()[-2:] == [[5, {}], ["end", "KILLED"]]


def test_a_tool_that_refuses_ends_the_command_in_one_line(stand_in, tmp_path):
  stand_in("""
    def start_run(run_name):
      raise RuntimeError("no such server\\nand more")
  """)
  with pytest.raises(errors.UserError, match="log this run: no such server;"):
    _logger(tmp_path)


def test_a_tool_that_is_killed_costs_its_rows_only(stand_in, tmp_path, capsys):
  stand_in()
  logger = _logger(tmp_path)
  os.kill(logger._process.pid, signal.SIGKILL)
  logger._process.wait()
  for step in (5, 10):
    logger.log(step, {})
  logger.close(is_finished=True)
  assert capsys.readouterr().err.count("mlflow ended, so it logs no more") == 1


def test_a_tool_that_hangs_holds_up_nothing(
  stand_in, tmp_path, capsys, monkeypatch
):
  monkeypatch.setattr(outside_loggers, "_SECONDS", 20.0)
  stand_in("""
    import time
    def log_metrics(values, step):
      time.sleep(600)
  """)
  logger = _logger(tmp_path)
  start = time.monotonic()
  for step in range(2000):
    logger.log(step, {"Score/train": 0.5, "Score/evaluation": 1.5})
  logger.close(is_finished=True)
  assert time.monotonic() - start < 15
  assert capsys.readouterr().err.count("does not take any more rows") == 1


@pytest.mark.parametrize("tool", outside_loggers.TOOLS)
def test_a_missing_tool_is_said_at_once(tool, tmp_path, monkeypatch, capsys):
  python = tmp_path / "python"
  python.write_text("#!/bin/sh\nexit 1\n")  # has no module at all
  python.chmod(0o755)
  monkeypatch.setenv(outside_loggers.PYTHON, str(python))
  monkeypatch.setattr(train_command, "wanted", None)  # it loads TensorFlow
  run = tmp_path / "run"
  assert main.main(["train", "--log", tool, "--run-dir", str(run)]) == 2
  said = capsys.readouterr()
  assert said.err.startswith(f"mmdrl: --log {tool} needs {tool}, which")
  assert f"pip install {tool}" in said.err and not said.out
  assert not run.exists()


def test_a_python_that_is_not_there_is_said(tmp_path, monkeypatch):
  monkeypatch.setenv(outside_loggers.PYTHON, str(tmp_path / "python"))
  with pytest.raises(errors.UserError, match="cannot be run: No such file"):
    outside_loggers.require(["wandb"])


def test_nothing_is_asked_for_without_tools(monkeypatch):
  monkeypatch.setenv(outside_loggers.PYTHON, "/nowhere")
  outside_loggers.require([])


# Reads back what a tool keeps offline: step -> Score/evaluation.
_READ = {
  "mlflow": """
import mlflow, sys
client = mlflow.MlflowClient()
run = client.get_run(sys.argv[2])
assert run.data.params["agent.name"] == "mmdqn", run.data.params
assert run.info.status == "FINISHED", run.info.status
history = client.get_metric_history(sys.argv[2], "Score/evaluation")
print({each.step: each.value for each in history})
""",
  # Its files are LevelDB's logs: records in blocks of 32 KiB.
  "wandb": """
import glob, json, struct, sys
from wandb.proto import wandb_internal_pb2

def records(data):
  place, parts = 7, b""
  while place + 7 <= len(data):
    left = 32768 - place % 32768
    if left < 7:
      place += left
      continue
    _, size, kind = struct.unpack("<IHB", data[place : place + 7])
    parts += data[place + 7 : place + 7 + size]
    place += 7 + size
    if kind in (1, 4):  # a whole record, or the last part of one
      yield wandb_internal_pb2.Record.FromString(parts)
      parts = b""

found, agent = {}, None
for path in glob.glob(sys.argv[1] + "/wandb/offline-run-*/run-*.wandb"):
  for record in records(open(path, "rb").read()):
    if record.HasField("run"):
      assert record.run.run_id == sys.argv[2]
      for item in record.run.config.update:
        agent = item.value_json if item.key == "agent.name" else agent
    row = {item.key or ".".join(item.nested_key): json.loads(item.value_json)
           for item in record.history.item}
    if "Score/evaluation" in row:
      found[row["step"]] = row["Score/evaluation"]
assert json.loads(agent) == "mmdqn", agent
print(found)
""",
}


@pytest.mark.slow
@pytest.mark.parametrize("tool", outside_loggers.TOOLS)
def test_the_real_tool_logs_a_run_offline(tool, tmp_path, monkeypatch):
  try:
    outside_loggers.require([tool])
  except errors.UserError as error:
    pytest.skip(str(error))
  monkeypatch.setenv("WANDB_MODE", "offline")
  monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "mlruns").as_uri())
  monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
  path = tmp_path / "run"
  config = train_fixtures.small()
  halfway = config.replace(schedule=dict(steps=320))
  for each in (halfway, config):  # the second goes on with the first
    directory = run_directory.RunDirectory(path)
    assert trainer.train(each, directory, log=[tool]).finished
  python = outside_loggers._python()
  identity = (path / f"{tool}_run_id").read_text().strip()
  read = [python, "-c", _READ[tool], str(path), identity]
  done = subprocess.run(read, capture_output=True, text=True, check=False)
  assert not done.returncode, done.stderr
  rows = run_directory.RunDirectory(path).rows()
  expected = {
    int(row["step"]): row["evaluation_score"]
    for row in rows
    if row["evaluation_score"] is not None
  }
  assert set(expected) == {320, 640}
  assert eval(done.stdout.splitlines()[-1]) == pytest.approx(expected)
