"""Small runs that the tests of training share."""

from tf_mmdrl.train import config as configs
from tf_mmdrl.train import presets


def small(*changes):
  """A run of seconds: few steps, few particles, everything switched on."""
  base = [
    "environment.num_envs=4",
    "network.num_particles=5",
    "replay.capacity=2000",
    "agent.n_step=1",
    "schedule.steps=640",
    "schedule.learning_starts=200",
    "schedule.collect_steps=4",
    "schedule.epsilon_steps=200",
    "schedule.target_period=64",
    "schedule.batch_size=8",
    "evaluation.period=320",
    "evaluation.episodes=4",
    "evaluation.num_envs=2",
    "environment.max_episode_steps=50",
    "environment.rebuild_period=256",
    "system.checkpoint_period=160",
    "system.log_period=160",
    "system.xla=off",
  ]
  return configs.change(presets.get("quickstart"), [*base, *changes])


def play(state, num_steps):
  """Plays into replay, `num_steps` of each environment."""
  state.count(state.play(state.learner.weights(), num_steps))
