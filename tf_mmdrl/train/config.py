"""What a run is: frozen groups of settings, each checked when it is made.

A group is a dataclass; a setting is a field with its range and one line of
help. `Config` holds the groups and, as `own`, the settings that only the chosen
algorithm has; users see those as `agent.FIELD`, too. `change` applies
`group.field=value`, and `to_json` and `from_json` are exact inverses. Only what
asks an algorithm for its own settings needs TensorFlow.
"""

import dataclasses
import json
from typing import Any, Callable, Dict, Iterator, List, Mapping, Sequence, Tuple

from tf_mmdrl.core import algorithms, errors, settings


@dataclasses.dataclass(frozen=True)
class EnvironmentConfig(settings.Group):
  """What is played."""

  name: str = settings.setting("MinAtar/Breakout", "game or Gymnasium id")
  num_envs: int = settings.setting(8, "environments stepped together", low=1)
  protocol: str = settings.setting(
    "paper", "how Atari games are played", choices=("paper", "sticky")
  )
  max_episode_steps: int = settings.setting(
    0, "where an episode is cut off; 0: where the environment does", low=0
  )
  rebuild_period: int = settings.setting(
    100_000,
    "steps between fresh starts of environments that cannot save their state",
    low=1,
  )


@dataclasses.dataclass(frozen=True)
class AgentConfig(settings.Group):
  """How it learns."""

  name: str = settings.setting("mmdqn", "the algorithm")
  gamma: float = settings.setting(0.99, "discount", low=0, high=1)
  n_step: int = settings.setting(1, "n of n-step returns", low=1)
  double: bool = settings.setting(
    False, "the online network chooses target actions"
  )
  munchausen: bool = settings.setting(
    False, "a log-policy bonus and a soft target"
  )
  unit: str = settings.setting(
    "auto",
    "natural rewards of one unit of return, in which losses are computed;"
    " auto: found from the rewards; auto:X: so that returns are about X units",
  )
  reward_scale: float = settings.setting(
    1.0, "what multiplies rewards in learning", above=0
  )
  exploration: str = settings.setting(
    "mean",
    "what exploring actions maximise: mean, thompson, bootstrapped, ucb:BETA,"
    " boltzmann:T",
  )


@dataclasses.dataclass(frozen=True)
class NetworkConfig(settings.Group):
  """What it learns with."""

  torso: str = settings.setting(
    "auto",
    "layers before the particles; auto: by the observation's shape",
    choices=("auto", "nature", "minatar", "mlp"),
  )
  padding: str = settings.setting(
    "valid", "of convolutions", choices=("valid", "same")
  )
  num_particles: int = settings.setting(
    200, "N: particles, quantiles or atoms of an action", low=1
  )
  output_scale: float = settings.setting(
    0.1,
    "what multiplies the last layer's first weights; 1 in the authors' code",
    above=0,
  )
  dueling: bool = settings.setting(False, "separate value and advantage")
  noisy: bool = settings.setting(
    False, "noise in the head's weights, to explore"
  )
  noise: float = settings.setting(0.5, "sigma_0, that noise's size", above=0)


@dataclasses.dataclass(frozen=True)
class ReplayConfig(settings.Group):
  """What it remembers."""

  capacity: int = settings.setting(1_000_000, "steps kept, over all", low=1)
  prioritized: bool = settings.setting(False, "draw by the size of the loss")
  alpha: float = settings.setting(0.5, "exponent of priorities", low=0, high=1)
  beta_start: float = settings.setting(
    0.4, "exponent of importance weights at first", low=0, high=1
  )
  beta_end: float = settings.setting(1.0, "and at the last step", low=0, high=1)


@dataclasses.dataclass(frozen=True)
class OptimizerConfig(settings.Group):
  """Adam."""

  learning_rate: float = settings.setting(1e-4, "step size", above=0)
  epsilon: float = settings.setting(1.5e-4, "Adam's epsilon", above=0)
  gradient_clipping: float = settings.setting(
    0.0, "norm to clip each gradient to; 0: no clipping", low=0
  )


@dataclasses.dataclass(frozen=True)
class ScheduleConfig(settings.Group):
  """When; all in agent steps, over all environments."""

  steps: int = settings.setting(1_000_000, "length of the run", low=1)
  horizon: int = settings.setting(
    0,
    "steps over which schedules go: beta, annealed kernels, exploration; 0:"
    " the run's length when it begins, which longer --steps leave as it is",
    low=0,
  )
  learning_starts: int = settings.setting(
    20_000, "steps before the first update"
  )
  steps_per_update: int = settings.setting(4, "steps for each update", low=1)
  collect_steps: int = settings.setting(
    1, "steps of each environment between two calls of updates", low=1
  )
  batch_size: int = settings.setting(32, "examples of an update", low=1)
  target_period: int = settings.setting(
    10_000, "steps between updates of the target network", low=1
  )
  target_tau: float = settings.setting(
    1.0, "share of new weights in such an update", above=0, high=1
  )
  epsilon_start: float = settings.setting(
    1.0, "exploration at first", low=0, high=1
  )
  epsilon_end: float = settings.setting(
    0.01, "exploration at last", low=0, high=1
  )
  epsilon_steps: int = settings.setting(
    250_000, "steps from first to last, once learning starts", low=1
  )


@dataclasses.dataclass(frozen=True)
class EvaluationConfig(settings.Group):
  """How it is judged, on whole games with their full score."""

  period: int = settings.setting(50_000, "steps between evaluations", low=1)
  num_envs: int = settings.setting(8, "environments stepped together", low=1)
  episodes: int = settings.setting(
    16, "episodes, an equal number in each environment", low=1
  )
  steps: int = settings.setting(
    0, "if above 0, episodes until so many steps instead", low=0
  )
  enough: float = settings.setting(
    1e9, "an evaluation with this score ends the run"
  )
  epsilon: float = settings.setting(0.001, "random actions", low=0, high=1)
  score: str = settings.setting(
    "mean",
    "what actions maximise: mean, cvar:LEVEL, mean_deviation:LAMBDA, wang:ETA,"
    " cpw:ETA",
  )


@dataclasses.dataclass(frozen=True)
class SystemConfig(settings.Group):
  """How it is run."""

  seed: int = settings.setting(0, "of everything random", low=0)
  xla: str = settings.setting(
    "auto", "compile updates with XLA", choices=("auto", "on", "off")
  )
  mixed_precision: bool = settings.setting(False, "bfloat16 where it is safe")
  deterministic: bool = settings.setting(
    True, "TensorFlow's ops may not trade exactness for speed"
  )
  log_period: int = settings.setting(5_000, "steps between rows", low=1)
  checkpoint_period: int = settings.setting(
    50_000, "steps between checkpoints", low=1
  )
  checkpoints_kept: int = settings.setting(2, "the newest ones", low=1)


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
        shared = [field.name for field in dataclasses.fields(AgentConfig)]
        raise errors.unknown_name(
          f"setting of {self.agent.name}",
          f"agent.{name}",
          [f"agent.{field}" for field in (*known, *shared)],
        )
    try:
      return kind(**self.own)
    except errors.UserError as error:
      raise errors.UserError(f"in group 'agent': {error}") from None

  @property
  def run(self) -> algorithms.Run:
    """What the algorithm may know of the run."""
    return algorithms.Run(self.network.num_particles, self.num_updates)

  def completed(self) -> "Config":
    """The same with all of the algorithm's own settings, in their types."""
    own = dataclasses.asdict(self.own_settings)
    return dataclasses.replace(self, own=own)

  def replace(self, **groups: Dict[str, Any]) -> "Config":
    """A copy with some fields of some groups changed."""
    changed: Dict[str, Any] = {}
    for name, values in groups.items():
      if name == "own":
        changed[name] = {**self.own, **values}
        continue
      try:
        changed[name] = dataclasses.replace(getattr(self, name), **values)
      except errors.UserError as error:
        raise errors.UserError(f"in group {name!r}: {error}") from None
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


def help_lines(config: Config) -> Dict[str, str]:
  """`group.field` -> its line of help, the algorithm's own among them."""
  own = dataclasses.fields(config.algorithm.settings)
  every = {**_SHARED, **{f"agent.{field.name}": field for field in own}}
  return {name: field.metadata["help"] for name, field in every.items()}


def change(config: Config, assignments: Sequence[str]) -> Config:
  """Applies `group.field=value`, all at once, so that they fit each other.

  Args:
    config: where to begin.
    assignments: the changes. If they choose another algorithm, own settings of
      the one before that it does not have are left out.

  Returns:
    The configuration, completed.
  """
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
  agent = changes.get("agent", {}).get("name", config.agent.name)
  if agent != config.agent.name:
    known = dataclasses.fields(algorithms.get(agent).settings)
    names = {field.name for field in known}
    own = {name: v for name, v in config.own.items() if name in names}
    config = dataclasses.replace(config, own=own)
  return config.replace(**changes).completed()


def to_json(config: Config) -> Dict[str, Any]:
  """Plain values by group; the algorithm's own settings are the agent's."""
  content = dataclasses.asdict(config)
  content["agent"].update(content.pop("own"))
  return content


def from_json(
  content: Dict[str, Any], note: Callable[[str], None] = lambda text: None
) -> Config:
  """What `to_json` gave, by this version or by one before.

  Args:
    content: values by group.
    note: is told of each setting that was not there yet and has its default.

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
  for name, value in fields(config):
    group, _, field = name.partition(".")
    if name in _SHARED and field not in groups.get(group, {}):
      note(f"the run was made before {name}, which is {value} for it")
  return config


def differences(before: Config, after: Config) -> List[str]:
  """Each setting that differs, as `group.field: before -> after`."""
  old, new = dict(fields(before)), dict(fields(after))
  return [
    f"{name}: {json.dumps(old.get(name))} -> {json.dumps(new.get(name))}"
    for name in {**old, **new}
    if old.get(name) != new.get(name)
  ]
