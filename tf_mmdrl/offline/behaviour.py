"""What the logged behaviour does: a model of it, for conservative learning.

Discrete BCQ (Fujimoto et al., "Benchmarking Batch Deep Reinforcement Learning
Algorithms", 2019) lets the target choose among actions only whose probability
is at least a share of that of the most frequent one. Logs seldom hold the
probabilities of actions that were not taken, so a network learns them.
"""

import pathlib
from typing import Optional

import numpy as np
import tensorflow as tf

from tf_mmdrl.core import whole_files
from tf_mmdrl.offline import blocks
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import factories, logged_specs

_FILE = "behaviour"  # in the directory of the run
_PERIOD, _MOST, _PATIENCE, _BATCH = 100, 5_000, 3, 128
_RATE = 1e-3


class Behaviour:
  """Probabilities of actions, as the data shows them."""

  def __init__(self, config: configs.Config, specs: logged_specs.LoggedSpecs):
    """Makes a network like the agent's, with a number for each action."""
    tf.keras.utils.set_random_seed(factories.seeds(config).exploration)
    plain = configs.change(
      config,
      [
        "agent.name=dqn",
        "network.num_particles=1",
        "network.dueling=false",
        "network.noisy=false",
      ],
    )
    self._network = factories.network(
      plain, specs.observation_spec(), specs.action_spec()
    )
    self._network.create_variables()
    self._optimizer = tf.keras.optimizers.Adam(_RATE)
    self._seed = config.system.seed
    self._update = tf.function(self._updated, autograph=False)
    self._chances = tf.function(
      lambda seen: tf.nn.softmax(self._logits(seen)), autograph=False
    )

  def supported(self, share: float) -> blocks.Probabilities:
    """Observations [B, ...] -> [B, A], 1 where an action is supported.

    Args:
      share: of the most frequent action's probability.

    Returns:
      The function.
    """

    def mask(observations):
      chances = self._chances(tf.convert_to_tensor(observations)).numpy()
      best = chances.max(axis=1, keepdims=True)
      return (chances >= share * best).astype(np.float32)

    return mask

  def learn(self, source: blocks.Source) -> None:
    """Learns until held-out actions are not predicted better any more."""
    lowest, since = np.inf, 0
    best = self._network.get_weights()
    for number in range(_MOST // _PERIOD):
      block = source.block(number)
      generator = np.random.default_rng([self._seed, 4, number])
      for rows in generator.integers(
        len(block.actions), size=[_PERIOD, _BATCH]
      ):
        self._update(block.observations[rows], block.actions[rows])
      loss = self._held_out(source.held_out)
      if loss < lowest:
        lowest, since, best = loss, 0, self._network.get_weights()
      else:
        since += 1
      if since == _PATIENCE:
        break
    self._network.set_weights(best)

  def save(self, directory: pathlib.Path, key: str) -> None:
    """Keeps in a run's directory what was learnt from the data called `key`."""
    arrays = {str(n): w for n, w in enumerate(self._network.get_weights())}
    content = whole_files.encode(arrays)
    sign = whole_files.digest(key.encode() + content).encode()
    whole_files.write(directory / _FILE, sign + b"\n" + content)

  def restore(self, directory: pathlib.Path, key: str) -> bool:
    """Whether it was learnt before from these data, and is whole."""
    path = directory / _FILE
    if not path.exists():
      return False
    sign, _, content = path.read_bytes().partition(b"\n")
    if whole_files.digest(key.encode() + content).encode() != sign:
      return False
    arrays = whole_files.decode(content)
    self._network.set_weights([arrays[str(n)] for n in range(len(arrays))])
    return True

  def _logits(self, observations) -> tf.Tensor:
    return tf.squeeze(self._network(observations)[0], axis=-1)

  def _updated(self, observations, actions) -> None:
    weights = self._network.trainable_weights
    with tf.GradientTape() as tape:
      losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
        actions, self._logits(observations)
      )
      loss = tf.reduce_mean(losses)
    gradients = tape.gradient(loss, weights)
    self._optimizer.apply_gradients(zip(gradients, weights))

  def _held_out(self, block: blocks.Block) -> float:
    chances = blocks.ask(
      lambda seen: self._chances(tf.convert_to_tensor(seen)).numpy(),
      block.observations,
    )
    taken = chances[np.arange(len(chances)), block.actions]
    return float(-np.log(np.maximum(taken, 1e-12)).mean())


def pessimistic(
  batches: blocks.Block, lowest: np.ndarray, seed: Optional[list]
) -> blocks.Block:
  """Adds a quarter as many examples of actions that the data does not support.

  The policy must not choose these either, and all that it knows of them are
  the values of a network that was never told better. So they are taught to
  return the least that was logged.

  Args:
    batches: [K, B] transitions, whose `next_probabilities` are 0 for actions
      that are not supported.
    lowest: [] or [D], the least return from a logged state.
    seed: which examples, and which of their actions.

  Returns:
    [K, B + B // 4] transitions; where an example has no such action its weight
    is 0.
  """
  extra = max(1, batches.actions.shape[1] // 4)
  some = blocks.Block(*(part[:, :extra] for part in batches))
  drawn = np.random.default_rng(seed).random(some.next_probabilities.shape)
  chosen = np.where(some.next_probabilities > 0, -1.0, drawn)
  actions = chosen.argmax(axis=-1).astype(np.int32)
  is_any = chosen.max(axis=-1) >= 0
  taught = some._replace(
    observations=some.next_observations,
    actions=actions,
    rewards=np.broadcast_to(lowest, some.rewards.shape).astype(np.float32),
    discounts=np.zeros_like(some.discounts),
    weights=np.where(is_any, some.weights, 0).astype(np.float32),
  )
  pairs = zip(batches, taught)
  return blocks.Block(*(np.concatenate(pair, axis=1) for pair in pairs))
