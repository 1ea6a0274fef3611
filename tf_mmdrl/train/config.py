"""What a run is: frozen groups of settings, each checked when it is made.

A group is a dataclass; a setting is a field with its range and one line of
help. `Config` holds the groups, `change` applies `group.field=value`, and
`to_json` and `from_json` are exact inverses. Nothing here needs TensorFlow.
"""

import dataclasses
import json
from typing import Any, Dict, Iterator, List, Sequence, Tuple

from tf_mmdrl.core import errors
from tf_mmdrl.train import settings


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
  kernel: str = settings.setting(
    "smooth_energy:1",
    "kernel of the MMD, in units; gaussian_mixture:1..10 is the paper's",
  )
  kappa: float = settings.setting(
    1.0, "of the Huber loss of quantiles: qrdqn, iqn, fqf", low=0
  )
  v_min: float = settings.setting(-10.0, "lowest atom, in units: c51, rainbow")
  v_max: float = settings.setting(10.0, "highest atom, in units: c51, rainbow")
  base: str = settings.setting(
    "uniform",
    "what implicit particles are drawn from: implicit_mmdqn",
    choices=("uniform", "normal"),
  )
  target_particles: int = settings.setting(
    64, "N', drawn for targets: iqn, implicit_mmdqn", low=1
  )
  choice_particles: int = settings.setting(
    32, "K, to choose actions by: iqn, implicit_mmdqn", low=1
  )
  entropy: float = settings.setting(0.0, "bonus for even fractions: fqf", low=0)
  fraction_learning_rate: float = settings.setting(
    2.5e-9, "of the proposal of fractions: fqf", above=0
  )
  kernel_learning_rate: float = settings.setting(
    1e-4, "of the kernel's map: adversarial_mmdqn", above=0
  )
  knots: str = settings.setting(
    "", "of that map, joined by commas; none: bandwidths alone"
  )
  bound: float = settings.setting(3.0, "of that map's slopes", above=1)


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
  embedding: int = settings.setting(
    64, "cosines of a draw: iqn, fqf, implicit_mmdqn", low=1
  )


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
  """All settings of a run."""

  environment: EnvironmentConfig = EnvironmentConfig()
  agent: AgentConfig = AgentConfig()
  network: NetworkConfig = NetworkConfig()
  replay: ReplayConfig = ReplayConfig()
  optimizer: OptimizerConfig = OptimizerConfig()
  schedule: ScheduleConfig = ScheduleConfig()
  evaluation: EvaluationConfig = EvaluationConfig()
  system: SystemConfig = SystemConfig()

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
  def num_updates(self) -> int:
    """Updates of the whole run, at least 1; for schedules over it."""
    learning = self.schedule.steps - self.schedule.learning_starts
    return max(1, learning // self.schedule.steps_per_update)

  def replace(self, **groups: Dict[str, Any]) -> "Config":
    """A copy with some fields of some groups changed."""
    changed = {}
    for name, values in groups.items():
      try:
        changed[name] = dataclasses.replace(getattr(self, name), **values)
      except errors.UserError as error:
        raise errors.UserError(f"in group {name!r}: {error}") from None
    return dataclasses.replace(self, **changed)


def fields(config: Config) -> Iterator[Tuple[str, Any, str]]:
  """Every setting: `group.field`, its value, its line of help."""
  for group in dataclasses.fields(config):
    values = getattr(config, group.name)
    for field in dataclasses.fields(values):
      name = f"{group.name}.{field.name}"
      yield name, getattr(values, field.name), field.metadata["help"]


def change(config: Config, assignments: Sequence[str]) -> Config:
  """Applies `group.field=value`; all at once, so that they fit each other."""
  changes: Dict[str, Dict[str, Any]] = {}
  known = [name for name, _, _ in fields(config)]
  for text in assignments:
    name, equals, value = text.partition("=")
    if not equals:
      raise errors.UserError(
        f"a setting is written group.field=value, got {text!r}; for example"
        " schedule.steps=100000"
      )
    if name.strip() not in known:
      raise errors.unknown_name("setting", name.strip(), known)
    group, _, field = name.strip().partition(".")
    changes.setdefault(group, {})[field] = value.strip()
  return config.replace(**changes)


def to_json(config: Config) -> Dict[str, Any]:
  """Plain values by group."""
  return dataclasses.asdict(config)


def from_json(content: Dict[str, Any]) -> Config:
  """What `to_json` gave; every setting must be there and known."""
  known = [name for name, _, _ in fields(Config())]
  flat = {
    f"{group}.{field}": value
    for group, values in content.items()
    for field, value in values.items()
  }
  for name in flat:
    if name not in known:
      raise errors.unknown_name("setting", name, known)
  missing = [name for name in known if name not in flat]
  if missing:
    raise errors.UserError(
      f"the configuration lacks {', '.join(missing)}; it was written by"
      " another version or changed by hand"
    )
  return Config().replace(**content)


def differences(before: Config, after: Config) -> List[str]:
  """Each setting that differs, as `group.field: before -> after`."""
  pairs = zip(fields(before), fields(after))
  return [
    f"{name}: {json.dumps(old)} -> {json.dumps(new)}"
    for (name, old, _), (_, new, _) in pairs
    if old != new
  ]
