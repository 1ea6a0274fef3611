"""Configurations with a name.

`published` has the Atari hyperparameters of an algorithm's own paper, `paper`
those of MMDQN's whatever the algorithm; the others are for one machine.
"""

from typing import Dict, NamedTuple, Optional

from tf_mmdrl.core import algorithms, errors
from tf_mmdrl.train import config as configs
from tf_mmdrl.train.config import Config

PUBLISHED, _PAPER, DATA = "published", "paper", "data"


class Preset(NamedTuple):
  """A configuration and what it is for.

  Attributes:
    summary: one line.
    config: the settings.
  """

  summary: str
  config: Config


def check_name(name: str) -> None:
  """Raises if there is no such preset; imports nothing."""
  if name not in PRESETS:
    raise errors.unknown_name("preset", name, PRESETS)


def follows_agent(name: str) -> bool:
  """Whether an algorithm's paper makes a part of the preset."""
  return name in (PUBLISHED, _PAPER)


def get(name: str, agent: Optional[str] = None) -> Config:
  """The preset of that name, for an algorithm.

  Args:
    name: the name of the preset.
    agent: the name of the algorithm; the preset's own if None.

  Returns:
    The configuration, with the settings that choosing the algorithm makes.
  """
  check_name(name)
  config = PRESETS[name].config
  if name == PUBLISHED:
    return _published(config, agent or config.agent.name)
  if name == _PAPER:
    config = _published(config, config.agent.name)
  if agent is None:
    return config
  made = algorithms.get(agent).assignments()
  return configs.change(config, [f"agent.name={agent}", *made])


def _published(config: Config, agent: str) -> Config:
  """An algorithm with the hyperparameters of its paper."""
  algorithm = algorithms.get(agent)
  if not algorithm.published:
    raise errors.UserError(
      f"{agent} has no published Atari hyperparameters, which preset"
      f" {PUBLISHED!r} takes; these have:"
      f" {', '.join(algorithms.published_names())}"
    )
  return configs.change(
    config,
    [
      f"agent.name={agent}",
      *algorithm.assignments(),
      *algorithm.published_assignments(),
    ],
  )


# Learning rates below go with returns of one or two units, as Atari's are with
# its clipped rewards: larger steps in natural rewards than the default's.
_UNIT = "auto:1.5"

_MINATAR = Config().replace(
  environment=dict(
    name="MinAtar/Breakout", num_envs=16, max_episode_steps=5_000
  ),
  agent=dict(n_step=3, unit=_UNIT),
  network=dict(num_particles=32),
  replay=dict(capacity=200_000),
  optimizer=dict(learning_rate=3e-4, epsilon=1e-5),
  schedule=dict(
    steps=3_000_000,
    learning_starts=5_000,
    steps_per_update=4,
    collect_steps=2,
    batch_size=32,
    target_period=2_000,
    epsilon_end=0.02,
    epsilon_steps=100_000,
  ),
  evaluation=dict(period=100_000, num_envs=16, episodes=64),
  system=dict(checkpoint_period=100_000),
)

_ATARI = Config().replace(
  environment=dict(name="Pong", num_envs=8),
  agent=dict(n_step=3, unit=_UNIT),
  network=dict(num_particles=200),
  replay=dict(capacity=1_000_000, prioritized=True),
  # The MMD's gradients are small, 1e-5 to 1e-3 a weight: the usual epsilon of
  # 1.5e-4 would hold most of them back.
  optimizer=dict(learning_rate=2e-4, epsilon=1e-6),
  schedule=dict(
    steps=10_000_000,
    learning_starts=10_000,
    # Twice the paper's updates; with half as many Pong took over twice the
    # steps (docs/results/pong).
    steps_per_update=2,
    target_period=2_000,
    epsilon_steps=100_000,
  ),
  evaluation=dict(period=50_000, num_envs=8, episodes=16),
  system=dict(checkpoint_period=50_000),
)

# What all papers of this family share, since DQN: the games and their rewards,
# the discount, the network, replay, an update of 32 examples every 4 steps, and
# how fast epsilon falls. The rest is `published` in the algorithms' files. An
# iteration is 250k steps of training and 125k of evaluation. Games are played
# as in the code of MMDQN's authors, and an iteration ends with a game;
# docs/environments.md lists what still differs.
_PROTOCOL = Config().replace(
  environment=dict(name="Breakout", num_envs=1, protocol="authors"),
  agent=dict(gamma=0.99, n_step=1, unit="1"),
  network=dict(torso="nature", output_scale=1.0),
  replay=dict(capacity=1_000_000),
  schedule=dict(
    steps=50_000_000,
    steps_per_update=4,
    collect_steps=4,
    batch_size=32,
    epsilon_start=1.0,
    epsilon_steps=1_000_000,
  ),
  evaluation=dict(period=250_000, at="game", num_envs=1, steps=125_000),
  system=dict(checkpoint_period=250_000),
)

PRESETS: Dict[str, Preset] = {
  "quickstart": Preset(
    "MinAtar Breakout, learnt in a few minutes on two cores",
    _MINATAR.replace(
      schedule=dict(steps=200_000, epsilon_steps=50_000),
      evaluation=dict(period=25_000, episodes=32),
      system=dict(checkpoint_period=50_000),
    ),
  ),
  "classic": Preset(
    "CartPole or another small task of Gymnasium, 60k steps",
    Config().replace(
      environment=dict(name="CartPole-v1", num_envs=8),
      # With 3 steps the news that a cart drifts off its track, a hundred steps
      # later, came too late for many a run.
      agent=dict(n_step=10, unit=_UNIT),
      network=dict(num_particles=50),
      replay=dict(capacity=60_000),
      # A rate that stays keeps shaking a policy that is good already.
      optimizer=dict(learning_rate=1e-3, epsilon=1e-5, final_share=0.02),
      schedule=dict(
        steps=60_000,
        learning_starts=1_000,
        steps_per_update=2,
        collect_steps=32,
        batch_size=64,
        target_period=256,
        epsilon_end=0.04,
        epsilon_steps=10_000,
      ),
      evaluation=dict(period=2_000, num_envs=20, episodes=20, epsilon=0.0),
      system=dict(log_period=2_000, checkpoint_period=20_000),
    ),
  ),
  "minatar": Preset("any MinAtar game, 3M steps", _MINATAR),
  DATA: Preset(
    "logged episodes (--data), 50k updates",
    Config().replace(
      environment=dict(num_envs=1),
      network=dict(num_particles=32),
      optimizer=dict(learning_rate=3e-4, epsilon=1e-5),
      # A step is an update here.
      schedule=dict(
        steps=50_000, steps_per_update=1, batch_size=64, target_period=500
      ),
      evaluation=dict(period=10_000, num_envs=16, episodes=32),
      system=dict(log_period=1_000, checkpoint_period=10_000),
    ),
  ),
  "atari": Preset("any Atari game on one desktop machine, 10M steps", _ATARI),
  _PAPER: Preset(
    "the MMDQN paper's Atari experiments with its authors' rules of play,"
    " 200 x 250k steps",
    _PROTOCOL,
  ),
  PUBLISHED: Preset(
    "the hyperparameters of the paper of --agent in games played as in preset"
    " paper, 200 x 250k steps",
    _PROTOCOL,
  ),
  "atari-100k": Preset(
    "any Atari game from 100k steps, an update for each",
    _ATARI.replace(
      environment=dict(num_envs=1),
      agent=dict(n_step=10, double=True),
      network=dict(dueling=True),
      replay=dict(capacity=100_000),
      optimizer=dict(learning_rate=1e-4, gradient_clipping=10.0),
      schedule=dict(
        steps=100_000,
        learning_starts=1_600,
        steps_per_update=1,
        collect_steps=4,
        epsilon_steps=10_000,
      ),
      evaluation=dict(period=20_000, episodes=96),
      system=dict(checkpoint_period=10_000),
    ),
  ),
}
