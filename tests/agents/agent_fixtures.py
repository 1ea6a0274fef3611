"""Small specs, networks and experience that the agent tests share."""

import functools

import numpy as np
import tensorflow as tf
from tf_agents.networks import network
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step, trajectory

from tf_mmdrl.agents import MMDQNAgent
from tf_mmdrl.networks import ParticleNetwork

OBSERVATION = tf.TensorSpec([4], tf.float32)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2)
TIME_STEP = time_step.time_step_spec(OBSERVATION)
FIRST, MID, LAST = 0, 1, 2


class TableNetwork(network.Network):
  """Particles [B, A, N] looked up by the observation's first number."""

  def __init__(self, input_tensor_spec, table, name="TableNetwork"):
    super().__init__(input_tensor_spec, state_spec=(), name=name)
    self._initial = np.float32(table)  # [S, A, N]
    self._table = tf.Variable(self._initial, name="table")

  def call(self, observation, step_type=None, network_state=(), training=False):
    """A row of the table for each observation."""
    if isinstance(observation, dict):
      observation = observation["state"]
    # TF-Agents makes variables with random observations.
    state = tf.clip_by_value(observation[..., 0], 0, len(self._initial) - 1)
    return tf.gather(self._table, tf.cast(state, tf.int32)), network_state


def small_network(num_particles=5, seed=0, **options):
  return ParticleNetwork(
    OBSERVATION,
    ACTION,
    num_particles,
    fc_layer_params=(16,),
    make_initializer=lambda: tf.keras.initializers.GlorotUniform(seed=seed),
    **options,
  )


def make_agent(net=None, learning_rate=1e-2, **options):
  """An MMDQN agent, without XLA unless asked: it compiles for seconds."""
  agent = MMDQNAgent(
    options.pop("time_step_spec", TIME_STEP),
    ACTION,
    net or small_network(),
    options.pop("optimizer", None) or tf.keras.optimizers.Adam(learning_rate),
    **{"gamma": 0.9, "unit": 1.0, "jit_compile": False, **options},
  )
  agent.initialize()
  return agent


@functools.cache
def compiled(**options):
  """An agent and its variables before the first update."""
  agent = make_agent(**options)
  return agent, [variable.numpy() for variable in agent.state_variables()]


def shared_agent(**options):
  """`make_agent(...)`, compiled once for all tests that ask for it."""
  agent, initial = compiled(**{"jit_compile": False, **options})
  for variable, value in zip(agent.state_variables(), initial, strict=True):
    variable.assign(value)
  return agent


def experience(batch=6, length=2, seed=0, **replaced):
  """A random Trajectory [B, T] in mid-episode, but for what is given."""
  rng = np.random.default_rng(seed)
  shape = [batch, length]
  parts = dict(
    step_type=np.full(shape, MID),
    observation=rng.normal(size=[*shape, 4]),
    action=rng.integers(3, size=shape),
    next_step_type=np.full(shape, MID),
    reward=rng.normal(size=shape),
    discount=np.ones(shape),
  )
  parts.update(replaced)

  def tensors(name):
    whole = name in ("step_type", "action", "next_step_type")
    dtype = tf.int32 if whole else tf.float32
    if isinstance(parts[name], dict):
      return {k: tf.constant(v, dtype) for k, v in parts[name].items()}
    return tf.constant(parts[name], dtype)

  return trajectory.Trajectory(
    policy_info=(), **{name: tensors(name) for name in parts}
  )


def states(rows):
  """Observations [B, T, 4] for a TableNetwork from state numbers [B, T]."""
  rows = np.float32(rows)
  return np.stack([rows, rows * 0, rows * 0, rows * 0], axis=-1)
