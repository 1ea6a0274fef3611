"""What a run is: frozen groups of settings, and the algorithm's own.

`Config` holds the groups and, as `own`, the settings that only the chosen
algorithm has; users see those as `agent.FIELD`, too. `change` applies
`group.field=value`, and `to_json` and `from_json` are exact inverses. Only what
asks an algorithm for its own settings needs TensorFlow.
"""

import dataclasses
import json
from typing import (
  Any,
  Collection,
  Dict,
  Iterator,
  List,
  Mapping,
  Sequence,
  Tuple,
)

from tf_mmdrl.core import algorithms, errors, plugins
from tf_mmdrl.ops import kernel_words
from tf_mmdrl.train.config_groups import (
  AgentConfig,
  EnvironmentConfig,
  EvaluationConfig,
  NetworkConfig,
  OptimizerConfig,
  ReplayConfig,
  ScheduleConfig,
  SystemConfig,
)


@dataclasses.dataclass(frozen=True)
class Config:
  """All settings of a run.

  Attributes:
    own: the algorithm's own settings; `completed` has them all.
  """

  environment: EnvironmentConfig = EnvironmentConfig()
  agent: AgentConfig = AgentConfig()
  network: NetworkConfig = NetworkConfig()
  replay: ReplayConfig = ReplayConfig()
  optimizer: OptimizerConfig = OptimizerConfig()
  schedule: ScheduleConfig = ScheduleConfig()
  evaluation: EvaluationConfig = EvaluationConfig()
  system: SystemConfig = SystemConfig()
  own: Mapping[str, Any] = dataclasses.field(default_factory=dict)

  def __post_init__(self):
    schedule, replay = self.schedule, self.replay
    if self.round_steps % schedule.steps_per_update:
      raise errors.UserError(
        "environment.num_envs * schedule.collect_steps must be a multiple of"
        f" schedule.steps_per_update, got {self.environment.num_envs} *"
        f" {schedule.collect_steps} for {schedule.steps_per_update}"
      )
    if self.environment.num_envs % self.system.actors:
      raise errors.UserError(
        "environment.num_envs must be a multiple of system.actors, which share"
        f" the environments, got {self.environment.num_envs} for"
        f" {self.system.actors}"
      )
    least = self.environment.num_envs * (self.agent.n_step + 1)
    if schedule.learning_starts < 2 * least:
      raise errors.UserError(
        f"schedule.learning_starts must be at least {2 * least}, twice the"
        " steps of one sample in each environment, got"
        f" {schedule.learning_starts}"
      )
    if replay.capacity < 2 * least:
      raise errors.UserError(
        f"replay.capacity must be at least {2 * least}, twice the steps of one"
        f" sample in each environment, got {replay.capacity}"
      )

  @property
  def round_steps(self) -> int:
    """Steps of one round: what is collected between two calls of updates."""
    return self.environment.num_envs * self.schedule.collect_steps

  @property
  def slot_envs(self) -> int:
    """Environments of each actor slot."""
    return self.environment.num_envs // self.system.actors

  @property
  def round_updates(self) -> int:
    """Updates of one round."""
    return self.round_steps // self.schedule.steps_per_update

  @property
  def horizon(self) -> int:
    """Steps over which schedules go."""
    return self.schedule.horizon or self.schedule.steps

  @property
  def num_updates(self) -> int:
    """Updates of the whole run, at least 1; for schedules over it."""
    learning = self.horizon - self.schedule.learning_starts
    return max(1, learning // self.schedule.steps_per_update)

  @property
  def algorithm(self) -> algorithms.Algorithm:
    """What `agent.name` stands for."""
    return algorithms.get(self.agent.name)

  @property
  def own_settings(self) -> algorithms.Settings:
    """The algorithm's own settings, checked."""
    kind = self.algorithm.settings
    known = [field.name for field in dataclasses.fields(kind)]
    for name in self.own:
      if name not in known:
        raise _unknown_own(self.agent.name, name, known)
    try:
      return kind(**self.own)
    except errors.UserError as error:
      raise errors.UserError(f"in group 'agent': {error}") from None

  @property
  def run(self) -> algorithms.Run:
    """What the algorithm may know of the run."""
    return algorithms.Run(self.network.num_particles, self.num_updates)

  def completed(self) -> "Config":
    """This configuration with all of the algorithm's own settings."""
    own = dataclasses.asdict(self.own_settings)
    return dataclasses.replace(self, own=own)

  def replace(self, **groups: Dict[str, Any]) -> "Config":
    """A copy with some fields of some groups changed."""
    changed: Dict[str, Any] = {}
    for name, values in groups.items():
      if name == "own":
        changed[name] = {**self.own, **values}
        continue
      changed[name] = _replaced(name, getattr(self, name), values)
    return dataclasses.replace(self, **changed)


_GROUPS = [field.name for field in dataclasses.fields(Config)][:-1]
_SHARED = {
  f"{group}.{field.name}": field
  for group in _GROUPS
  for field in dataclasses.fields(getattr(Config(), group))
}
# Settings of all algorithms in version 0.1 that are some algorithms' own now.
# Runs that have it also have every other algorithm's own settings.
_NOW_OWN = (("network", "embedding"),)


def fields(config: Config) -> Iterator[Tuple[str, Any]]:
  """Every setting: `group.field` and its value."""
  for group in _GROUPS:
    for field in dataclasses.fields(getattr(config, group)):
      yield f"{group}.{field.name}", getattr(getattr(config, group), field.name)
    if group == "agent":
      for name, value in config.own.items():
        yield f"agent.{name}", value


def shared_names() -> List[str]:
  """The settings that all algorithms have."""
  return list(_SHARED)


def help_lines(config: Config) -> Dict[str, str]:
  """`group.field` -> its line of help, the algorithm's own among them."""
  own = dataclasses.fields(config.algorithm.settings)
  every = {**_SHARED, **{f"agent.{field.name}": field for field in own}}
  return {name: field.metadata["help"] for name, field in every.items()}


def change(config: Config, assignments: Sequence[str]) -> Config:
  """Applies `group.field=value`, all at once, so that they fit each other.

  Args:
    config: the configuration to begin with.
    assignments: the changes. If they choose another algorithm, own settings of
      the one before that it does not have are left out.

  Returns:
    The configuration, completed.
  """
  changes = _changes(assignments)
  agent = changes.get("agent", {}).get("name", config.agent.name)
  if agent != config.agent.name:
    known = dataclasses.fields(algorithms.get(agent).settings)
    names = {field.name for field in known}
    own = {name: v for name, v in config.own.items() if name in names}
    config = dataclasses.replace(config, own=own)
  return config.replace(**changes).completed()


def check(
  config: Config, assignments: Sequence[str], *, whole: bool = False
) -> EnvironmentConfig:
  """Raises what `change` would, as far as that needs no TensorFlow.

  So most mistakes are told at once. Most values of an algorithm's own are left
  to `change`.

  Args:
    config: where to begin.
    assignments: the changes.
    whole: whether no others are to come, which an algorithm makes. If they are,
      whether settings fit each other is left to `change`, too.

  Returns:
    The environment that they ask for.
  """
  environment, agent = config.environment, config.agent.name
  changes = _changes(assignments)
  own = changes.pop("own", {})
  for group, values in changes.items():
    changed = _replaced(group, getattr(config, group), values)
    if group == "environment":
      environment = changed
    if group == "agent":
      agent = changed.name
  if whole:
    config.replace(**changes)
  _check_own(agent, own)
  return environment


def _check_own(agent: str, values: Mapping[str, str]) -> None:
  """Raises if an algorithm of ours has no such settings, or no such kernel."""
  if not algorithms.is_ours(agent):
    return
  known = algorithms.own_settings(agent)
  for name in values:
    if name not in known:
      raise _unknown_own(agent, name, known)
  if "kernel" in values:
    kernel_words.check(values["kernel"])


def _unknown_own(
  agent: str, name: str, known: Sequence[str]
) -> errors.UserError:
  kind = f"setting of {agent}"
  others = algorithms.with_setting(name)
  if others:
    return errors.UserError(
      f"unknown {kind} 'agent.{name}'; it is a setting of"
      f" {', '.join(others)}: leave it out, or choose one of these agents"
    )
  shared = [field.name for field in dataclasses.fields(AgentConfig)]
  every = [f"agent.{field}" for field in (*known, *shared)]
  return errors.unknown_name(kind, f"agent.{name}", every)


def _changes(assignments: Sequence[str]) -> Dict[str, Dict[str, Any]]:
  """`group.field=value` by group and field."""
  changes: Dict[str, Dict[str, Any]] = {}
  for text in assignments:
    name, equals, value = text.partition("=")
    group, dot, field = name.strip().partition(".")
    if not equals:
      raise errors.UserError(
        f"a setting is written group.field=value, got {text!r}; for example"
        " schedule.steps=100000"
      )
    if name.strip() not in _SHARED:
      if group != "agent" or not dot:
        raise errors.unknown_name("setting", name.strip(), _SHARED)
      group = "own"
    changes.setdefault(group, {})[field] = value.strip()
  return changes


def _replaced(name: str, group: Any, values: Mapping[str, Any]) -> Any:
  try:
    return dataclasses.replace(group, **values)
  except errors.UserError as error:
    raise errors.UserError(f"in group {name!r}: {error}") from None


def to_json(config: Config) -> Dict[str, Any]:
  """Plain values by group; the algorithm's own settings are the agent's."""
  content = dataclasses.asdict(config)
  content["agent"].update(content.pop("own"))
  return content


def from_json(content: Dict[str, Any]) -> Config:
  """What `to_json` gave, by this version or by one before.

  Args:
    content: values by group. A setting that is not there has its default.

  Returns:
    The configuration; its own settings are not checked, which would need
    TensorFlow.
  """
  groups: Dict[str, Dict[str, Any]] = {}
  for group, values in content.items():
    for field, value in values.items():
      name = f"{group}.{field}"
      if name in _SHARED:
        groups.setdefault(group, {})[field] = value
      elif group == "agent" or (group, field) in _NOW_OWN:
        groups.setdefault("own", {})[field] = value
      else:
        raise errors.unknown_name("setting", name, _SHARED)
  config = Config().replace(**groups)
  old = any(field in content.get(group, {}) for group, field in _NOW_OWN)
  if old and algorithms.is_ours(config.agent.name):  # no other module is loaded
    known = {
      field.name for field in dataclasses.fields(config.algorithm.settings)
    }
    own = {name: value for name, value in config.own.items() if name in known}
    config = dataclasses.replace(config, own=own)
  return config


def imported(config: Config) -> Dict[str, str]:
  """Modules that the settings name -> the setting that names each."""
  found = {}
  for name, value in fields(config):
    # Gymnasium imports whatever stands before a colon.
    is_gymnasium = name == "environment.name" and ":" in value
    if is_gymnasium or isinstance(value, str) and plugins.is_place(value):
      found[value.partition(":")[0]] = f"{name}={value}"
  return found


def refuse_imports(config: Config, allowed: Collection[str]) -> None:
  """Raises if a setting names a module that is not among those allowed.

  Args:
    config: a configuration from a file, which is data and must not choose what
      is run.
    allowed: the modules that a user named.
  """
  for module, setting in imported(config).items():
    if module not in allowed:
      raise errors.UserError(
        f"the setting {setting} would import the module {module!r}, and files"
        f" are not trusted to do that; if you trust it, pass --import {module}"
      )


def missing(content: Dict[str, Any], config: Config) -> List[str]:
  """The settings of `config` that a configuration as JSON does not have."""
  names = (name.partition(".") for name, _ in fields(config))
  return [
    f"{group}.{field}"
    for group, _, field in names
    if field not in content.get(group, {})
  ]


def differences(before: Config, after: Config) -> List[str]:
  """Each setting that differs, as `group.field: before -> after`."""
  old, new = dict(fields(before)), dict(fields(after))
  return [
    f"{name}: {json.dumps(old.get(name))} -> {json.dumps(new.get(name))}"
    for name in {**old, **new}
    if old.get(name) != new.get(name)
  ]
