"""The README: its figures are those of its pages, and what it shows runs."""

import collections
import csv
import json
import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import urllib.request

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.replay_buffers import tf_uniform_replay_buffer
from tf_agents.trajectories import policy_step, time_step, trajectory

from tf_mmdrl import zoo
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import presets

_ROOT = pathlib.Path(__file__).parents[1]
_README = (_ROOT / "README.md").read_text()
_RESULTS = _ROOT / "docs" / "results"
_NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
_SHORT = (
  "environment.num_envs=2",
  "replay.capacity=1000",
  "schedule.steps=200",
  "schedule.learning_starts=100",
  "evaluation.period=200",
  "evaluation.episodes=2",
  "evaluation.max_episode_steps=50",
)


def _rows(heading):
  """The cells of each row of the first table of a section."""
  section = _README.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
  lines = re.findall(r"^\| (.*) \|$", section, re.MULTILINE)
  return [line.split(" | ") for line in lines][1:]


def _agrees(figure, page):
  """Whether a number of the page is the figure, rounded as the figure is."""
  digits = len(figure.partition(".")[2])
  wanted = float(figure.replace(",", ""))
  found = (float(text.replace(",", "")) for text in _NUMBER.findall(page))
  return any(round(value, digits) == wanted for value in found)


@pytest.mark.parametrize("row", _rows("Results"), ids=lambda row: row[0])
def test_results_are_those_of_their_pages(row):
  target = re.search(r"\]\(([^)#]+)", row[2])[1]
  page = (_ROOT / target).read_text()
  figures = _NUMBER.findall(row[1])
  assert figures or "all" in row[1] or "best" in row[1]
  section = page
  if "#" in row[2]:  # the part of the page that is linked to
    title = row[2].partition("#")[2].rstrip(")").replace("-", " ")
    parts = re.split(r"^##+ ", page, flags=re.MULTILINE)
    (section,) = (part for part in parts if part.lower().startswith(title))
  assert re.search(r"[Cc]ommits? [^.]*\b[0-9a-f]{7}\b", section), target
  for figure in figures:
    assert _agrees(figure, page), f"{figure} is not in {target}"


def _quickstart():
  """The last evaluation of each seed, beside random play."""
  with (_RESULTS / "quickstart.csv").open() as file:
    last = {row["seed"]: float(row["score"]) for row in csv.DictReader(file)}
  assert list(last) == ["0", "1", "2"]
  package = _ROOT / "tf_mmdrl" / "report" / "data"
  with (package / "random_scores.csv").open() as file:
    drawn = {row["game"]: float(row["random"]) for row in csv.DictReader(file)}
  first, second, third = (f"{score:.1f}" for score in last.values())
  return (
    f"{first}, {second} and {third} for seeds 0, 1 and 2; random play"
    f" {drawn['MinAtar/Breakout']:.2f}"
  )


def _scaled_rewards():
  """How many runs solve CartPole whatever its rewards are multiplied by."""
  paths = sorted((_RESULTS / "units").glob("scale*.json"))
  found = [json.loads(path.read_text()) for path in paths]
  runs = [run for one in found for run in one["runs"]]
  factors = sorted({float(run["factor"]) for run in runs})
  assert factors == [0.01, 1, 10, 1000]
  texts = []
  for agent, name in (("mmdqn", "MMDQN"), ("qrdqn", "QR-DQN")):
    own = [run for run in runs if run["agent"] == agent]
    assert len(own) >= 12 and all(len(run["scores"]) == 20 for run in own)
    means = [np.mean(run["scores"]) / float(run["factor"]) for run in own]
    solved = sum(mean >= 475 for mean in means)
    texts.append(f"{name} solves it in {solved} of {len(own)} runs")
  return ", ".join(texts).replace("QR-DQN solves it", "QR-DQN")


def _lunarlander():
  """Mean and standard error of the fresh games of each seed."""
  scores = collections.defaultdict(list)
  with (_RESULTS / "units" / "fresh_games.csv").open() as file:
    for row in csv.DictReader(file):
      if row["environment"] == "LunarLander-v3":
        scores[row["seed"]].append(float(row["score"]))
  texts = []
  for found in scores.values():
    assert len(found) == 100
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    texts.append(f"{np.mean(found):.1f} +- {error:.1f}")
  first, second, third = texts
  return f"{first}, {second} and {third} on 100 fresh games"


def _loss():
  """How much faster the loss is than the published formula."""
  rows = json.loads((_RESULTS / "speed_loss.json").read_text())["rows"]
  times = rows["200"]["milliseconds"]
  faster = times["published"] / times["ours"]
  return f"{faster:.0f} times faster than the published formula"


def _update():
  """An update's time as a multiple of those of TF-Agents' DQN."""
  rows = json.loads((_RESULTS / "speed_update.json").read_text())["rows"]
  ours, graph, xla = (
    rows[name]["milliseconds"]
    for name in ("MMDQNAgent", "DqnAgent, graph", "DqnAgent, XLA")
  )
  return (
    f"{ours / graph:.2f} times TF-Agents' DQN as a graph, {ours / xla:.2f}"
    " times as XLA"
  )


def _minatar():
  """The best of each game, and the second best, by `sweep.csv`."""
  with (_RESULTS / "minatar" / "sweep.csv").open() as file:
    rows = list(csv.DictReader(file))
  scores = collections.defaultdict(lambda: collections.defaultdict(list))
  for row in rows:
    score = float(row["evaluation_score"])
    scores[row["environment"]][row["agent"]].append(score)
  ranked = [
    sorted(agents, key=lambda agent: -np.mean(agents[agent]))
    for agents in scores.values()
  ]
  words = {2: "two", 3: "three", 4: "four", 5: "five"}
  names = {"iqn": "IQN", "qrdqn": "QR-DQN", "mmdqn": "MMDQN"}
  best = collections.Counter(order[0] for order in ranked).most_common()
  second = sum(order[1] == "mmdqn" for order in ranked)
  (first, wins), (other, rest) = best
  return (
    f"{names[first]} best in {words[wins]} games, {names[other]} in"
    f" {words[rest]}, MMDQN second in {words[second]}"
  )


def _tutorial():
  """Means and standard errors of the last evaluations, by the JSON files."""
  cells = []
  for agent, name in (("mmdqn", "MMDQN"), ("c51", "TF-Agents' C51")):
    paths = (_RESULTS / "units").glob(f"{agent}-15000-seed?.json")
    found = [json.loads(path.read_text())["returns"] for path in paths]
    assert len(found) == 7 and all(run[-1][0] == 15_000 for run in found)
    last = [run[-1][1] for run in found]
    error = np.std(last, ddof=1) / np.sqrt(len(last))
    cells.append(f"{name} {np.mean(last):.0f} +- {error:.0f}")
  return ", ".join(cells)


def _pong():
  """The fresh games of the zoo's policy, which `tests/zoo` plays again."""
  pong = zoo.entries()["pong"]
  assert pong.step == 250_000
  return f"{pong.score:.1f} +- {pong.error:.1f} on {pong.episodes} fresh games"


# The beginning of a row -> its figures, from the data beside its page.
_RECOMPUTED = {
  "MinAtar Breakout": _quickstart,
  "CartPole-v1, rewards": _scaled_rewards,
  "LunarLander-v3": _lunarlander,
  "TF-Agents' C51 tutorial": _tutorial,
  "MinAtar, five games": _minatar,
  "Pong": _pong,
  "the loss": _loss,
  "one update": _update,
}


def test_replay_takes_what_is_said():
  """Atari's steps as TF-Agents' buffer keeps them; ours is tested by itself.

  `tests/replay/test_replay_exactness.py` measures the first figure.
  """
  ours, theirs = re.search(
    r"1M Atari steps in (\S+) GB, not (\S+) \|", _README
  ).groups()
  assert (ours, theirs) == ("7.2", "28.3")
  observation = tf.TensorSpec([84, 84, 4], tf.uint8)
  step = trajectory.from_transition(
    time_step.time_step_spec(observation),
    policy_step.PolicyStep(tf.TensorSpec([], tf.int64), (), ()),
    time_step.time_step_spec(observation),
  )
  buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(step, 1, 10)
  size = sum(v.numpy().nbytes for v in buffer.variables())
  assert f"{size / 10 * 1e6 / 1e9:.1f}" == theirs


@pytest.mark.parametrize("start", _RECOMPUTED)
def test_results_are_those_of_their_data(start):
  (row,) = (row for row in _rows("Results") if row[0].startswith(start))
  found = _RECOMPUTED[start]()
  rest = row[1].removeprefix(found)
  assert rest != row[1], f"the data say {found!r}"
  assert not _NUMBER.search(rest), f"there are no data of {rest!r}"


def test_every_result_is_recomputed():
  for task, *_ in _rows("Results"):
    assert len([s for s in _RECOMPUTED if task.startswith(s)]) == 1, task


def test_the_policy_in_the_picture_is_the_zoos():
  below = _README.partition(".gif)")[2].partition("##")[0]
  steps, name = re.search(
    r"after ([\d,]+) steps.*zoo:(\S+)", below, re.S
  ).groups()
  entries = json.loads((_ROOT / "tf_mmdrl" / "zoo" / "zoo.json").read_text())
  assert entries[name]["step"] == int(steps.replace(",", ""))


def test_tensorflow_lines_are_those_of_the_constraints():
  for line, (_, versions, command) in zip(
    ("221", "215"), _rows("Two TensorFlow lines")
  ):
    pins = (_ROOT / "constraints" / f"py311-tf{line}.txt").read_text()
    for version in re.findall(r"\d+\.\d+\.\d+", versions):
      assert re.search(rf"^\S+=={re.escape(version)}$", pins, re.MULTILINE)
    assert (
      f"\n{command.strip('`').split()[1]}:" in (_ROOT / "Makefile").read_text()
    )


def test_figures_that_differ_are_seen():
  assert _agrees("9.5", "9.47") and not _agrees("9.6", "9.47, 19.6")
  assert _agrees("388", "387.5 +-  77") and not _agrees("7.5", "387.5")


def test_the_picture_at_the_top_moves():
  target = re.search(r"!\[[^\]]*\]\(([^)]+)\)", _README)[1]
  picture = (_ROOT / target).read_bytes()
  frames = picture.count(b"\x21\xf9\x04")  # GIF's graphic control extension
  assert picture[:6] == b"GIF89a" and frames >= 50
  assert b"NETSCAPE2.0" in picture  # over and over
  command = re.search(r"`mmdrl watch ([^`]*)`", _README)[1].split()
  assert command[command.index("-o") + 1] == pathlib.Path(target).name


def _blocks(language):
  return re.findall(rf"^```{language}\n(.*?)^```$", _README, re.M | re.S)


@pytest.mark.parametrize("code", _blocks("python"), ids=["train", "agent"])
def test_python_runs(code, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  get = presets.get
  monkeypatch.setattr(
    presets, "get", lambda *names: configs.change(get(*names), _SHORT)
  )
  exec(compile(code, "README.md", "exec"), {})


def _commands():
  lines = "\n".join(_blocks("")).splitlines()
  return [line for line in lines if line.startswith("mmdrl ")]


@pytest.mark.slow
def test_commands_run_one_after_another(tmp_path):
  assert len(_commands()) >= 5
  environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
  for line in _commands():
    words = [sys.executable, "-m", "tf_mmdrl", *shlex.split(line, True)[1:]]
    if "train" in words:
      words += [f"--set={setting}" for setting in _SHORT]
    if "serve" in words:
      _serve([*words, "--port", "0"], tmp_path, environment)
      continue
    done = subprocess.run(
      words, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{line}: {done.stderr}"


def _serve(words, path, environment):
  """Serves until the page was fetched, then stops it as Ctrl-C does."""
  with subprocess.Popen(
    words, cwd=path, env=environment, stdout=subprocess.PIPE, text=True
  ) as server:
    try:
      for line in server.stdout:
        address = re.search(r"page to watch it: (\S+)", line)
        if address:
          page = urllib.request.urlopen(address[1], timeout=30).read()
          assert b"A policy at play" in page
          break
      server.send_signal(signal.SIGINT)
      assert server.wait(60) == 0
    finally:
      server.kill()
