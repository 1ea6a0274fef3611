"""TF-Agents' own drivers, replay and metrics drive every environment."""

import importlib.util

import numpy as np
import pytest
import tensorflow as tf
from tf_agents.agents.dqn import dqn_agent
from tf_agents.drivers import dynamic_step_driver, py_driver
from tf_agents.environments import tf_py_environment
from tf_agents.metrics import py_metrics, tf_metrics
from tf_agents.networks import q_network
from tf_agents.policies import random_py_policy, random_tf_policy
from tf_agents.replay_buffers import tf_uniform_replay_buffer
from tf_agents.train import actor

from tf_mmdrl.environments import atari, make_environment

_ENVS = {
  "single": lambda: make_environment("CartPole-v1", seed=0),
  "vector": lambda: make_environment("CartPole-v1", num_envs=3, seed=0),
  "tuple": lambda: make_environment("Blackjack-v1", num_envs=2, seed=0),
  "chain": lambda: make_environment("chain/3", seed=0),
  "minatar": lambda: make_environment("MinAtar/Breakout", num_envs=2, seed=0),
  "atari": lambda: make_environment(
    "Breakout", num_envs=2, seed=0, max_frames=80
  ),
}
if importlib.util.find_spec("minatar") is None:
  del _ENVS["minatar"]


@pytest.fixture(params=sorted(_ENVS))
def env(request):
  with _ENVS[request.param]() as made:
    yield made


def _py_policy(env):
  return random_py_policy.RandomPyPolicy(
    env.time_step_spec(), env.action_spec(), seed=0
  )


def _tf_policy(env):
  return random_tf_policy.RandomTFPolicy(
    env.time_step_spec(), env.action_spec()
  )


def test_dynamic_step_driver(env):
  tf_env = tf_py_environment.TFPyEnvironment(env)
  policy = _tf_policy(tf_env)
  buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
    policy.trajectory_spec, batch_size=tf_env.batch_size, max_length=100
  )
  episodes = tf_metrics.NumberOfEpisodes()
  driver = dynamic_step_driver.DynamicStepDriver(
    tf_env, policy, [buffer.add_batch, episodes], num_steps=100
  )
  driver.run()
  assert episodes.result() > 0
  trajectory, _ = buffer.get_next(sample_batch_size=4, num_steps=2)
  assert trajectory.reward.shape == (4, 2)


def test_py_driver(env):
  metrics = [py_metrics.NumberOfEpisodes(), py_metrics.EnvironmentSteps()]
  infos = []
  driver = py_driver.PyDriver(
    env,
    _py_policy(env),
    metrics,
    info_observers=[infos.append],
    max_steps=100,
  )
  driver.run(env.reset())
  assert metrics[0].result() > 0
  assert metrics[1].result() >= 100
  assert infos and all(isinstance(info, dict) for info in infos)


def test_actor(env):
  metrics = [
    py_metrics.NumberOfEpisodes(),
    py_metrics.AverageReturnMetric(batch_size=env.batch_size or 1),
  ]
  collector = actor.Actor(
    env,
    _py_policy(env),
    tf.Variable(0, dtype=tf.int64),
    episodes_per_run=2,
    metrics=metrics,
  )
  collector.run()
  assert metrics[0].result() >= 2
  assert np.isfinite(metrics[1].result())


def test_whole_game_scores_from_an_info_observer():
  scores = []

  def observe(info):
    scores.extend(info["score"][info["game_over"]])

  # With raw rewards TF-Agents' own metric gives the same.
  returns = py_metrics.AverageReturnMetric(batch_size=2, buffer_size=100)
  with atari.load(
    "Qbert",
    num_envs=2,
    seed=0,
    protocol=atari.PAPER_EVALUATION,
    max_frames=1200,
  ) as env:
    driver = py_driver.PyDriver(
      env,
      _py_policy(env),
      [returns],
      info_observers=[observe],
      max_episodes=4,
    )
    driver.run(env.reset())
  assert len(scores) >= 4
  assert np.mean(scores) == returns.result() > 0


class FlatFloats(tf.keras.layers.Layer):
  """Any observation as a vector of floats."""

  def call(self, inputs):
    return tf.cast(tf.reshape(inputs, (tf.shape(inputs)[0], -1)), tf.float32)


def test_dqn_agent_learns_a_step(env):
  """A stock DqnAgent script; only observations of numbers fit QNetwork."""
  tf_env = tf_py_environment.TFPyEnvironment(env)
  observation_spec = tf_env.observation_spec()
  if isinstance(observation_spec, tuple):
    pytest.skip("QNetwork takes one tensor")
  network = q_network.QNetwork(
    observation_spec,
    tf_env.action_spec(),
    preprocessing_layers=FlatFloats(),
    fc_layer_params=(8,),
  )
  agent = dqn_agent.DqnAgent(
    tf_env.time_step_spec(),
    tf_env.action_spec(),
    q_network=network,
    optimizer=tf.keras.optimizers.Adam(1e-3),
  )
  agent.initialize()
  buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
    agent.collect_data_spec, batch_size=tf_env.batch_size, max_length=50
  )
  dynamic_step_driver.DynamicStepDriver(
    tf_env, agent.collect_policy, [buffer.add_batch], num_steps=20
  ).run()
  experience, _ = buffer.get_next(sample_batch_size=4, num_steps=2)
  assert np.isfinite(agent.train(experience).loss)
