"""What the studies of joint returns learn with: environments and agents."""

import functools
from typing import Any, Dict, List, Tuple

import gymnasium
import numpy as np
import tensorflow as tf
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import policy_step, trajectory
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import agents
from tf_mmdrl.environments import mazes
from tf_mmdrl.environments.accrued_rewards import AccruedRewards
from tf_mmdrl.networks import ReturnNetwork, heads

GAMMA = 0.99
BATCH, PARTICLES = 32, 64


class TwoSteps(gymnasium.Env):
  """(4, 0) or (0, 4) by chance, or (1.5, 1.5) surely; then one more choice.

  At first, action 0 gives (4, 0) or (0, 4), each with probability 1/2, and
  action 1 gives (1.5, 1.5). Then action 0 gives (1, 0), action 1 gives (0, 1).
  With u(g) = min(g_1, g_2), by SER the gamble is best: its expected return is
  (2, 2) and what the second step adds. By ESR the sure way is, 1.5 against 1:
  after the gamble one of the two is 0, and the second step can bring it to 1 if
  the agent knows which it was.
  """

  action_space = gymnasium.spaces.Discrete(2)
  observation_space = gymnasium.spaces.Discrete(3)
  reward_space = gymnasium.spaces.Box(0, 4, (2,))

  def reset(self, *, seed=None, options=None):
    """Begins."""
    super().reset(seed=seed)
    self._state = 0
    return 0, {}

  def step(self, action):
    """First the gamble or not, then which to add."""
    if self._state == 0:
      sure = np.array([1.5, 1.5], np.float32)
      first = self.np_random.random() < 0.5
      gamble = np.array([4, 0] if first else [0, 4], np.float32)
      self._state = 2 if action else 1
      return self._state, sure if action else gamble, False, False, {}
    reward = np.array([0, 1] if action else [1, 0], np.float32)
    return self._state, reward, True, False, {}


def environment(name: str) -> gymnasium.Env:
  """A maze, or the two steps."""
  if name == "two_steps":
    return AccruedRewards(TwoSteps(), GAMMA)
  return mazes.Maze(name)


def random_steps(env: gymnasium.Env, number: int, seed: int) -> Dict[str, Any]:
  """So many transitions of the random policy, as arrays."""
  rng = np.random.default_rng(seed)
  rows: List[Tuple[Any, ...]] = []
  observation, _ = env.reset(seed=seed)
  while len(rows) < number:
    action = int(rng.integers(env.action_space.n))
    after, reward, over, _, _ = env.step(action)
    rows.append((observation, action, reward, 0.0 if over else 1.0, after))
    observation = env.reset()[0] if over else after
  names = ("observation", "action", "reward", "discount", "next_observation")
  return {name: np.array(part) for name, part in zip(names, zip(*rows))}


def monte_carlo(maze: mazes.Maze, number: int, seed: int) -> np.ndarray:
  """[number, D] discounted returns of the random policy from the start."""
  rng = np.random.default_rng(seed)
  returns = []
  maze.reset(seed=seed)
  for _ in range(number):
    maze.reset()
    total, discount, over = 0.0, 1.0, False
    while not over:
      _, reward, over, _, _ = maze.step(int(rng.integers(4)))
      total, discount = total + discount * reward, discount * GAMMA
    returns.append(total)
  return np.array(returns)


def batches(steps: Dict[str, Any], reward: np.ndarray, seed: int, count: int):
  """[count, BATCH] drawn from steps, with the random policy to be evaluated."""
  rng = np.random.default_rng(seed)
  index = rng.integers(len(reward), size=[count, BATCH])
  taken = {name: part[index] for name, part in steps.items()}
  step_type = np.ones([count, BATCH], np.int32)
  first = ts.TimeStep(
    step_type,
    np.zeros_like(reward[index], np.float32),
    np.ones([count, BATCH], np.float32),
    taken["observation"].astype(np.float32),
  )
  after = ts.TimeStep(
    step_type,
    reward[index].astype(np.float32),
    taken["discount"].astype(np.float32),
    taken["next_observation"].astype(np.float32),
  )
  probabilities = np.full([count, BATCH, 4], 0.25, np.float32)
  action = taken["action"].astype(np.int32)
  return first, action, after, probabilities


class Learner:
  """An agent that is compiled once, and begins anew for each seed."""

  def __init__(self, agent):
    self.agent = agent
    agent._optimizer.build(agent.return_network.trainable_weights)
    self._begin = [variable.numpy() for variable in agent.state_variables()]
    self._train = agent.train_in_turn(_unpack)

  def learn(
    self, steps, reward, seed: int, updates: int, *, evaluate: bool
  ) -> None:
    """Trains from the start, in rounds of 500 updates.

    Args:
      steps: of the random policy.
      reward: [T] or [T, D] of these steps, what the agent learns from.
      seed: of the first weights and of the batches.
      updates: how many.
      evaluate: whether the random policy is evaluated, or the best is learnt.
    """
    pairs = zip(self.agent.state_variables(), self._begin, strict=True)
    for variable, value in pairs:
      variable.assign(value)
    rng = np.random.default_rng(seed)
    for variable in self.agent.return_network.trainable_weights:
      # The first weights of another seed: the same ones, in another order.
      variable.assign(
        rng.permutation(variable.numpy().ravel()).reshape(variable.shape)
      )
    self.agent.initialize()
    for number in range(updates // 500):
      *drawn, probabilities = batches(steps, reward, 1000 * seed + number, 500)
      info = {"next_probabilities": probabilities} if evaluate else ()
      tensors = tf.nest.map_structure(tf.constant, (*drawn, info))
      self._train(tensors, tf.ones([500, BATCH]))


def _unpack(part):
  first, action, after, info = part
  step = policy_step.PolicyStep(action, (), info)
  return trajectory.Transition(first, step, after)


@functools.cache
def learner(kind: str, env_name: str, **options) -> Learner:
  """A small agent: "joint", or scalar "mmdqn" or "qrdqn"."""
  env = environment(env_name)
  observation = tf.TensorSpec(env.observation_space.shape, tf.float32)
  last = int(env.action_space.n) - 1
  action = tensor_spec.BoundedTensorSpec([], tf.int32, 0, last)
  dimensions = env.unwrapped.reward_space.shape[0]
  shape = [dimensions] if kind == "joint" else []
  head = heads.particles(PARTICLES, dimensions if kind == "joint" else None)
  cls = {
    "joint": agents.JointMMDQNAgent,
    "mmdqn": agents.MMDQNAgent,
    "qrdqn": agents.QRDQNAgent,
  }[kind]
  agent = cls(
    ts.time_step_spec(observation, tf.TensorSpec(shape, tf.float32)),
    action,
    ReturnNetwork(observation, action, head, fc_layer_params=(64, 64)),
    tf.keras.optimizers.Adam(1e-3),
    gamma=GAMMA,
    target_update_period=100,
    **options,
  )
  agent.initialize()
  return Learner(agent)
