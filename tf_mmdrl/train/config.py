"""What a run is: frozen groups of settings, each checked when it is made.

A group is a dataclass; a setting is a field with its range and one line of
help. `Config` holds the groups and, as `own`, the settings that only the chosen
algorithm has; users see those as `agent.FIELD`, too. `change` applies
`group.field=value`, and `to_json` and `from_json` are exact inverses. Only what
asks an algorithm for its own settings needs TensorFlow.
"""

import dataclasses
import json
from typing import Any, Dict, Iterator, List, Mapping, Sequence, Tuple

from tf_mmdrl.core import algorithms, errors, settings


@dataclasses.dataclass(frozen=True)
class EnvironmentConfig(settings.Group):
  """What is played."""

  name: str = settings.setting(
    "MinAtar/Breakout", "the game, or the id of a Gymnasium environment"
  )
  num_envs: int = settings.setting(
    8, "how many environments are played at the same time in training", low=1
  )
  protocol: str = settings.setting(
    "paper",
    "how Atari games are played; paper: begun with up to 30 no-ops, and a lost"
    " life is an end for learning; authors: the same as in the code of MMDQN's"
    " authors, exactly but slower; sticky: actions are repeated at random",
    choices=("paper", "authors", "sticky"),
  )
  max_episode_steps: int = settings.setting(
    0,
    "steps after which an episode is cut off; 0: only where the environment"
    " itself cuts it off",
    low=0,
  )
  rebuild_period: int = settings.setting(
    100_000,
    "steps after which environments that cannot save their state, such as"
    " Atari games unless environment.protocol=authors, start anew; a resumed"
    " run plays again what came since then",
    low=1,
  )


@dataclasses.dataclass(frozen=True)
class AgentConfig(settings.Group):
  """How it learns."""

  name: str = settings.setting(
    "mmdqn", "the algorithm; mmdrl agents lists them"
  )
  gamma: float = settings.setting(
    0.99,
    "discount: what a reward counts if it comes one step later",
    low=0,
    high=1,
  )
  n_step: int = settings.setting(
    1,
    "n of n-step returns: rewards that are summed before the target network's"
    " estimate is added",
    low=1,
  )
  double: bool = settings.setting(
    False,
    "whether the online network chooses the target's action, as in double"
    " Q-learning, instead of the target network",
  )
  munchausen: bool = settings.setting(
    False,
    "whether the policy's log-probability joins the reward and the target"
    " averages over actions (Munchausen)",
  )
  unit: str = settings.setting(
    "auto",
    "how many natural rewards make one unit of return, in which losses are"
    " computed; auto: found from the rewards; auto:X: found so that returns"
    " are about X units",
  )
  reward_scale: float = settings.setting(
    1.0,
    "number that rewards are multiplied by before the agent learns from them",
    above=0,
  )
  exploration: str = settings.setting(
    "mean",
    "what actions maximise while training, besides the random ones of"
    " schedule.epsilon_*: mean, thompson, bootstrapped, ucb:BETA, boltzmann:T",
  )


@dataclasses.dataclass(frozen=True)
class NetworkConfig(settings.Group):
  """What it learns with."""

  torso: str = settings.setting(
    "auto",
    "the network's layers before its head: convolutions of DQN (nature) or for"
    " MinAtar, or dense layers (mlp); auto: by the observation's shape",
    choices=("auto", "nature", "minatar", "mlp"),
  )
  padding: str = settings.setting(
    "valid",
    "padding of convolutions: valid as in DQN's paper, same as in the code of"
    " MMDQN's authors",
    choices=("valid", "same"),
  )
  num_particles: int = settings.setting(
    200,
    "N: how many particles, quantiles or atoms describe the return of an"
    " action",
    low=1,
  )
  output_scale: float = settings.setting(
    0.1,
    "number that the last layer's random first weights are multiplied by; 1 in"
    " the code of MMDQN's authors",
    above=0,
  )
  dueling: bool = settings.setting(
    False,
    "whether the head has separate streams for a state's value and the"
    " actions' advantages",
  )
  noisy: bool = settings.setting(
    False, "whether the head's weights have learnt noise, which explores"
  )
  noise: float = settings.setting(
    0.5, "sigma_0: first size of the noise of network.noisy", above=0
  )


@dataclasses.dataclass(frozen=True)
class ReplayConfig(settings.Group):
  """What it remembers."""

  capacity: int = settings.setting(
    1_000_000, "steps that replay keeps, over all environments together", low=1
  )
  prioritized: bool = settings.setting(
    False, "whether examples with a larger loss are drawn more often"
  )
  alpha: float = settings.setting(
    0.5,
    "exponent of the priorities of prioritized replay; 0 draws all examples"
    " alike",
    low=0,
    high=1,
  )
  beta_start: float = settings.setting(
    0.4,
    "exponent of the importance weights of prioritized replay at the first"
    " step",
    low=0,
    high=1,
  )
  beta_end: float = settings.setting(
    1.0,
    "exponent of the importance weights of prioritized replay at the last step",
    low=0,
    high=1,
  )


@dataclasses.dataclass(frozen=True)
class OptimizerConfig(settings.Group):
  """Adam."""

  learning_rate: float = settings.setting(
    1e-4, "learning rate of the Adam optimizer", above=0
  )
  epsilon: float = settings.setting(
    1.5e-4,
    "epsilon of the Adam optimizer: added to the root of the mean squared"
    " gradient that steps are divided by",
    above=0,
  )
  gradient_clipping: float = settings.setting(
    0.0,
    "norm that the gradient of each weight tensor is clipped to; 0: no"
    " clipping",
    low=0,
  )


@dataclasses.dataclass(frozen=True)
class ScheduleConfig(settings.Group):
  """When; all in agent steps, over all environments."""

  steps: int = settings.setting(
    1_000_000, "length of the run in agent steps, over all environments", low=1
  )
  horizon: int = settings.setting(
    0,
    "steps over which importance exponents, annealed kernels and schedules of"
    " agent.exploration go from start to end; 0: the run's length when it"
    " begins, also if --steps makes it longer later",
    low=0,
  )
  learning_starts: int = settings.setting(
    20_000, "steps that are played before the first update"
  )
  steps_per_update: int = settings.setting(
    4, "steps that are played for each update of the network", low=1
  )
  collect_steps: int = settings.setting(
    1,
    "steps that each environment plays in a round, before the round's updates"
    " are made together",
    low=1,
  )
  batch_size: int = settings.setting(
    32, "how many examples from replay one update learns from", low=1
  )
  target_period: int = settings.setting(
    10_000,
    "steps that are played between two updates of the target network",
    low=1,
  )
  target_tau: float = settings.setting(
    1.0,
    "share of the online network's weights in an update of the target network;"
    " 1: a copy",
    above=0,
    high=1,
  )
  epsilon_start: float = settings.setting(
    1.0, "share of random actions until learning starts", low=0, high=1
  )
  epsilon_end: float = settings.setting(
    0.01,
    "share of random actions once epsilon has fallen, after"
    " schedule.epsilon_steps",
    low=0,
    high=1,
  )
  epsilon_steps: int = settings.setting(
    250_000,
    "steps in which the share of random actions falls to schedule.epsilon_end,"
    " counted from schedule.learning_starts",
    low=1,
  )


@dataclasses.dataclass(frozen=True)
class EvaluationConfig(settings.Group):
  """How it is judged, on whole games with their full score."""

  period: int = settings.setting(
    50_000, "training steps between two evaluations", low=1
  )
  num_envs: int = settings.setting(
    8,
    "how many environments are played at the same time in an evaluation",
    low=1,
  )
  episodes: int = settings.setting(
    16, "episodes of an evaluation, an equal number in each environment", low=1
  )
  steps: int = settings.setting(
    0,
    "if above 0, an evaluation plays whole episodes until so many steps are"
    " over, instead of evaluation.episodes",
    low=0,
  )
  enough: float = settings.setting(
    1e9, "the run ends once an evaluation's mean score is at least this"
  )
  epsilon: float = settings.setting(
    0.001, "share of random actions in an evaluation", low=0, high=1
  )
  score: str = settings.setting(
    "mean",
    "what actions maximise in an evaluation: mean, cvar:LEVEL,"
    " mean_deviation:LAMBDA, wang:ETA, cpw:ETA",
  )


@dataclasses.dataclass(frozen=True)
class SystemConfig(settings.Group):
  """How it is run."""

  seed: int = settings.setting(
    0,
    "seed of everything random in a run; the same seed gives the same run",
    low=0,
  )
  xla: str = settings.setting(
    "auto",
    "whether XLA compiles updates; auto: the parts that it makes faster",
    choices=("auto", "on", "off"),
  )
  mixed_precision: bool = settings.setting(
    False, "whether layers compute in bfloat16 where it is safe"
  )
  deterministic: bool = settings.setting(
    True,
    "whether TensorFlow must give the same numbers in each run, even where it"
    " could be faster",
  )
  log_period: int = settings.setting(
    5_000, "training steps between two rows of metrics.csv", low=1
  )
  checkpoint_period: int = settings.setting(
    50_000, "training steps between two checkpoints", low=1
  )
  checkpoints_kept: int = settings.setting(
    2, "how many of the newest checkpoints are kept", low=1
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
        raise self._unknown_own(name, known)
    try:
      return kind(**self.own)
    except errors.UserError as error:
      raise errors.UserError(f"in group 'agent': {error}") from None

  def _unknown_own(self, name: str, known: Sequence[str]) -> errors.UserError:
    kind = f"setting of {self.agent.name}"
    others = algorithms.with_setting(name)
    if others:
      return errors.UserError(
        f"unknown {kind} 'agent.{name}'; it is a setting of"
        f" {', '.join(others)}: leave it out, or choose one of these agents"
      )
    shared = [field.name for field in dataclasses.fields(AgentConfig)]
    every = [f"agent.{field}" for field in (*known, *shared)]
    return errors.unknown_name(kind, f"agent.{name}", every)

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
