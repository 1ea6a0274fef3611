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
from tf_mmdrl.train import board


@pytest.fixture
def run(tmp_path):
  """The directory of a run that has logged one score."""
  path = tmp_path / "runs" / "one"
  path.mkdir(parents=True)
  (path / "config.json").write_text("{}")
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
    [*command, "--port", "0"], stdout=subprocess.PIPE, text=True
  )
  try:
    line = process.stdout.readline()
    address, port = re.search(
      r"(http://localhost:(\d+))/#custom", line
    ).groups()
    wait_for(lambda: "one" in ask(address, "runs"))
    charts = ask(address, "plugin/custom_scalars/layout")["category"]
    assert charts[0]["title"] == "Score"
    first = charts[0]["chart"][0]["multiline"]["tag"][0]
    shown = ask(address, "plugin/custom_scalars/scalars", run="one", tag=first)[
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
    assert process.wait(timeout=30) == 0
  assert sorted(run.rglob("*")) == before  # nothing is written into a run


def _listening(table, port):
  """The local addresses on which somebody listens at a port."""
  lines = pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]
  for line in lines:
    address, _, state = line.split()[1:4]
    host, _, number = address.partition(":")
    if state == "0A" and int(number, 16) == port:
      yield host


def test_equal_names_are_told_apart(tmp_path):
  paths = [tmp_path / part / "run" for part in "abc"]
  names = board._names(paths)
  assert len(names) == 3 and "run" in names
  assert list(names.values()) == paths


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
