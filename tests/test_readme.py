"""The README: its figures are those of its pages, and what it shows runs."""

import os
import pathlib
import re
import shlex
import signal
import subprocess
import sys
import urllib.request

import pytest

from tf_mmdrl.train import config as configs
from tf_mmdrl.train import presets

_ROOT = pathlib.Path(__file__).parents[1]
_README = (_ROOT / "README.md").read_text()
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
  for figure in figures:
    assert _agrees(figure, page), f"{figure} is not in {target}"


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
