"""TF-Agents' own drivers, buffers, Learner, savers and checkpoints drive it."""

import os
import pathlib
import subprocess
import sys

import agent_fixtures as fixtures
import numpy as np
import pytest
import tensorflow as tf
from tf_agents.drivers import dynamic_step_driver, py_driver
from tf_agents.environments import tf_py_environment
from tf_agents.metrics import tf_metrics
from tf_agents.policies import policy_saver, py_tf_eager_policy
from tf_agents.replay_buffers import tf_uniform_replay_buffer
from tf_agents.specs import tensor_spec
from tf_agents.train import actor, learner
from tf_agents.train.utils import train_utils
from tf_agents.trajectories import time_step as ts
from tf_agents.utils import common

from tf_mmdrl import environments
from tf_mmdrl.agents import MMDQNAgent
from tf_mmdrl.networks import ParticleNetwork, torsos
from tf_mmdrl.policies import ReturnPolicy

reverb_missing = "dm-reverb loads with TensorFlow 2.15 only (make test-tf215)"


def _cartpole_agent(env, **options):
  """Without XLA, which takes seconds to compile, unless it is asked for."""
  net = ParticleNetwork(
    env.observation_spec(), env.action_spec(), 20, fc_layer_params=(32,)
  )
  agent = MMDQNAgent(
    env.time_step_spec(),
    env.action_spec(),
    net,
    tf.keras.optimizers.Adam(1e-3),
    **{"gamma": 0.99, "jit_compile": False, **options},
  )
  agent.initialize()
  return agent


def _uniform_buffer(agent, batch_size=1):
  return tf_uniform_replay_buffer.TFUniformReplayBuffer(
    agent.collect_data_spec, batch_size, max_length=500
  )


@pytest.mark.parametrize("n, jit_compile", [(1, False), (3, None)])
def test_dynamic_step_driver_and_uniform_buffer(n, jit_compile):
  env = tf_py_environment.TFPyEnvironment(environments.load("CartPole-v1"))
  agent = _cartpole_agent(env, n_step_update=n, jit_compile=jit_compile)
  buffer = _uniform_buffer(agent)
  episodes = tf_metrics.NumberOfEpisodes()
  driver = dynamic_step_driver.DynamicStepDriver(
    env,
    agent.collect_policy,
    observers=[buffer.add_batch, episodes],
    num_steps=600,  # an episode has 500 at most
  )
  common.function(driver.run)()
  assert episodes.result() > 0
  batches = iter(
    buffer.as_dataset(sample_batch_size=8, num_steps=n + 1).take(3)
  )
  train = common.function(agent.train)
  for batch, _ in batches:
    assert np.isfinite(train(batch).loss)
  assert agent.train_step_counter.numpy() == 3


def test_py_driver():
  env = environments.load("CartPole-v1")
  tf_env = tf_py_environment.TFPyEnvironment(env)
  agent = _cartpole_agent(tf_env)
  seen = []
  driver = py_driver.PyDriver(
    env,
    py_tf_eager_policy.PyTFEagerPolicy(
      agent.collect_policy, use_tf_function=True
    ),
    observers=[seen.append],
    max_steps=50,
  )
  driver.run(env.reset())
  assert len(seen) >= 50


def _learn(agent, env, dataset, root_dir, step):
  experience_learner = learner.Learner(
    root_dir,
    step,
    agent,
    experience_dataset_fn=lambda: dataset,
    checkpoint_interval=5,
  )
  info = experience_learner.run(iterations=5)
  assert np.isfinite(info.loss)
  assert step.numpy() == 5
  # The Learner wrote a checkpoint of the agent at its last step.
  checkpoints = pathlib.Path(root_dir, "train", "checkpoints")
  assert tf.train.latest_checkpoint(str(checkpoints)) is not None


def test_actor_and_learner(tmp_path):
  env = environments.load("CartPole-v1")
  tf_env = tf_py_environment.TFPyEnvironment(env)
  step = train_utils.create_train_step()
  agent = _cartpole_agent(tf_env, train_step_counter=step)
  buffer = _uniform_buffer(agent)
  collect = actor.Actor(
    env,
    py_tf_eager_policy.PyTFEagerPolicy(
      agent.collect_policy, use_tf_function=True
    ),
    step,
    steps_per_run=60,
    observers=[
      lambda item: buffer.add_batch(
        tf.nest.map_structure(lambda x: tf.expand_dims(x, 0), item)
      )
    ],
    metrics=actor.collect_metrics(buffer_size=10),
  )
  collect.run()
  dataset = buffer.as_dataset(sample_batch_size=8, num_steps=2)
  _learn(agent, env, dataset, str(tmp_path), step)


def test_reverb_replay_buffer(tmp_path):
  reverb = pytest.importorskip(
    "reverb", reason=reverb_missing, exc_type=ImportError
  )
  from tf_agents.replay_buffers import reverb_replay_buffer, reverb_utils

  env = environments.load("CartPole-v1")
  tf_env = tf_py_environment.TFPyEnvironment(env)
  step = train_utils.create_train_step()
  agent = _cartpole_agent(tf_env, train_step_counter=step)
  table = reverb.Table(
    "uniform",
    max_size=1000,
    sampler=reverb.selectors.Uniform(),
    remover=reverb.selectors.Fifo(),
    rate_limiter=reverb.rate_limiters.MinSize(1),
  )
  server = reverb.Server([table])
  buffer = reverb_replay_buffer.ReverbReplayBuffer(
    agent.collect_data_spec,
    table_name="uniform",
    sequence_length=2,
    local_server=server,
  )
  observer = reverb_utils.ReverbAddTrajectoryObserver(
    buffer.py_client, "uniform", sequence_length=2
  )
  driver = py_driver.PyDriver(
    env,
    py_tf_eager_policy.PyTFEagerPolicy(
      agent.collect_policy, use_tf_function=True
    ),
    observers=[observer],
    max_steps=60,
  )
  driver.run(env.reset())
  dataset = buffer.as_dataset(sample_batch_size=8, num_steps=2)
  _learn(agent, env, dataset, str(tmp_path), step)
  server.stop()


def test_policy_saver_keeps_the_current_weights(tmp_path):
  agent = fixtures.shared_agent()
  for _ in range(5):
    agent.train(fixtures.experience())
  policy_saver.PolicySaver(agent.policy).save(str(tmp_path))
  loaded = tf.saved_model.load(str(tmp_path))
  observation = np.random.default_rng(0).normal(size=[64, 4])
  step = ts.restart(tf.constant(observation, tf.float32), 64)
  np.testing.assert_array_equal(
    loaded.action(step).action, agent.policy.action(step).action
  )


def test_checkpointer_restores_all(tmp_path):
  batches = [fixtures.experience(seed=seed) for seed in range(6)]

  def checkpointer(agent):
    return common.Checkpointer(str(tmp_path), max_to_keep=1, agent=agent)

  agent = fixtures.make_agent(target_update_period=4)
  for batch in batches[:3]:
    agent.train(batch)
  checkpointer(agent).save(0)
  for batch in batches[3:]:
    agent.train(batch)
  again = fixtures.make_agent(
    fixtures.small_network(seed=7), target_update_period=4
  )
  restored = checkpointer(again)
  assert restored.checkpoint_exists
  for batch in batches[3:]:
    again.train(batch)
  for one, other in zip(agent.variables, again.variables):
    np.testing.assert_array_equal(one, other)
  for one, other in zip(
    agent._target_network.variables, again._target_network.variables
  ):
    np.testing.assert_array_equal(one, other)


def test_batched_images():
  """Atari-like: 8 environments, uint8 images, epsilon as a function."""
  observation = tensor_spec.BoundedTensorSpec([84, 84, 4], tf.uint8, 0, 255)
  spec = ts.time_step_spec(observation)
  net = ParticleNetwork(
    observation,
    fixtures.ACTION,
    50,
    conv_layer_params=torsos.NATURE_CONV,
    padding="same",
  )
  agent = MMDQNAgent(
    spec,
    fixtures.ACTION,
    net,
    tf.keras.optimizers.Adam(1e-4),
    epsilon_greedy=lambda: 0.5,
    jit_compile=False,
  )
  agent.initialize()
  images = tf.zeros([8, 84, 84, 4], tf.uint8)
  action = agent.collect_policy.action(ts.restart(images, 8)).action
  assert action.shape == [8]
  batch = fixtures.experience(batch=4, observation=np.zeros([4, 2, 84, 84, 4]))
  batch = batch._replace(observation=tf.cast(batch.observation, tf.uint8))
  assert np.isfinite(agent.train(batch).loss)


def test_nested_observations():
  spec = {
    "image": tf.TensorSpec([10, 10, 4], tf.float32),
    "speed": tf.TensorSpec([3], tf.float32),
  }
  net = ParticleNetwork(
    spec,
    fixtures.ACTION,
    20,
    preprocessing_layers={
      "image": tf.keras.models.Sequential(
        [
          tf.keras.layers.Conv2D(4, 3),
          tf.keras.layers.Flatten(),
          tf.keras.layers.Dense(8),
        ]
      ),
      "speed": tf.keras.layers.Dense(8),
    },
    preprocessing_combiner=tf.keras.layers.Add(),
    fc_layer_params=(16,),
  )
  agent = fixtures.make_agent(net, time_step_spec=ts.time_step_spec(spec))
  rng = np.random.default_rng(0)
  batch = fixtures.experience(
    batch=4,
    observation={
      "image": rng.normal(size=[4, 2, 10, 10, 4]),
      "speed": rng.normal(size=[4, 2, 3]),
    },
  )
  first = agent.loss(batch).loss
  for _ in range(30):
    last = agent.train(batch).loss
  assert last < first


@pytest.mark.parametrize("dueling", [False, True])
def test_network_shapes_and_copies(dueling):
  net = fixtures.small_network(num_particles=7, dueling=dueling)
  for outer in ([2], [2, 5]):
    particles, _ = net(tf.zeros([*outer, 4]))
    assert particles.shape == [*outer, 3, 7]
  copied = net.copy(name="Copy")
  copied.create_variables()
  assert [v.shape for v in copied.variables] == [v.shape for v in net.variables]
  assert not {id(v) for v in copied.variables} & {id(v) for v in net.variables}


@pytest.mark.parametrize("padding, features", [("valid", 3136), ("same", 7744)])
def test_nature_torso_has_the_papers_features(padding, features):
  net = ParticleNetwork(
    tf.TensorSpec([84, 84, 4], tf.uint8),
    fixtures.ACTION,
    conv_layer_params=torsos.NATURE_CONV,
    padding=padding,
  )
  net.create_variables()
  dense = [v for v in net.variables if "dense_0/kernel" in v.name]
  assert dense[0].shape == [features, 512]


def test_policy_info_can_carry_the_particles():
  net = fixtures.small_network()
  policy = ReturnPolicy(
    fixtures.TIME_STEP, fixtures.ACTION, net, epsilon=0.5, emit_particles=True
  )
  step = ts.restart(tf.random.normal([6, 4]), 6)
  info = policy.action(step).info
  assert policy.info_spec["particles"].shape == [3, 5]
  assert info["particles"].shape == [6, 3, 5]


def test_boltzmann_collects_by_temperature():
  agent = fixtures.make_agent(boltzmann_temperature=1e-6)
  step = ts.restart(tf.random.normal([32, 4]), 32)
  np.testing.assert_array_equal(
    agent.collect_policy.action(step).action, agent.policy.action(step).action
  )


def test_two_replicas_train_as_one():
  """MirroredStrategy on two virtual CPU devices, in a process of its own."""
  script = pathlib.Path(__file__).parent / "mirrored_training.py"
  paths = os.pathsep.join(sys.path)  # pytest's, with the tests' own modules
  done = subprocess.run(
    [sys.executable, str(script)],
    capture_output=True,
    text=True,
    env={**os.environ, "PYTHONPATH": paths},
  )
  assert done.returncode == 0, done.stderr[-3000:]
  assert "replicas agree" in done.stdout


def test_mixed_precision_keeps_float32_particles():
  tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
  try:
    # XLA of its own choice: bfloat16 wants it on some CPUs.
    agent = fixtures.make_agent(
      fixtures.small_network(num_particles=40), jit_compile=None
    )
    particles, _ = agent._network(tf.zeros([2, 4]))
    assert particles.dtype == tf.float32
    assert agent._network.features(tf.zeros([2, 4])).dtype == tf.bfloat16
    assert np.isfinite(agent.train(fixtures.experience()).loss)
  finally:
    tf.keras.mixed_precision.set_global_policy("float32")
