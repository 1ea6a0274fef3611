"""Finds the trained policies of the zoo; `zoo:NAME` stands for one.

Each lies in `exports/NAME/STEP` as `mmdrl export` wrote it. `zoo.json` says
where each comes from and what it scores; `python benchmarks/zoo.py` writes
both. TensorFlow is not needed here.
"""

import json
import pathlib
from typing import Any, Dict, NamedTuple

from tf_mmdrl.core import errors, whole_files
from tf_mmdrl.serving import directories, manifests

PREFIX = "zoo:"

_HERE = pathlib.Path(__file__).parent
_EXPORTS = _HERE / "exports"
_LIST = _HERE / "zoo.json"


class Entry(NamedTuple):
  """Where a policy comes from, and what it scores.

  Attributes:
    environment: what it was trained on.
    agent: the algorithm.
    step: the step of the run at which it was exported.
    train: the command that trained it.
    commit: of the sources that trained it.
    seed: of that run.
    score: the mean over fresh games, with the run's share of random actions.
    error: the standard error of that mean.
    episodes: how many fresh games.
    games_seed: of the fresh games.
    sha256: of the manifest of the version, which has those of its files.
  """

  environment: str
  agent: str
  step: int
  train: str
  commit: str
  seed: int
  score: float
  error: float
  episodes: int
  games_seed: int
  sha256: str

  def evaluate(self, name: str) -> str:
    """The command that plays the fresh games again."""
    return (
      f"mmdrl evaluate {PREFIX}{name} --episodes {self.episodes}"
      f" --seed {self.games_seed}"
    )


def entries() -> Dict[str, Entry]:
  """All policies, by name."""
  try:
    listed: Dict[str, Dict[str, Any]] = json.loads(_LIST.read_text())
  except (OSError, ValueError) as error:
    raise errors.UserError(
      f"the list of the zoo, {str(_LIST)!r}, cannot be read ({error}); install"
      " tf-mmdrl again"
    ) from None
  return {name: Entry(**listed[name]) for name in sorted(listed)}


def find(name: str) -> pathlib.Path:
  """The directory of versions of a policy.

  Args:
    name: without the prefix.

  Returns:
    The directory, whose only version has the manifest that the list says. Who
    loads the version compares its files with the manifest.
  """
  known = entries()
  if name not in known:
    raise errors.unknown_name("policy of the zoo", name, known)
  directory = _EXPORTS / name
  manifest = directory / str(known[name].step) / manifests.MANIFEST
  there = manifest.read_bytes() if manifest.is_file() else b""
  only = directories.versions(directory) == [known[name].step]
  if not only or whole_files.digest(there) != known[name].sha256:
    raise errors.UserError(
      f"{PREFIX}{name} is not what was put into the zoo: see"
      f" {str(directory)!r}, or install tf-mmdrl again"
    )
  return directory


def place(text: str) -> pathlib.Path:
  """The directory that a user means: a path, or `zoo:NAME`."""
  if text.startswith(PREFIX):
    return find(text[len(PREFIX) :])
  return pathlib.Path(text)
