"""What an algorithm is, and where each lies: one file, found by its name.

Whatever is in `agents/NAME_agent.py` is the algorithm NAME. The modules are
imported when they are asked for, and their summaries are read without that, so
that help and the list of algorithms need no TensorFlow. Besides these names,
`package.module:NAME` is an algorithm of your own, and installed packages bring
theirs by entry points of the group `tf_mmdrl.agents`.
"""

import dataclasses
import functools
import importlib.metadata
from typing import (
  Any,
  Callable,
  Dict,
  List,
  Mapping,
  NamedTuple,
  Optional,
  Sequence,
  Tuple,
  Type,
)

from tf_mmdrl.core import algorithm_files, errors, plugins, settings

GROUP = "tf_mmdrl.agents"  # of entry points

# The order in which they are shown; whatever is not here follows by its name.
_FIRST = (
  "dqn",
  "double_dqn",
  "c51",
  "qrdqn",
  "iqn",
  "fqf",
  "rainbow",
  "mmdqn",
  "implicit_mmdqn",
  "weighted_mmdqn",
  "adversarial_mmdqn",
  "rainbow_mmdqn",
  "joint_mmdqn",
)


class Run(NamedTuple):
  """What an algorithm may know of the run that it is made for.

  Attributes:
    num_particles: N: particles, quantiles or atoms of an action.
    num_updates: how many updates the whole run has, for schedules over it.
    dimensions: D, if the environment's rewards are vectors; None if they are
      numbers, or not known.
  """

  num_particles: int
  num_updates: int
  dimensions: Optional[int] = None


@dataclasses.dataclass(frozen=True)
class Settings(settings.Group):
  """An algorithm's own settings, and what it makes of them.

  A subclass is a frozen dataclass whose fields are settings that no other part
  of the library reads; `--set agent.FIELD=VALUE` changes them.
  """

  def head(self, run: Run) -> Any:
    """What makes the network's head; see `networks.heads`."""
    raise NotImplementedError

  def options(self, run: Run) -> Dict[str, Any]:
    """The agent's own keyword arguments."""
    del run
    return {}

  @property
  def accrues_rewards(self) -> bool:
    """Whether observations must hold the rewards that were earned so far."""
    return False

  def score(self, score: Any) -> Any:
    """Makes a score of numbers one of what the head emits; see `policies`."""
    return score

  def worth(self, scores: Any) -> Any:
    """What games with vector scores are worth.

    Args:
      scores: [K, D] array.

    Returns:
      [K] what each is worth, and what all are together.
    """
    raise NotImplementedError

  def limits(self) -> Optional[Sequence[float]]:
    """[D] limits that returns are to reach, if the utility has any."""
    return None

  def numbers(self, returns: Any) -> Any:
    """Distributions of numbers; of the utility, where returns are vectors."""
    return returns


@dataclasses.dataclass(frozen=True)
class Algorithm:
  """All that `mmdrl train --agent NAME` needs.

  Attributes:
    summary: one line.
    paper: who and when.
    url: where the paper is.
    agent: the class of the agent, or a function with its arguments.
    settings: the algorithm's own.
    shared: `group.field` -> value: settings of all algorithms that choosing
      this one makes, and `--set` may change.
    published: `group.field` -> value: the hyperparameters of the paper's Atari
      experiments, besides what all such papers share (`train/presets.py`);
      `--preset published` takes them. Empty if the paper has none.
  """

  summary: str
  paper: str
  url: str
  agent: Callable[..., Any]
  settings: Type[Settings]
  shared: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  published: Mapping[str, Any] = dataclasses.field(default_factory=dict)

  def assignments(self) -> List[str]:
    """The shared settings as `group.field=value`."""
    return [f"{name}={value}" for name, value in self.shared.items()]

  def published_assignments(self) -> List[str]:
    """The published hyperparameters as `group.field=value`."""
    return [f"{name}={value}" for name, value in self.published.items()]


def names() -> List[str]:
  """The algorithms here, and those that installed packages bring."""
  ours = our_names()
  return [*ours, *sorted(set(_entry_points()) - set(ours))]


@functools.cache
def our_names() -> Tuple[str, ...]:
  """The algorithms of this library; imports nothing."""
  found = set(algorithm_files.names())
  listed = [name for name in _FIRST if name in found]
  return (*listed, *sorted(found.difference(_FIRST)))


def summary(name: str) -> str:
  """What `mmdrl agents` says of one of `names()`; imports nothing."""
  if is_ours(name):
    return algorithm_files.summary(name)
  point = _entry_points()[name]
  package = point.dist.name if point.dist else point.module
  return f"of the package {package}"


def published_names() -> List[str]:
  """Names of algorithms with published hyperparameters; imports them all."""
  return [name for name in names() if get(name).published]


def get(name: str) -> Algorithm:
  """The algorithm of that name, or at `package.module:NAME`."""
  check_name(name)
  if is_ours(name):
    place = f"tf_mmdrl.agents.{name}_agent:{algorithm_files.ATTRIBUTE}"
  elif ":" in name:
    place = name
  else:
    place = _entry_points()[name].value
  return plugins.load("agent", place, Algorithm)


def own_settings(name: str) -> Sequence[str]:
  """The names of the own settings of an algorithm that is ours."""
  found = algorithm_files.settings(name)
  if found is None:  # not plain to read: it must be imported
    found = [field.name for field in dataclasses.fields(get(name).settings)]
  return found


def with_setting(field: str) -> List[str]:
  """The algorithms here that have an own setting of that name.

  Args:
    field: the setting's name, without its group.

  Returns:
    Their names.
  """
  return [name for name in our_names() if field in own_settings(name)]


def is_ours(name: str) -> bool:
  """Whether this library itself has an algorithm of that name."""
  return name in our_names()


def check_name(name: str) -> None:
  """Raises if there is no such name; imports nothing."""
  # Ours first: to list what other packages bring takes time.
  if is_ours(name) or plugins.is_place(name) or name in names():
    return
  error = errors.unknown_name("agent", name, names())
  if not errors.nearest(name, names()):
    error = errors.UserError(f"{error}; one of your own is MODULE:NAME")
  raise error


def _entry_points() -> Dict[str, importlib.metadata.EntryPoint]:
  return {
    point.name: point for point in importlib.metadata.entry_points(group=GROUP)
  }
