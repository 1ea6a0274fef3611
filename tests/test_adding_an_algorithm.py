"""docs/adding_an_algorithm.md, "In this library": every step, to the letter.

In a copy of the repository the page's algorithm is added, and QR-DQN once more
under another name: one file, one oracle, one page each. Then the page's own
command tests them, and both are trained by name.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import textwrap

from tf_mmdrl.core import algorithms

_ROOT = pathlib.Path(__file__).parents[1]
_SHORT = (
  "--env CartPole-v1 --set schedule.steps=256 --set schedule.collect_steps=4"
  " --set schedule.learning_starts=192 --set evaluation.episodes=2"
  " --set evaluation.num_envs=2 --set evaluation.period=256"
  " --set network.num_particles=5 --set system.xla=off"
)
_AGAIN = """

FAMILY["again"] = Member(
  heads.particles(7), agents.AgainAgent, {}, {}, quantile_huber
)
"""
# In one process: what takes time is to load TensorFlow.
_CHECK = """
import sys
import pytest
from tf_mmdrl.cli import main

failed = pytest.main(sys.argv[2:])
for name in ("erdqn", "again"):
  line = ["train", "--agent", name, *sys.argv[1].split(), "--run-dir", name]
  failed = failed or main.main(line)
sys.exit(failed or main.main(["agents"]))
"""


def _page():
  """(code blocks by language, the steps' files, the section)."""
  page = (_ROOT / "docs" / "adding_an_algorithm.md").read_text()
  blocks = {"python": [], "markdown": [], "bash": [], "toml": []}
  for language, text in re.findall(
    r"^ *```(\w+)\n(.*?)^ *```$", page, re.DOTALL | re.MULTILINE
  ):
    blocks[language].append(textwrap.dedent(text))
  section = page.partition("## In this library")[2].partition("\n## ")[0]
  steps = re.findall(r"^\d\. [^`]*`([\w/]+\.\w+)`", section, re.MULTILINE)
  return blocks, steps, section


def _append(path, text):
  with path.open("a") as file:
    file.write(text)


def test_the_page_adds_an_algorithm_and_so_does_qrdqn_again(tmp_path):
  for part in ("tf_mmdrl", "tests", "docs"):
    shutil.copytree(
      _ROOT / part,
      tmp_path / part,
      ignore=shutil.ignore_patterns("__pycache__", "*.png", "*.mp4"),
    )
  for name in ("setup.cfg", "mkdocs.yml"):
    shutil.copy(_ROOT / name, tmp_path)

  blocks, steps, section = _page()
  file, oracle, page = (tmp_path / step for step in steps)
  code, oracle_code = blocks["python"]
  (page_text,) = blocks["markdown"]
  assert not file.exists() and not page.exists()
  file.write_text(code)
  _append(oracle, "\n\n" + oracle_code)
  page.write_text(page_text)

  ours = (file.parent / "qrdqn_agent.py").read_text()
  ours = ours.replace("QRDQNAgent", "AgainAgent")
  ours = ours.replace("  published=PUBLISHED,\n", "")
  file.with_name("again_agent.py").write_text(ours)
  _append(oracle, _AGAIN)
  theirs = (page.parent / "qrdqn.md").read_text()
  theirs, _, _ = theirs.partition("**Published hyperparameters.**")
  theirs = theirs.replace("qrdqn", "again") + "**Results.** QR-DQN's.\n"
  page.with_name("again.md").write_text(theirs)

  command = blocks["bash"][-1].replace("\\\n", " ")
  assert command in section.replace("\\\n", " ")
  program, *arguments = shlex.split(command)
  assert program == "pytest"
  chosen = arguments[-1]
  arguments[-1] = f"({chosen} or again) and not slow"
  done = subprocess.run(
    [
      sys.executable,
      "-c",
      _CHECK,
      _SHORT,
      "-p",
      "no:cacheprovider",
      *arguments,
    ],
    cwd=tmp_path,
    env={**os.environ, "PYTHONPATH": str(tmp_path)},
    capture_output=True,
    text=True,
  )
  shown = done.stdout + done.stderr
  assert done.returncode == 0, shown[-5000:]
  assert int(re.search(r"(\d+) passed", shown)[1]) > 20, shown[-5000:]
  assert "erdqn              expectiles at even levels\n" in done.stdout
  assert f"again              {algorithms.summary('qrdqn')}\n" in done.stdout
  assert (tmp_path / "again" / "metrics.csv").is_file()
