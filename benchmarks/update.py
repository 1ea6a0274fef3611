"""Time of one update on a batch of Atari transitions, agent against agent.

  python benchmarks/update.py [--seconds 20]

Nature network, batch 32, 6 actions, 200 particles (51 atoms for C51). All are
updated in turn in one process, so the ratios mean something on a busy machine:
once compiled as graphs, once with XLA, once as they come (ours then compiles
what is faster compiled, TF-Agents' are graphs).
"""

import argparse

import numpy as np
import published
import tensorflow as tf
import timing
from tf_agents.agents.categorical_dqn import categorical_dqn_agent
from tf_agents.agents.dqn import dqn_agent
from tf_agents.networks import categorical_q_network, q_network
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step, trajectory

from tf_mmdrl import losses
from tf_mmdrl.agents import MMDQNAgent, base
from tf_mmdrl.networks import ParticleNetwork, torsos

BATCH, ACTIONS, PARTICLES = 32, 6, 200
OBSERVATION = tf.TensorSpec([84, 84, 4], tf.uint8)
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, ACTIONS - 1)
TIME_STEP = time_step.time_step_spec(OBSERVATION)


class PublishedLoss(losses.Loss):
  """The MMD as the formula is usually typed in."""

  def __call__(self, predicted, target, step):
    """[B] losses."""
    return published.mmd_squared(predicted.values, target.values)


def as_float(observation):
  """What TF-Agents' networks need in front for uint8 images."""
  return tf.cast(observation, tf.float32) / 255


def nature(network, **options):
  """One of TF-Agents' networks with the Nature torso."""
  return network(
    OBSERVATION,
    ACTION,
    preprocessing_layers=tf.keras.layers.Lambda(as_float),
    conv_layer_params=torsos.NATURE_CONV,
    fc_layer_params=torsos.NATURE_FC,
    **options,
  )


def particles():
  """Ours."""
  return ParticleNetwork(
    OBSERVATION,
    ACTION,
    PARTICLES,
    conv_layer_params=torsos.NATURE_CONV,
    fc_layer_params=torsos.NATURE_FC,
  )


def agents(jit_compile):
  """Name -> agent."""
  optimizer = lambda: tf.keras.optimizers.Adam(5e-5, epsilon=0.01 / 32)  # noqa: E731
  common = dict(gamma=0.99, target_update_period=10_000)
  made = {
    "DqnAgent": dqn_agent.DqnAgent(
      TIME_STEP, ACTION, nature(q_network.QNetwork), optimizer(), **common
    ),
    "CategoricalDqnAgent": categorical_dqn_agent.CategoricalDqnAgent(
      TIME_STEP,
      ACTION,
      nature(categorical_q_network.CategoricalQNetwork, num_atoms=51),
      optimizer(),
      **common,
    ),
    "MMDQNAgent": MMDQNAgent(
      TIME_STEP,
      ACTION,
      particles(),
      optimizer(),
      jit_compile=jit_compile,
      **common,
    ),
    "MMDQNAgent, published formula": base.ReturnDistributionAgent(
      TIME_STEP,
      ACTION,
      particles(),
      optimizer(),
      loss=PublishedLoss(),
      jit_compile=jit_compile,
      **common,
    ),
  }
  for agent in made.values():
    agent.initialize()
  return made


def experience():
  """A batch [B, 2] of random transitions."""
  rng = np.random.default_rng(0)
  shape = [BATCH, 2]
  return trajectory.Trajectory(
    step_type=tf.ones(shape, tf.int32),
    observation=tf.constant(
      rng.integers(256, size=[*shape, 84, 84, 4]), tf.uint8
    ),
    action=tf.constant(rng.integers(ACTIONS, size=shape), tf.int32),
    policy_info=(),
    next_step_type=tf.ones(shape, tf.int32),
    reward=tf.constant(rng.integers(-1, 2, size=shape), tf.float32),
    discount=tf.ones(shape),
  )


def update(agent, batch, jit_compile):
  """A call that updates the agent once."""
  if isinstance(agent, MMDQNAgent):  # compiles itself
    step = tf.function(agent.train)
  else:
    if jit_compile:  # XLA cannot make variables, so they are made before
      agent._optimizer.build(agent._q_network.trainable_weights)
    step = tf.function(agent.train, jit_compile=jit_compile)
  return lambda: step(batch).loss.numpy()


def main():
  """Prints the table."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--seconds", type=float, default=20.0)
  args = parser.parse_args()
  batch = experience()
  print(f"tensorflow {tf.__version__}; one update, batch {BATCH}")
  modes = {"graph": False, "XLA": True, "default": None}
  titles = [f"{mode + ' ms':>10} {'/ DQN':>6}" for mode in modes]
  print(" ".join([f"{'':32}", *titles]))
  columns = []
  for jit_compile in modes.values():
    calls = {
      name: update(agent, batch, jit_compile)
      for name, agent in agents(jit_compile).items()
    }
    columns.append(timing.interleaved(calls, seconds=args.seconds))
  for name in columns[0]:
    row = [f"{name:32}"]
    for column in columns:
      ratio = column[name] / column["DqnAgent"]
      row.append(f"{column[name] * 1e3:10.1f} {ratio:6.2f}")
    print(" ".join(row))
  for mode, column in zip(modes, columns):
    ratio = column["MMDQNAgent, published formula"] / column["MMDQNAgent"]
    print(f"{mode}: ours is {ratio:.1f} times faster than published")


if __name__ == "__main__":
  main()
