"""Every agent in small, and what it computes as a slow float64 oracle.

The oracle starts from what the networks emit (values, weights, levels of every
action) and redoes the rest in NumPy: greedy action, backup, projection, loss.
"""

import functools
from typing import Any, Callable, Mapping, NamedTuple

import numpy as np
import oracle
import tensorflow as tf
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import agents
from tf_mmdrl.agents import mmdqn_agent
from tf_mmdrl.agents.predicting import Use
from tf_mmdrl.networks import ReturnNetwork, heads, implicit_heads, torsos
from tf_mmdrl.ops import kernels

KERNEL = mmdqn_agent.DEFAULT_KERNEL
ADVERSARIAL_KERNEL = kernels.gaussian_mixture()
SAMPLES = agents.Samples(taken=6, target=5, choice=4)
KNOTS = (-0.5, 0.3)
ALL_RAINBOW = dict(dueling=True, noisy_layers=True)
MUNCHAUSEN = agents.Munchausen()
GAMMA = 0.9


def huber_of_means(agent, x, p, levels, y, q):
  """DQN's."""
  del agent, levels
  return _huber(q @ y - p @ x, 1.0)


def cross_entropy(agent, x, p, levels, y, q):
  """C51's."""
  del agent, levels
  return -np.sum(_project(y, q, x) * np.log(p))


def quantile_huber(agent, x, p, levels, y, q, *, kappa=1.0):
  """QR-DQN's, IQN's and FQF's: the paper's equation 8 weighs targets alike."""
  del agent, p, q
  if levels is None:
    levels = (np.arange(len(x)) + 0.5) / len(x)
  return sum(
    abs(levels[i] - (y[j] < x[i])) * _huber(y[j] - x[i], kappa) / len(y)
    for i in range(len(x))
    for j in range(len(y))
  )


def mmd(agent, x, p, levels, y, q):
  """MMDQN's."""
  del agent, levels
  return oracle.mmd_squared(KERNEL, x, y, p, q)[0]


def mapped_mmd(agent, x, p, levels, y, q):
  """Adversarial MMDQN's."""
  del levels
  x, y = _mapped(agent, x), _mapped(agent, y)
  return oracle.mmd_squared(ADVERSARIAL_KERNEL, x, y, p, q)[0]


class Member(NamedTuple):
  """An agent in small, and its loss as an oracle.

  Attributes:
    head: of its network.
    agent: the class.
    options: of the agent.
    network: options of the network.
    loss: (agent, x, p, levels, y, q) -> the loss of particles x with weights p
      and levels, or None, against particles y with weights q; each [N] or [M].
  """

  head: Callable[..., Any]
  agent: Callable[..., Any]
  options: Mapping[str, Any]
  network: Mapping[str, Any]
  loss: Callable[..., float]


FAMILY = {
  "dqn": Member(heads.particles(1), agents.DQNAgent, {}, {}, huber_of_means),
  "double_dqn": Member(
    heads.particles(1), agents.DQNAgent, dict(double=True), {}, huber_of_means
  ),
  "c51": Member(
    heads.categorical(11, -3.0, 3.0), agents.C51Agent, {}, {}, cross_entropy
  ),
  "qrdqn": Member(
    heads.particles(7), agents.QRDQNAgent, {}, {}, quantile_huber
  ),
  "qrdqn_0": Member(
    heads.particles(7),
    agents.QRDQNAgent,
    dict(kappa=0.0),
    {},
    functools.partial(quantile_huber, kappa=0.0),
  ),
  "iqn": Member(
    implicit_heads.implicit(8),
    agents.IQNAgent,
    dict(samples=SAMPLES),
    {},
    quantile_huber,
  ),
  "fqf": Member(
    implicit_heads.fractions(6), agents.FQFAgent, {}, {}, quantile_huber
  ),
  "rainbow": Member(
    heads.categorical(11, -3.0, 3.0),
    agents.C51Agent,
    dict(double=True),
    ALL_RAINBOW,
    cross_entropy,
  ),
  "mmdqn": Member(heads.particles(7), agents.MMDQNAgent, {}, {}, mmd),
  "implicit_mmdqn": Member(
    implicit_heads.implicit(8, stratified=True),
    agents.ImplicitMMDQNAgent,
    dict(samples=SAMPLES),
    {},
    mmd,
  ),
  "implicit_mmdqn_normal": Member(
    implicit_heads.implicit(8, base="normal", stratified=True),
    agents.ImplicitMMDQNAgent,
    dict(samples=SAMPLES),
    {},
    mmd,
  ),
  "weighted_mmdqn": Member(
    heads.weighted_particles(7), agents.MMDQNAgent, {}, {}, mmd
  ),
  "adversarial_mmdqn": Member(
    heads.particles(7),
    agents.AdversarialMMDQNAgent,
    dict(knots=KNOTS),
    {},
    mapped_mmd,
  ),
  "rainbow_mmdqn": Member(
    heads.particles(7),
    agents.MMDQNAgent,
    dict(double=True),
    ALL_RAINBOW,
    mmd,
  ),
}


def specs(num_actions=3, image=False):
  """(time step spec, action spec) of a vector or of small pictures."""
  observation = tf.TensorSpec([4], tf.float32)
  if image:
    observation = tensor_spec.BoundedTensorSpec([10, 10, 2], tf.uint8, 0, 255)
  action = tensor_spec.BoundedTensorSpec([], tf.int32, 0, num_actions - 1)
  return ts.time_step_spec(observation), action


def make(name, *, num_actions=3, image=False, **changes):
  """The agent of that name."""
  head, agent_class, options, network_options, _ = FAMILY[name]
  agent_class = changes.pop("agent_class", agent_class)
  network_options = changes.pop("network_options", network_options)
  time_step_spec, action_spec = specs(num_actions, image)
  tf.keras.utils.set_random_seed(3)
  net = ReturnNetwork(
    time_step_spec.observation,
    action_spec,
    head,
    conv_layer_params=torsos.MINATAR_CONV if image else None,
    fc_layer_params=(16, 16),
    **network_options,
  )
  options = dict(options)
  if name == "fqf":
    options["fraction_optimizer"] = tf.keras.optimizers.RMSprop(1e-4)
  if agent_class is agents.AdversarialMMDQNAgent:
    options["kernel_optimizer"] = tf.keras.optimizers.Adam(1e-2)
  agent = agent_class(
    changes.pop("time_step_spec", time_step_spec),
    action_spec,
    net,
    tf.keras.optimizers.Adam(5e-3),
    **{"gamma": GAMMA, "unit": 1.0, "jit_compile": False, **options, **changes},
  )
  agent.initialize()
  if agent_class is agents.AdversarialMMDQNAgent:
    agent._auxiliary.map.parameters.assign([0.4, -0.3, 0.2])  # not the identity
  return agent


@functools.cache
def compiled(name, **changes):
  """The agent of that name and its variables before the first update."""
  agent = make(name, **changes)
  agent._optimizer.build(agent._network.trainable_weights)
  return agent, [variable.numpy() for variable in agent.state_variables()]


def shared(name, **changes):
  """`make(name, ...)`, compiled once for all tests that ask for it."""
  agent, initial = compiled(
    name, **{"unit": 1.0, "jit_compile": False, **changes}
  )
  for variable, value in zip(agent.state_variables(), initial, strict=True):
    variable.assign(value)
  return agent


def outputs(agent, net, observation, use):
  """values, weights, levels of every action, each [B, A, N] in float64."""
  made = agent._predict(net, observation, use)
  weights = np.float64(made.weights())
  levels = None if made.levels is None else np.float64(made.levels)
  return np.float64(made.values), weights, levels


def expected_losses(name, agent, observation, action, reward, discount, after):
  """(losses [B], target means [B]) of a batch, example by example.

  Args:
    name: of the agent.
    agent: the agent.
    observation: [B, ...].
    action: [B].
    reward: [B] n-step reward.
    discount: [B] what multiplies the next return.
    after: [B, ...] the next observation.

  Returns:
    The losses and the means of the targets.
  """
  online, target = agent._network, agent._target_network
  taken = outputs(agent, online, observation, Use.TAKEN)
  following = outputs(agent, target, after, Use.TARGET)
  choosing = following
  if "rainbow" in name or "double" in name:
    choosing = outputs(agent, online, after, Use.CHOICE)
  elif name.startswith(("iqn", "implicit")):
    choosing = outputs(agent, target, after, Use.CHOICE)
  losses, means = [], []
  for b in range(len(action)):
    best = np.argmax(np.sum(choosing[0][b] * choosing[1][b], axis=-1))
    y = reward[b] + discount[b] * following[0][b, best]
    q = following[1][b, best]
    x, p, levels = (part if part is None else part[b] for part in taken)
    x, p = x[action[b]], p[action[b]]
    levels = None if levels is None else levels[action[b]]
    losses.append(FAMILY[name].loss(agent, x, p, levels, y, q))
    means.append(q @ y)
  return np.array(losses), np.array(means)


def _mapped(agent, x):
  """The integral of the slopes from 0 to x."""
  breaks = np.float64([-100, *KNOTS, 100])
  slopes = 3.0 ** np.tanh(np.float64(agent._auxiliary.map.parameters))
  integral = np.concatenate([[0], np.cumsum(slopes * np.diff(breaks))])
  return np.interp(x, breaks, integral) - np.interp(0, breaks, integral)


def _huber(u, kappa):
  u = abs(u)
  if kappa == 0:
    return u
  return 0.5 * u**2 / kappa if u <= kappa else u - 0.5 * kappa


def _project(y, q, support):
  result, gap = np.zeros(len(support)), support[1] - support[0]
  for value, weight in zip(y, q):
    place = (np.clip(value, support[0], support[-1]) - support[0]) / gap
    low = min(int(np.floor(place)), len(support) - 2)
    result[low] += weight * (low + 1 - place)
    result[low + 1] += weight * (place - low)
  return result
