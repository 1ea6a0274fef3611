"""The groups of settings, each checked when it is made.

A group is a dataclass; a setting is a field with its range and one line of
help. `train.config` puts the groups together.
"""

import dataclasses

from tf_mmdrl.core import score_words, settings, unit_words


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
  split_rewards: bool = settings.setting(
    False,
    "whether rewards of some Atari games (Pong, MsPacman, Gopher, AirRaid,"
    " UpNDown, Asteroids) are vectors, with a part for each thing that pays",
  )
  rebuild_period: int = settings.setting(
    100_000,
    "steps after which environments that cannot save their state, such as"
    " Atari games unless environment.protocol=authors, start anew; a resumed"
    " run plays again what came since then",
    low=1,
  )
  resume: str = settings.setting(
    "exact",
    "how a stopped run goes on; exact: in the middle of its episodes, as if it"
    " had not stopped, or not at all; fresh: with new episodes, for"
    " environments that cannot be brought back",
    choices=("exact", "fresh"),
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
    check=unit_words.read,
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
    check=score_words.read,
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
  data: str = settings.setting(
    "",
    "data set of logged episodes that the run learns from instead of playing;"
    " none if empty",
  )
  memory: float = settings.setting(
    1.0,
    "gigabytes that transitions of replay.data may take in memory; a larger"
    " data set is read in parts",
    above=0,
  )
  support: float = settings.setting(
    0.0,
    "with replay.data: the target chooses among actions that the logged"
    " behaviour takes at least so often as its most frequent one there, as in"
    " discrete BCQ; 0: among all",
    low=0,
    high=1,
  )


@dataclasses.dataclass(frozen=True)
class OptimizerConfig(settings.Group):
  """The optimizer, which is Adam."""

  learning_rate: float = settings.setting(
    1e-4, "learning rate of the Adam optimizer", above=0
  )
  final_share: float = settings.setting(
    1.0,
    "share of optimizer.learning_rate that is left at the end of"
    " schedule.horizon, to which it falls along a line; 1: it stays",
    above=0,
    high=1,
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
    "steps over which learning rates, importance exponents, annealed kernels"
    " and schedules of agent.exploration go from start to end; 0: the run's"
    " length when it begins, also if --steps makes it longer later",
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
  """How the agent is evaluated: on whole games, with their full score."""

  period: int = settings.setting(
    50_000, "training steps between two evaluations", low=1
  )
  at: str = settings.setting(
    "step",
    "where training pauses for an evaluation; step: at every multiple of"
    " evaluation.period; game: where a game ends that makes the games since the"
    " last evaluation at least evaluation.period steps long, as in the code of"
    " MMDQN's authors (schedule.steps / evaluation.period such phases are a"
    " run; a phase in which no game ends is cut at twice its length)",
    choices=("step", "game"),
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
  max_episode_steps: int = settings.setting(
    100_000,
    "steps after which an evaluation's episode that has not ended counts with"
    " its score so far",
    low=1,
  )
  enough: float = settings.setting(
    1e9,
    "the run ends once an evaluation's mean score is at least this, and below"
    " 1e9; 1e9 or more: no score is enough",
  )
  epsilon: float = settings.setting(
    0.001, "share of random actions in an evaluation", low=0, high=1
  )
  score: str = settings.setting(
    "mean",
    "what actions maximise in an evaluation: mean, cvar:LEVEL,"
    " mean_deviation:LAMBDA, wang:ETA, cpw:ETA",
    check=score_words.read_steady,
  )


@dataclasses.dataclass(frozen=True)
class SystemConfig(settings.Group):
  """How it is run."""

  seed: int = settings.setting(
    0,
    "seed of everything random in a run; the same seed gives the same run",
    low=0,
  )
  actors: int = settings.setting(
    1,
    "how many actors play at the same time; they share environment.num_envs,"
    " and each has a part of replay for itself",
    low=1,
  )
  order: str = settings.setting(
    "exact",
    "in which order actors' chunks enter replay; exact: that of their slots, so"
    " that a run is the same wherever it is played; free: as they come, on"
    " several machines, which no run repeats bit for bit",
    choices=("exact", "free"),
  )
  staleness: int = settings.setting(
    4,
    "with system.order=free: rounds of updates that may be made while a chunk"
    " is played, so how old the weights may be that it was played by",
    low=1,
  )
  xla: str = settings.setting(
    "auto",
    "whether XLA compiles updates; auto: what it makes faster, all updates of"
    " a round as one piece if the network is small",
    choices=("auto", "on", "off"),
  )
  mixed_precision: bool = settings.setting(
    False, "whether layers compute in bfloat16 where it is safe"
  )
  devices: str = settings.setting(
    "one",
    "how many devices learn; all: every GPU, or every CPU that TensorFlow sees"
    " if there is none, takes an equal share of each batch",
    choices=("one", "all"),
  )
  memory_growth: bool = settings.setting(
    False,
    "whether TensorFlow takes a GPU's memory as it needs it, instead of all of"
    " it at once",
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
