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
ROUND = 500  # updates in one call
# A return is known after about 25 steps, each learnt from the next one's
# target: so the target network follows soon.
RATE, TAU = 1e-3, 0.05


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
  """A maze or the two steps, with rewards accrued where utilities ask."""
  if name == "two_steps":
    return AccruedRewards(TwoSteps(), GAMMA)
  if name == "constrained":
    return AccruedRewards(mazes.Maze(name), GAMMA)
  return mazes.Maze(name)


def ways(env: gymnasium.Env) -> np.ndarray:
  """[A] zeros and ones: actions that lead somewhere."""
  number = env.action_space.n
  if not isinstance(env.unwrapped, mazes.Maze):
    return np.ones([number], np.int32)
  return np.isin(np.arange(number), env.unwrapped.ways).astype(np.int32)


def random_steps(
  env: gymnasium.Env, number: int, seed: int, *, only_ways: bool = False
) -> Dict[str, Any]:
  """So many transitions of the random policy, as arrays.

  Args:
    env: the environment.
    number: T.
    seed: of the policy and of the environment.
    only_ways: whether the policy takes only actions that lead somewhere.

  Returns:
    Arrays [T, ...]; `next_mask` is of the actions that lead somewhere.
  """
  rng = np.random.default_rng(seed)
  rows: List[Tuple[Any, ...]] = []
  observation, _ = env.reset(seed=seed)
  while len(rows) < number:
    among = np.flatnonzero(ways(env)) if only_ways else env.action_space.n
    action = int(rng.choice(among))
    after, reward, over, _, _ = env.step(action)
    mask = np.ones_like(ways(env)) if over else ways(env)
    gone_on = 0.0 if over else 1.0
    rows.append((observation, action, reward, gone_on, after, mask))
    observation = env.reset()[0] if over else after
  names = (
    "observation",
    "action",
    "reward",
    "discount",
    "next_observation",
    "next_mask",
  )
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


def batches(
  steps: Dict[str, Any], reward: np.ndarray, seed: int, evaluate: bool
):
  """[ROUND, BATCH] transitions drawn from steps, and what else is known.

  Args:
    steps: what `random_steps` gives.
    reward: [T] or [T, D] of these steps.
    seed: of the draw.
    evaluate: whether the random policy is to be evaluated; if not, the best
      policy among actions that lead somewhere is learnt.

  Returns:
    Time steps, actions, the next time steps, and the actions' info.
  """
  rng = np.random.default_rng(seed)
  shape = [ROUND, BATCH]
  index = rng.integers(len(reward), size=shape)
  taken = {name: part[index] for name, part in steps.items()}
  step_type = np.ones(shape, np.int32)
  first = ts.TimeStep(
    step_type,
    np.zeros_like(reward[index], np.float32),
    np.ones(shape, np.float32),
    taken["observation"].astype(np.float32),
  )
  after = ts.TimeStep(
    step_type,
    reward[index].astype(np.float32),
    taken["discount"].astype(np.float32),
    taken["next_observation"].astype(np.float32),
  )
  action, mask = taken["action"].astype(np.int32), taken["next_mask"]
  if not evaluate:
    return first, action, after, {"next_mask": mask}
  even = np.full(mask.shape, 1 / mask.shape[-1], np.float32)
  return first, action, after, {"next_probabilities": even}


class Learner:
  """An agent that is compiled once, and begins anew for each seed."""

  def __init__(self, agent, rate: tf.Variable):
    self.agent = agent
    self._rate = rate
    agent._optimizer.build(agent.return_network.trainable_weights)
    self._begin = [variable.numpy() for variable in agent.state_variables()]
    self._train = agent.train_in_turn(_unpack)

  def learn(
    self, steps, reward, seed: int, updates: int, *, evaluate: bool
  ) -> None:
    """Trains from the start; over the second half the rate falls to 1/20.

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
    for number in range(updates // ROUND):
      left = 1 - number * ROUND / updates
      self._rate.assign(RATE * max(0.05, min(1.0, 2 * left)))
      drawn = batches(steps, reward, 1000 * seed + number, evaluate)
      tensors = tf.nest.map_structure(tf.constant, drawn)
      self._train(tensors, tf.ones([ROUND, BATCH]))


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
  rate = tf.Variable(RATE, trainable=False)
  agent = cls(
    ts.time_step_spec(observation, tf.TensorSpec(shape, tf.float32)),
    action,
    ReturnNetwork(observation, action, head, fc_layer_params=(64, 64)),
    tf.keras.optimizers.Adam(rate),
    gamma=GAMMA,
    target_update_tau=TAU,
    target_update_period=1,
    **options,
  )
  agent.initialize()
  return Learner(agent, rate)
