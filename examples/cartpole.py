"""MMDQN on CartPole-v1, written as a TF-Agents script.

  python examples/cartpole.py [--seed 0] [--steps 60000]

It is TF-Agents' C51 tutorial with two lines changed: the network and the agent.
Environments, driver, replay buffer and metrics are TF-Agents' own (Gymnasium
comes in through `tf_mmdrl.environments`). Training stops as soon as 20
evaluation episodes average 495; a final evaluation on fresh episodes follows.
"""

import argparse
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tf_mmdrl  # noqa: F401, I001  (before TF-Agents: Keras 2)
import tensorflow as tf
from tf_agents.drivers import dynamic_step_driver
from tf_agents.environments import tf_py_environment
from tf_agents.replay_buffers import tf_uniform_replay_buffer

from tf_mmdrl import evaluation
from tf_mmdrl.agents import MMDQNAgent
from tf_mmdrl.environments import make_environment
from tf_mmdrl.networks import ParticleNetwork

NUM_ENVS = 8
STEPS_PER_ITERATION = 256  # over all environments
UPDATES_PER_ITERATION = 128
BATCH = 64
N_STEP = 3
FIRST_STEPS = 1_024  # before the first update
EXPLORE_STEPS = 10_000  # epsilon goes from 1 to LAST_EPSILON over these
LAST_EPSILON = 0.04
EVALUATE_EVERY = 2_048
EVALUATE_EPISODES = 20
STOP_SCORE = 495.0  # a margin, because the final episodes are other ones
SOLVED = 475.0


def make_agent(env, seed, env_steps, agent_class=MMDQNAgent):
  """The network and the agent: the two lines that are not C51's."""
  network = ParticleNetwork(
    env.observation_spec(),
    env.action_spec(),
    num_particles=50,
    fc_layer_params=(128, 128),
    make_initializer=lambda: tf.keras.initializers.HeUniform(seed=seed),
  )
  agent = agent_class(
    env.time_step_spec(),
    env.action_spec(),
    network,
    tf.keras.optimizers.Adam(1e-3, epsilon=1e-5),
    n_step_update=N_STEP,
    epsilon_greedy=lambda: tf.maximum(
      LAST_EPSILON, 1 - tf.cast(env_steps, tf.float32) / EXPLORE_STEPS
    ),
    target_update_period=UPDATES_PER_ITERATION,
    unit="auto:1.5",  # large steps in natural rewards, as preset `classic`
    gamma=0.99,
  )
  agent.initialize()
  return agent


def evaluate(policy, seed):
  """The mean score of EVALUATE_EPISODES episodes, one per environment."""
  env = make_environment("CartPole-v1", num_envs=EVALUATE_EPISODES, seed=seed)
  scores = evaluation.episode_returns(env, tf.function(policy.action))
  env.close()
  return float(scores.mean())


def train(seed=0, max_steps=60_000, agent_class=MMDQNAgent, show=print):
  """Trains until solved or out of steps.

  Args:
    seed: of weights, environments, exploration and replay.
    max_steps: environment steps at most.
    agent_class: the agent.
    show: called with a line of progress.

  Returns:
    (environment steps, score of a final evaluation on fresh episodes).
  """
  tf.random.set_seed(seed)
  env = tf_py_environment.TFPyEnvironment(
    make_environment("CartPole-v1", num_envs=NUM_ENVS, seed=seed)
  )
  env_steps = tf.Variable(0, dtype=tf.int64, trainable=False)
  agent = make_agent(env, seed, env_steps, agent_class)
  buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
    agent.collect_data_spec, NUM_ENVS, max_length=60_000 // NUM_ENVS
  )
  driver = dynamic_step_driver.DynamicStepDriver(
    env,
    agent.collect_policy,
    [buffer.add_batch],
    num_steps=STEPS_PER_ITERATION,
  )
  batches = iter(
    buffer.as_dataset(sample_batch_size=BATCH, num_steps=N_STEP + 1).prefetch(4)
  )
  collect = tf.function(driver.run)
  learn = tf.function(agent.train)
  start = time.monotonic()
  loss, score = float("nan"), float("nan")
  for steps in range(STEPS_PER_ITERATION, max_steps + 1, STEPS_PER_ITERATION):
    collect()
    env_steps.assign_add(STEPS_PER_ITERATION)
    if steps >= FIRST_STEPS:
      for _ in range(UPDATES_PER_ITERATION):
        loss = learn(next(batches)[0]).loss
    if steps % EVALUATE_EVERY == 0:
      score = evaluate(agent.policy, seed=1_000_000 + steps)
      rate = steps / (time.monotonic() - start)
      show(
        f"step {steps:6d}/{max_steps}  score {score:5.1f}  loss"
        f" {float(loss):.4f}  {rate:5.0f} steps/s"
      )
      if score >= STOP_SCORE:
        break
  return steps, evaluate(agent.policy, seed=2_000_000 + seed)


def main():
  """Trains and says how it went."""
  parser = argparse.ArgumentParser(
    description=__doc__.split("\n")[0],
    formatter_class=argparse.ArgumentDefaultsHelpFormatter,
  )
  parser.add_argument("--seed", type=int, default=0, help="of everything")
  parser.add_argument(
    "--steps", type=int, default=60_000, help="environment steps at most"
  )
  args = parser.parse_args()
  print("MMDQN on CartPole-v1; a few minutes, solved at 475 of 500")
  started = time.monotonic()
  steps, score = train(
    args.seed, args.steps, show=lambda s: print(s, flush=True)
  )
  print(
    f"final evaluation: mean score {score:.1f} over {EVALUATE_EPISODES} fresh"
    f" episodes, after {steps} steps and {time.monotonic() - started:.0f} s"
  )
  return 0 if score >= SOLVED else 1


if __name__ == "__main__":
  sys.exit(main())
