"""The files of a run, and the one reader of them.

It reads a run of any version, also one that another process is writing, and it
needs no TensorFlow.
"""

import csv
import io
import json
import math
import pathlib
from typing import (
  Any,
  Dict,
  Iterator,
  List,
  NamedTuple,
  Optional,
  Sequence,
  Tuple,
)

from tf_mmdrl.core import errors

# A row of metrics.csv; an empty cell is None.
Row = Dict[str, Optional[float]]

TOO_HIGH = 1e9  # a score that a task is solved by is below this
_CONFIG = "config.json"


class Identity(NamedTuple):
  """What tells a run from the others of a sweep."""

  environment: str
  agent: str
  seed: int


class RunFiles:
  """Where the files of a run lie, and what they say.

  Attributes:
    path: the directory of the run.
    config_file: the settings, and where the run was trained (JSON).
    metrics: the scores and losses by step (CSV).
    checkpoints: the directory of checkpoints.
    tensorboard: the directory of TensorBoard's logs.
    export: the directory of exported policies.
    learning_curve: the picture that training draws at its end.
    joint_returns: what `mmdrl calibrate` found of joint returns (JSON).
  """

  def __init__(self, path: pathlib.Path):
    self.path = path
    self.config_file = path / _CONFIG
    self.metrics = path / "metrics.csv"
    self.checkpoints = path / "checkpoints"
    self.tensorboard = path / "tensorboard"
    self.export = path / "export"
    self.learning_curve = path / "learning_curve.png"
    self.joint_returns = path / "joint_returns.json"

  def description(self) -> Dict[str, Any]:
    """All of config.json; an error if there is no run here."""
    try:
      content = json.loads(self.config_file.read_text())
    except FileNotFoundError:
      raise errors.UserError(
        f"{str(self.path)!r} is not a run: it has no config.json; pass the"
        " directory that mmdrl train printed"
      ) from None
    except (OSError, ValueError) as error:
      raise self.unreadable(error) from None
    except RecursionError:
      raise self.unreadable("it is nested too deeply") from None
    if not isinstance(content, dict):
      raise self.unreadable(f"it holds a {type(content).__name__}")
    for name in ("versions", "machine"):
      if not isinstance(content.get(name, {}), dict):
        raise self.unreadable(f"its {name} are {content[name]!r}")
    return content

  def settings(self) -> Dict[str, Any]:
    """`group.field` -> value, as they are written, whatever the version."""
    groups = self.description().get("config")
    if not isinstance(groups, dict) or not all(
      isinstance(fields, dict) for fields in groups.values()
    ):
      raise self.unreadable("it has no groups of settings")
    return {
      f"{group}.{field}": value
      for group, fields in groups.items()
      for field, value in fields.items()
    }

  def surroundings(self) -> Iterator[Tuple[str, Any]]:
    """Where it was last trained: `versions.NAME`, `machine.NAME`, the commit.

    An older version's run has fewer of them.
    """
    content = self.description()
    for group in ("versions", "machine"):
      for name, value in content.get(group, {}).items():
        yield f"{group}.{name}", value
    yield "git_commit", content.get("git_commit")

  def identity(self) -> Identity:
    """The environment, the agent and the seed of the run."""
    settings = self.settings()
    try:
      environment = str(settings["environment.name"])
      agent = str(settings["agent.name"])
      seed = int(settings["system.seed"])
    except KeyError as error:
      raise errors.UserError(
        f"the run in {str(self.path)!r} does not say its {error.args[0]}; it"
        " was changed by hand"
      ) from None
    except (TypeError, ValueError, OverflowError):
      raise errors.UserError(
        f"the run in {str(self.path)!r} has system.seed"
        f" {settings['system.seed']!r}, which is no whole number; it was"
        " changed by hand"
      ) from None
    for name in (environment, agent):
      if not name.isprintable():  # a terminal would do what it says
        raise errors.UserError(
          f"the run in {str(self.path)!r} names {name!r}; it was changed by"
          " hand"
        )
    return Identity(environment, agent, seed)

  def rows(self) -> List[Row]:
    """The rows of metrics.csv; none if training has not written any yet."""
    try:
      # Training may be in the middle of a line.
      whole, newline, _ = self.metrics.read_text().rpartition("\n")
      rows = parse_rows(whole + newline)
      _require_steps(rows)
      return rows
    except FileNotFoundError:
      return []
    except (OSError, ValueError, TypeError, csv.Error) as error:
      raise errors.UserError(
        f"{str(self.metrics)!r} cannot be read: {error}"
      ) from None

  def unreadable(self, why: Any) -> errors.UserError:
    """The error to raise where config.json is not what training wrote."""
    return errors.UserError(
      f"{str(self.path)!r} is not a run: its config.json cannot be read: {why}"
    )


def parse_rows(text: str) -> List[Row]:
  """The rows of the text of a metrics.csv."""
  return [
    {name: float(cell) if cell else None for name, cell in row.items()}
    for row in csv.DictReader(io.StringIO(text))
  ]


def _require_steps(rows: Sequence[Row]) -> None:
  """Raises ValueError unless each row says at which step it was written."""
  for line, row in enumerate(rows, 2):
    step = row.get("step")
    if step is None or not math.isfinite(step):
      raise ValueError(f"line {line} has no step")


def is_enough(score: Optional[float], wanted: float) -> bool:
  """Whether a run may end with the score of an evaluation.

  Args:
    score: its mean; None and what is not below `TOO_HIGH` are never enough.
    wanted: `evaluation.enough`; `TOO_HIGH` and more if no score is enough.
  """
  return score is not None and wanted <= score < TOO_HIGH


def last(rows: Sequence[Row], column: str) -> Optional[float]:
  """The newest value of a column that is known."""
  known = (row[column] for row in reversed(rows))
  return next((value for value in known if value is not None), None)


def find(paths: Sequence[str]) -> List[RunFiles]:
  """The runs among `paths` and below them, each once."""
  found: Dict[pathlib.Path, RunFiles] = {}
  for text in paths:
    path = pathlib.Path(text)
    if not path.is_dir():
      raise errors.UserError(
        f"{text!r} is not a directory; pass the directory that mmdrl train"
        " printed"
      )
    if (path / _CONFIG).is_file():
      here = [path]
    else:
      here = sorted(config.parent for config in path.rglob(_CONFIG))
    if not here:
      raise errors.UserError(
        f"{text!r} is not a run and holds none: there is no config.json; pass"
        " the directory that mmdrl train printed"
      )
    found.update({run.resolve(): RunFiles(run) for run in here})
  return list(found.values())
