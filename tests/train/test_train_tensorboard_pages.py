"""`mmdrl tensorboard`, asked as a browser would."""

import json
import pathlib
import re
import signal
import subprocess
import sys
import time
import urllib.parse
import urllib.request

import pytest
import tensorflow as tf

from tf_mmdrl.cli import main
from tf_mmdrl.core import run_files
from tf_mmdrl.train import tensorboard_pages


def make(path, environment="Pong", agent="mmdqn", seed=0):
  """Makes the directory of a run, with no more than what it is a run of."""
  path.mkdir(parents=True)
  config = {
    "environment": {"name": environment},
    "agent": {"name": agent},
    "system": {"seed": seed},
  }
  (path / "config.json").write_text(json.dumps({"config": config}))
  return path


@pytest.fixture
def run(tmp_path):
  """The directory of a run of a sweep that has logged one score."""
  path = make(tmp_path / "runs" / "CartPole-v1" / "seed0", "CartPole-v1")
  writer = tf.summary.create_file_writer(str(path / "tensorboard"))
  with writer.as_default(step=7):
    tf.summary.scalar("Score/evaluation", 2.5)
  writer.close()
  return path


def ask(address, path, **query):
  url = f"{address}/data/{path}?{urllib.parse.urlencode(query)}"
  with urllib.request.urlopen(url, timeout=30) as answer:
    return json.load(answer)


def wait_for(condition):
  """TensorBoard reads logs after it has begun to answer."""
  deadline = time.monotonic() + 30
  while not condition():
    assert time.monotonic() < deadline
    time.sleep(0.2)


def test_tensorboard_serves_runs_on_localhost_only(run):
  before = sorted(run.rglob("*"))
  command = [sys.executable, "-m", "tf_mmdrl", "tensorboard", str(run.parent)]
  process = subprocess.Popen(
    [*command, "--port", "0"],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )
  try:
    line = process.stdout.readline()
    address, port = re.search(
      r"(http://localhost:(\d+))/#custom", line
    ).groups()
    name = "CartPole-v1/mmdqn/seed0"
    wait_for(lambda: name in ask(address, "runs"))
    charts = ask(address, "plugin/custom_scalars/layout")["category"]
    assert charts[0]["title"] == "Score"
    titles = [chart["title"] for chart in charts[0]["chart"]]
    assert titles == ["Evaluation", "Training"]  # CartPole has no human score
    first = charts[0]["chart"][0]["multiline"]["tag"][0]
    shown = ask(address, "plugin/custom_scalars/scalars", run=name, tag=first)[
      "tag_to_events"
    ]
    ((_, step, score),) = shown["Score/evaluation"]
    assert (step, score) == (7, 2.5)
    for table, local in (
      ("tcp", ["0100007F"]),
      ("tcp6", ["0" * 24 + "01000000"]),
    ):
      listening = _listening(table, int(port))
      assert set(listening) <= set(local), table
  finally:
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
  assert (process.returncode, said) == (0, "")  # no notices of TensorBoard's
  assert sorted(run.rglob("*")) == before  # nothing is written into a run


def _listening(table, port):
  """The local addresses on which somebody listens at a port."""
  lines = pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]
  for line in lines:
    address, _, state = line.split()[1:4]
    host, _, number = address.partition(":")
    if state == "0A" and int(number, 16) == port:
      yield host


def test_runs_of_a_sweep_are_told_apart_by_what_they_are(tmp_path):
  paths = [
    make(tmp_path / game / agent / f"seed{seed}", game, agent, seed)
    for game in ("MinAtar/Breakout", "CartPole-v1")
    for agent in ("dqn", "mmdqn")
    for seed in (0, 1)
  ]
  names = tensorboard_pages._names([run_files.RunFiles(p) for p in paths])
  assert [run.path for run in names.values()] == paths
  assert list(names)[:2] == [
    "MinAtar-Breakout/dqn/seed0",
    "MinAtar-Breakout/dqn/seed1",
  ]


def test_runs_of_the_same_are_told_apart_by_where_they_lie(tmp_path):
  paths = [
    make(tmp_path / part / "run") for part in ("short", "long", "long-a", "l")
  ]
  paths.append(make(tmp_path / "long" / "a-run"))  # reads as long-a/run does
  names = tensorboard_pages._names([run_files.RunFiles(p) for p in paths])
  assert [run.path for run in names.values()] == paths
  assert list(names)[:2] == [
    "Pong/mmdqn/seed0 in short-run",
    "Pong/mmdqn/seed0 in long-run",
  ]


@pytest.mark.parametrize(
  "games, shown",
  [(["Pong", "CartPole-v1"], True), (["MinAtar/Breakout"], False), ([], False)],
)
def test_the_chart_of_human_play_is_there_if_that_is_known(games, shown):
  layout = tensorboard_pages.layout(games)
  (score,) = [c for c in layout.category if c.title == "Score"]
  assert any("human" in chart.title for chart in score.chart) == shown


@pytest.mark.parametrize(
  "flags, message",
  [
    (["none"], "is not a directory"),
    (["."], "is not a run and holds none"),
    (["runs", "--port", "70000"], "--port must be from 0 to 65535"),
  ],
)
def test_bad_input_is_one_line(tmp_path, monkeypatch, capsys, flags, message):
  (tmp_path / "empty").mkdir()
  monkeypatch.chdir(tmp_path / "empty")
  assert main.main(["tensorboard", *flags]) == main.EXIT_BAD_INPUT
  error = capsys.readouterr().err
  assert message in error and error.count("\n") == 1
