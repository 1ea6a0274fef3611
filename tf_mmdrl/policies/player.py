"""Plays by the return distributions of a network."""

from typing import Callable, NamedTuple, Optional, Tuple

import numpy as np
import tensorflow as tf
from tf_agents.networks import network
from tf_agents.trajectories import time_step as ts
from tf_agents.typing import types

from tf_mmdrl.core import choosing
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.policies import utilities
from tf_mmdrl.policies.scores import Draws, Mean, Score

# (observation [B, ...], is_first [B], kept [B, 1], epsilon [], seed [2]) ->
# (actions [B], kept [B, 1]).
Act = Callable[..., Tuple[tf.Tensor, tf.Tensor]]


class View(NamedTuple):
  """What a player sees before it chooses.

  Attributes:
    distributions: [B, A, N] return distributions, as the score sees them.
    scores: [B, A], what it chooses by.
    mask: [B, A] of the actions allowed, or None for all.
    kept: [B, 1], a draw that is kept through an episode.
  """

  distributions: ReturnDistribution
  scores: tf.Tensor
  mask: Optional[tf.Tensor]
  kept: tf.Tensor


class Player:
  """Takes the action with the largest score, or a random one.

  Attributes:
    num_actions: A.
    score: what it chooses by.
  """

  def __init__(
    self,
    return_network: network.Network,
    num_actions: int,
    *,
    score: Score = Mean(),  # noqa: B008  (it is frozen)
    noisy: bool = False,
    splitter: Optional[types.Splitter] = None,
  ):
    """Makes the player.

    Args:
      return_network: observation -> [B, A, N].
      num_actions: A.
      score: what to choose by.
      noisy: whether the noise in the network's weights is on, to explore. The
        levels of an implicit head are even, noise or not.
      splitter: observation -> (the network's part, [B, A] mask of the actions
        allowed).
    """
    self._network = return_network
    self._splitter = splitter
    self._noisy = noisy and getattr(return_network, "is_noisy", False)
    self.num_actions = num_actions
    self.score = score

  def view(
    self, observation, is_first: tf.Tensor, kept: tf.Tensor, drawn
  ) -> View:
    """What there is to choose from.

    Args:
      observation: [B, ...].
      is_first: [B], whether an episode begins.
      kept: [B, 1], of the view before.
      drawn: `choosing.chance` of this choice.

    Returns:
      The view.
    """
    observation, mask = split(observation, self._splitter)
    options = {}
    if self._noisy:
      options = {"seed": drawn.noise, "even_levels": True}
    output, _ = self._network(observation, **options)
    distributions = self.score.see(ReturnDistribution.of(output), observation)
    uniform = drawn.score
    if self.score.draws is Draws.EACH_EPISODE:
      kept = tf.where(is_first[:, tf.newaxis], uniform[:, :1], kept)
      uniform = kept
    return View(distributions, self.score(distributions, uniform), mask, kept)

  def act(
    self, observation, is_first, kept, epsilon, seed
  ) -> Tuple[tf.Tensor, tf.Tensor]:
    """Actions [B], and what is kept; see `Act`."""
    drawn = choosing.chance(seed, tf.shape(is_first)[0], self.num_actions)
    seen = self.view(observation, is_first, kept, drawn)
    return choosing.choose(seen.scores, seen.mask, epsilon, drawn), seen.kept


def by_scores(
  scores: Callable[[tf.Tensor], tf.Tensor], num_actions: int
) -> Act:
  """Plays by a function from observations [B, ...] to scores [B, A]."""

  def act(observation, is_first, kept, epsilon, seed):
    drawn = choosing.chance(seed, tf.shape(is_first)[0], num_actions)
    return choosing.choose(scores(observation), None, epsilon, drawn), kept

  return act


class ArrayPlayer:
  """Plays on arrays; the n-th choice depends on the seed and n alone.

  Attributes:
    kept: [B, 1], what is kept through an episode; the only state.
  """

  def __init__(self, act: Act, num_actions: int, seed: int = 0):
    """Compiles the way to act.

    Args:
      act: how actions are chosen: `Player.act`, or what `by_scores` makes.
      num_actions: A.
      seed: below 2^31, of everything that is random.
    """
    self._act = tf.function(act, autograph=False)
    self._random = tf.function(_random(num_actions), autograph=False)
    self._seed = seed
    self.kept = np.zeros([0, 1], np.float32)

  def reseeded(self, *seed: int) -> "ArrayPlayer":
    """This player with other draws; nothing is compiled again."""
    other = ArrayPlayer.__new__(ArrayPlayer)
    other._act, other._random = self._act, self._random
    other._seed = int(np.random.SeedSequence(seed).generate_state(1)[0] >> 1)
    other.kept = np.zeros([0, 1], np.float32)
    return other

  def __call__(
    self, time_step: ts.TimeStep, epsilon: float, number: int
  ) -> np.ndarray:
    """[B] actions of choice `number`, int64."""
    first = time_step.step_type == ts.StepType.FIRST
    if len(self.kept) != len(first):
      self.kept = np.zeros([len(first), 1], np.float32)
    # Nothing is asked of the network where all actions are random.
    act = self._random if epsilon >= 1 else self._act
    try:
      actions, kept = act(
        tf.convert_to_tensor(time_step.observation),
        tf.constant(first),
        tf.constant(self.kept),
        tf.constant(epsilon, tf.float32),
        tf.constant([self._seed, number], tf.int64),
      )
    except tf.errors.InvalidArgumentError as error:
      utilities.raise_if_not_finite(error)
      raise
    self.kept = kept.numpy()
    return actions.numpy()


def _random(num_actions: int) -> Act:
  def act(observation, is_first, kept, epsilon, seed):
    drawn = choosing.chance(seed, tf.shape(is_first)[0], num_actions)
    kept = tf.where(is_first[:, tf.newaxis], drawn.score[:, :1], kept)
    return choosing.largest(drawn.order), kept

  return act


def split(observation, splitter):
  """(the network's observation, the mask of allowed actions or None)."""
  return (observation, None) if splitter is None else splitter(observation)
