"""TF-Agents' C51 tutorial on CartPole-v1, with MMDQN in C51's place.

  python examples/c51_tutorial.py [--agent mmdqn] [--seed 0]

The settings are the tutorial's own (TF-Agents, docs/tutorials, 9_c51_tutorial).
`c51` makes its network and its agent, `mmdqn` ours; nothing else knows which of
the two is running. The environment is Gymnasium's through
`tf_mmdrl.environments`, because TF-Agents' suite_gym needs Gym, which is no
longer maintained.
"""

import argparse
import os
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tf_mmdrl  # noqa: F401, I001  (before TF-Agents: Keras 2)
import tensorflow as tf
from tf_agents.agents.categorical_dqn import categorical_dqn_agent
from tf_agents.drivers import dynamic_step_driver
from tf_agents.environments import tf_py_environment
from tf_agents.networks import categorical_q_network
from tf_agents.policies import random_tf_policy
from tf_agents.replay_buffers import tf_uniform_replay_buffer
from tf_agents.trajectories import trajectory
from tf_agents.utils import common

from tf_mmdrl import evaluation
from tf_mmdrl.agents import MMDQNAgent
from tf_mmdrl.environments import make_environment
from tf_mmdrl.networks import ParticleNetwork

ENVIRONMENT = "CartPole-v1"
NUM_ITERATIONS = 15_000
INITIAL_COLLECT_STEPS = 1_000
REPLAY_BUFFER_CAPACITY = 100_000
FC_LAYER_PARAMS = (100,)
BATCH_SIZE = 64
LEARNING_RATE = 1e-3
GAMMA = 0.99
LOG_INTERVAL = 200
NUM_ATOMS = 51
MIN_Q_VALUE, MAX_Q_VALUE = -20, 20
N_STEP_UPDATE = 2
NUM_EVAL_EPISODES = 10
EVAL_INTERVAL = 1_000
NUM_FINAL_EPISODES = 20  # not in the tutorial: it ends without them


def c51(env, train_step):
  """The network and the agent as the tutorial makes them."""
  network = categorical_q_network.CategoricalQNetwork(
    env.observation_spec(),
    env.action_spec(),
    num_atoms=NUM_ATOMS,
    fc_layer_params=FC_LAYER_PARAMS,
  )
  return categorical_dqn_agent.CategoricalDqnAgent(
    env.time_step_spec(),
    env.action_spec(),
    categorical_q_network=network,
    optimizer=tf.compat.v1.train.AdamOptimizer(LEARNING_RATE),
    min_q_value=MIN_Q_VALUE,
    max_q_value=MAX_Q_VALUE,
    n_step_update=N_STEP_UPDATE,
    td_errors_loss_fn=common.element_wise_squared_loss,
    gamma=GAMMA,
    train_step_counter=train_step,
  )


def mmdqn(env, train_step):
  """The same with particles: three keywords fewer, none more."""
  network = ParticleNetwork(
    env.observation_spec(),
    env.action_spec(),
    num_particles=NUM_ATOMS,
    fc_layer_params=FC_LAYER_PARAMS,
  )
  return MMDQNAgent(
    env.time_step_spec(),
    env.action_spec(),
    categorical_q_network=network,
    optimizer=tf.compat.v1.train.AdamOptimizer(LEARNING_RATE),
    n_step_update=N_STEP_UPDATE,
    gamma=GAMMA,
    train_step_counter=train_step,
  )


AGENTS = {"c51": c51, "mmdqn": mmdqn}


def average_return(act, num_episodes, seed):
  """The mean return of new episodes, each in an environment of its own."""
  env = make_environment(ENVIRONMENT, num_envs=num_episodes, seed=seed)
  returns = evaluation.episode_returns(env, act)
  env.close()
  return float(returns.mean())


def train(
  agent_name="mmdqn", seed=0, num_iterations=NUM_ITERATIONS, show=print
):
  """Trains one of the agents as the tutorial does.

  The replay buffer is read ahead by threads, as in the tutorial, so equal seeds
  give nearly, not exactly, equal runs.

  Args:
    agent_name: one of AGENTS.
    seed: of weights, environments, exploration and replay.
    num_iterations: each is one step in the environment and one update.
    show: called with a line of progress.

  Returns:
    Pairs (iteration, average return): one for each evaluation on the way, the
    first before any update, and last that of the final evaluation, which has
    NUM_FINAL_EPISODES fresh episodes.
  """
  tf.keras.utils.set_random_seed(seed)
  env = tf_py_environment.TFPyEnvironment(
    make_environment(ENVIRONMENT, seed=seed)
  )
  agent = AGENTS[agent_name](env, tf.Variable(0, dtype=tf.int64))
  agent.initialize()
  buffer = tf_uniform_replay_buffer.TFUniformReplayBuffer(
    agent.collect_data_spec, env.batch_size, max_length=REPLAY_BUFFER_CAPACITY
  )
  random_policy = random_tf_policy.RandomTFPolicy(
    env.time_step_spec(), env.action_spec()
  )
  driver = dynamic_step_driver.DynamicStepDriver(
    env, random_policy, [buffer.add_batch], num_steps=INITIAL_COLLECT_STEPS
  )
  common.function(driver.run)()

  def collect_step():
    step = env.current_time_step()
    action = agent.collect_policy.action(step)
    after = env.step(action.action)
    buffer.add_batch(trajectory.from_transition(step, action, after))

  batches = iter(
    buffer.as_dataset(
      num_parallel_calls=3,
      sample_batch_size=BATCH_SIZE,
      num_steps=N_STEP_UPDATE + 1,
    ).prefetch(3)
  )
  collect = common.function(collect_step)
  learn = common.function(agent.train)
  act = common.function(agent.policy.action)

  def evaluate(iteration, num_episodes):
    other = 1_000_000 * (seed + 1) + iteration + num_episodes
    score = average_return(act, num_episodes, seed=other)
    returns.append((iteration, score))
    show(f"iteration {iteration:6d}  average return {score:6.1f}")

  returns = []
  evaluate(0, NUM_EVAL_EPISODES)
  for iteration in range(1, num_iterations + 1):
    collect()
    experience, _ = next(batches)
    loss = learn(experience).loss
    if iteration % LOG_INTERVAL == 0:
      show(f"iteration {iteration:6d}  loss {float(loss):.4f}")
    if iteration % EVAL_INTERVAL == 0:
      evaluate(iteration, NUM_EVAL_EPISODES)
  evaluate(num_iterations, NUM_FINAL_EPISODES)
  return returns


def main():
  """Trains and says how it went."""
  parser = argparse.ArgumentParser(
    description=__doc__.split("\n")[0],
    formatter_class=argparse.ArgumentDefaultsHelpFormatter,
  )
  parser.add_argument(
    "--agent", choices=sorted(AGENTS), default="mmdqn", help="which to train"
  )
  parser.add_argument("--seed", type=int, default=0, help="of everything")
  parser.add_argument(
    "--iterations",
    type=int,
    default=NUM_ITERATIONS,
    help="steps in the environment, each with an update",
  )
  args = parser.parse_args()
  started = time.monotonic()
  returns = train(
    args.agent,
    args.seed,
    args.iterations,
    show=lambda line: print(line, flush=True),
  )
  print(
    f"final evaluation: average return {returns[-1][1]:.1f} over"
    f" {NUM_FINAL_EPISODES} fresh episodes, after"
    f" {time.monotonic() - started:.0f} s"
  )


if __name__ == "__main__":
  main()
