"""The parts of a run, made from its configuration."""

from typing import Any, NamedTuple, Optional, Union

import numpy as np
import tensorflow as tf
from tf_agents.environments import py_environment
from tf_agents.specs import tensor_spec

from tf_mmdrl import agents, environments, networks, policies, replay
from tf_mmdrl.agents import base
from tf_mmdrl.core import errors
from tf_mmdrl.environments import atari
from tf_mmdrl.networks import torsos
from tf_mmdrl.policies import score_names as policy_names
from tf_mmdrl.train.actor import Actor
from tf_mmdrl.train.config import Config
from tf_mmdrl.train.exact_environment import ExactEnvironment

_SMALLEST_NATURE = 36  # pixels that the Nature convolutions need, each way


class Seeds(NamedTuple):
  """One seed for each thing that is random, all from the run's seed.

  Each actor slot has its own for its environments and its exploration.
  """

  environment: int
  evaluation: int
  exploration: int
  network: int
  replay: int


def seeds(config: Config, slot: int = 0) -> Seeds:
  """Independent seeds within 31 bits; those of a run are slot 0's."""
  sequence = np.random.SeedSequence(
    config.system.seed, spawn_key=(slot,) if slot else ()
  )
  drawn = sequence.generate_state(len(Seeds._fields)) >> 1
  return Seeds(*map(int, drawn))


def environment(
  config: Config, slot: int = 0, *, evaluation: bool = False, **options: Any
) -> environments.Environment:
  """The batch of environments that a slot plays, or to be evaluated in."""
  group = config.environment
  all_seeds = seeds(config, slot)
  num_envs = config.evaluation.num_envs if evaluation else config.slot_envs
  made = environments.make_environment(
    group.name,
    num_envs=num_envs,
    seed=all_seeds.evaluation if evaluation else all_seeds.environment,
    protocol=group.protocol,
    evaluation=evaluation,
    max_episode_steps=group.max_episode_steps or None,
    split_rewards=group.split_rewards,
    accrued_gamma=(
      config.agent.gamma if config.own_settings.accrues_rewards else None
    ),
    **options,
  )
  if tf.nest.is_nested(made.observation_spec()):
    made.close()
    raise errors.UserError(
      f"{group.name!r} has the nested observation {made.observation_spec()};"
      " training needs one array: flatten it with a Gymnasium wrapper"
    )
  return made


def check(config: Config) -> None:
  """Raises what a run of this configuration would raise when it begins."""
  require_whole_phases(config)
  single = config.replace(evaluation=dict(num_envs=1))
  env = environment(single, evaluation=True)
  try:
    observation, action = tensor_spec.from_spec(
      (env.observation_spec(), env.action_spec())
    )
    with errors.about(config.environment.name):
      network(config, observation, action, dimensions(env))
  finally:
    env.close()
  config.own_settings.options(config.run)
  policy_names.parse(config.agent.exploration, lambda: 0.0)
  policy_names.parse_steady(config.evaluation.score)


def require_whole_phases(config: Config) -> None:
  """Raises if steps were asked for that no number of phases makes up."""
  group, steps = config.evaluation, config.schedule.steps
  if group.at == "game" and steps % group.period:
    raise errors.UserError(
      "with evaluation.at=game a run is whole phases of evaluation.period ="
      f" {group.period} steps, got schedule.steps = {steps}; pass a multiple of"
      " it, a shorter evaluation.period, or --set evaluation.at=step"
    )


def dimensions(env: py_environment.PyEnvironment) -> Optional[int]:
  """D, if an environment's rewards are vectors; None if they are numbers."""
  shape = env.reward_spec().shape
  return shape[0] if shape else None


def network(
  config: Config,
  observation_spec: Any,
  action_spec: Any,
  dimensions: Optional[int] = None,
) -> networks.ReturnNetwork:
  """The network observation -> return distributions [B, A, N].

  Args:
    config: the run's.
    observation_spec: of the environment.
    action_spec: of the environment.
    dimensions: D, if rewards are vectors, for [B, A, N, D].

  Returns:
    The network.
  """
  shape, group = observation_spec.shape, config.network
  torso = group.torso
  if torso == "auto":
    large = len(shape) == 3 and min(shape[:2]) >= _SMALLEST_NATURE
    small = "minatar" if len(shape) == 3 else "mlp"
    torso = "nature" if large else small
  if torso != "mlp" and len(shape) != 3:
    raise errors.UserError(
      f"the torso {torso!r} needs images, got observations of shape"
      f" {tuple(shape)}; set network.torso=mlp"
    )
  convolutions, dense = {
    "nature": (torsos.NATURE_CONV, torsos.NATURE_FC),
    "minatar": (torsos.MINATAR_CONV, torsos.MINATAR_FC),
    "mlp": (None, (128, 128)),
  }[torso]
  return networks.ReturnNetwork(
    observation_spec,
    action_spec,
    config.own_settings.head(config.run._replace(dimensions=dimensions)),
    conv_layer_params=convolutions,
    fc_layer_params=dense,
    padding=group.padding,
    output_scale=group.output_scale,
    dueling=group.dueling,
    noisy_layers=group.noisy,
    noise=group.noise,
  )


def agent(
  config: Config, env: py_environment.PyEnvironment, **options: Any
) -> base.ReturnDistributionAgent:
  """The agent, with weights that depend on the seed only.

  Args:
    config: the run's.
    env: what has the specs of time steps and actions.
    **options: of the agent, beside those of the settings.

  Returns:
    The agent.
  """
  tf.keras.utils.set_random_seed(seeds(config).network)
  time_step_spec = tensor_spec.from_spec(env.time_step_spec())
  action_spec = tensor_spec.from_spec(env.action_spec())
  optimizer = tf.keras.optimizers.Adam(
    learning_rate(config), epsilon=config.optimizer.epsilon
  )
  per_update = config.schedule.steps_per_update
  made = config.algorithm.agent(
    time_step_spec,
    action_spec,
    network(config, time_step_spec.observation, action_spec, dimensions(env)),
    optimizer,
    **config.own_settings.options(config.run),
    gamma=config.agent.gamma,
    n_step_update=config.agent.n_step,
    double=config.agent.double,
    munchausen=agents.Munchausen() if config.agent.munchausen else None,
    unit=config.agent.unit,
    reward_scale_factor=config.agent.reward_scale,
    seed=seeds(config).network,
    target_update_tau=config.schedule.target_tau,
    target_update_period=max(1, config.schedule.target_period // per_update),
    gradient_clipping=config.optimizer.gradient_clipping or None,
    jit_compile={"auto": None, "on": True, "off": False}[config.system.xla],
    **options,
  )
  if not isinstance(made, base.ReturnDistributionAgent):
    raise errors.UserError(
      f"the agent {config.agent.name!r} must make a {base.__name__}"
      f".ReturnDistributionAgent, got a {type(made).__name__}; its"
      " Algorithm(agent=...) is the class, or a function that returns one"
    )
  made.initialize()
  return made


def learning_rate(config: Config) -> Any:
  """Adam's: a number, or a line over the updates of the whole run."""
  group = config.optimizer
  if group.final_share == 1:
    return group.learning_rate
  return tf.keras.optimizers.schedules.PolynomialDecay(
    group.learning_rate,
    decay_steps=config.num_updates,
    end_learning_rate=group.learning_rate * group.final_share,
  )


def replay_shards(
  config: Config,
  env: environments.Environment,
  data_spec: Any,
) -> replay.ShardedReplay:
  """An empty replay: a shard for the steps of each slot's environments.

  Args:
    config: the run's.
    env: a slot's environments.
    data_spec: the spec of one step, as the agent's `collect_data_spec`.

  Returns:
    Replay.
  """

  def prioritized(batch_size, max_length):
    return replay.PrioritizedSampler(
      batch_size, max_length, alpha=config.replay.alpha
    )

  shards = [
    replay.FrameReplayBuffer(
      data_spec,
      batch_size=config.slot_envs,
      max_length=-(-config.replay.capacity // config.environment.num_envs),
      stack=frame_stack(env),
      n_step=config.agent.n_step,
      sampler=(
        prioritized if config.replay.prioritized else replay.UniformSampler
      ),
      seed=seeds(config, slot).replay,
    )
    for slot in range(config.system.actors)
  ]
  return replay.ShardedReplay(shards)


def frame_stack(env: environments.Environment) -> int:
  """How many frames of a game an observation shows."""
  is_atari = isinstance(env, atari.AtariEnvironment)
  return env.protocol.stack if is_atari else 1


def evaluation_player(
  config: Config, return_network: networks.ReturnNetwork
) -> policies.Player:
  """Who plays while a run is evaluated."""
  return policies.Player(
    return_network,
    return_network.num_actions,
    score=config.own_settings.score(
      policy_names.parse_steady(config.evaluation.score)
    ),
  )


def actor(config: Config, env: environments.Environment, slot: int) -> Actor:
  """Who collects the experience of a slot, with a network of its own."""
  observation, action = tensor_spec.from_spec(
    (env.observation_spec(), env.action_spec())
  )
  net = network(config, observation, action, dimensions(env))
  net.create_variables()
  progress = tf.Variable(0.0, trainable=False)
  player = policies.Player(
    net,
    net.num_actions,
    score=config.own_settings.score(
      policy_names.parse(config.agent.exploration, progress.read_value)
    ),
    noisy=config.network.noisy,
  )
  return Actor(
    ExactEnvironment(
      env,
      -(-config.environment.rebuild_period // config.environment.num_envs),
      resume=config.environment.resume,
    ),
    policies.ArrayPlayer(
      player.act, net.num_actions, seeds(config, slot).exploration
    ),
    [*net.variables, progress],
    # All slots play alike, so the run is as many times further.
    lambda steps: epsilon(config, steps * config.system.actors),
  )


def epsilon(config: Config, steps: Union[int, np.ndarray]) -> np.ndarray:
  """Exploration: constant until learning starts, then a line, then constant.

  Args:
    config: the run's.
    steps: steps of the run, [T] or one.

  Returns:
    Shares of random actions; constant again when the line has ended.
  """
  schedule = config.schedule
  share = (steps - schedule.learning_starts) / schedule.epsilon_steps
  share = np.clip(share, 0.0, 1.0)
  first, last = schedule.epsilon_start, schedule.epsilon_end
  return first + share * (last - first)


def beta(config: Config, step: int) -> float:
  """The exponent of importance weights: a line over the whole run."""
  share = min(1.0, step / config.horizon)
  first, last = config.replay.beta_start, config.replay.beta_end
  return first + share * (last - first)
