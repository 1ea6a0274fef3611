"""What an algorithm is, and where each lies: one file, found by its name.

The modules are imported when they are asked for, so that help and the list of
algorithms need no TensorFlow. Besides the names below, `package.module:NAME` is
an algorithm of your own, and installed packages bring theirs by entry points of
the group `tf_mmdrl.agents`.
"""

import dataclasses
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
  Type,
)

from tf_mmdrl.core import errors, plugins, settings

GROUP = "tf_mmdrl.agents"  # of entry points
_ATTRIBUTE = "ALGORITHM"


class _Listed(NamedTuple):
  """What is said of an algorithm before it is imported.

  Attributes:
    summary: as in its own file.
    own: the names of its own settings.
  """

  summary: str
  own: Sequence[str] = ()


_DRAWN = ("target_particles", "choice_particles", "embedding")
# Name of an algorithm in agents/NAME_agent.py -> what is there, too: so that
# `mmdrl agents` and errors about settings need no TensorFlow.
_OURS: Dict[str, _Listed] = {
  "dqn": _Listed("expected returns by Q-learning"),
  "double_dqn": _Listed("DQN whose online network chooses the target's action"),
  "c51": _Listed(
    "weights of 51 fixed returns by projection and cross-entropy",
    ("v_min", "v_max"),
  ),
  "qrdqn": _Listed(
    "quantiles at even levels by quantile regression", ("kappa",)
  ),
  "iqn": _Listed("the quantile function at random levels", (*_DRAWN, "kappa")),
  "fqf": _Listed(
    "quantiles at levels that the network proposes",
    ("kappa", "embedding", "entropy", "fraction_learning_rate"),
  ),
  "rainbow": _Listed(
    "C51, double, dueling, prioritised, n-step and noisy", ("v_min", "v_max")
  ),
  "mmdqn": _Listed("free particles by moment matching", ("kernel",)),
  "implicit_mmdqn": _Listed(
    "particles as images of draws, any number of them",
    (*_DRAWN, "base", "kernel"),
  ),
  "weighted_mmdqn": _Listed("particles with learnt weights", ("kernel",)),
  "adversarial_mmdqn": _Listed(
    "the kernel learns to tell prediction and target apart",
    ("kernel", "kernel_learning_rate", "knots", "bound"),
  ),
  "rainbow_mmdqn": _Listed(
    "MMDQN, double, dueling, prioritised by MMD, n-step and noisy",
    ("kernel",),
  ),
  "joint_mmdqn": _Listed(
    "particles in R^D of several returns at once",
    ("kernel", "distance", "utility", "criterion", "accrued"),
  ),
}


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
  return [*_OURS, *sorted(set(_entry_points()) - set(_OURS))]


def summary(name: str) -> str:
  """What `mmdrl agents` says of one of `names()`; imports nothing."""
  if is_ours(name):
    return _OURS[name].summary
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
    place = f"tf_mmdrl.agents.{name}_agent:{_ATTRIBUTE}"
  elif ":" in name:
    place = name
  else:
    place = _entry_points()[name].value
  return plugins.load("agent", place, Algorithm)


def own_settings(name: str) -> Sequence[str]:
  """The names of the own settings of an algorithm that is ours."""
  return _OURS[name].own


def with_setting(field: str) -> List[str]:
  """The algorithms here that have an own setting of that name.

  Args:
    field: the setting's name, without its group.

  Returns:
    Their names.
  """
  return [name for name, listed in _OURS.items() if field in listed.own]


def is_ours(name: str) -> bool:
  """Whether this library itself has an algorithm of that name."""
  return name in _OURS


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
