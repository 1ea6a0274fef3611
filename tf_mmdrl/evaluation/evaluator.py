"""Evaluates a policy on whole games, as many in each environment."""

import itertools
from typing import (
  Callable,
  Iterator,
  List,
  NamedTuple,
  Optional,
  Protocol,
  Tuple,
)

import numpy as np
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import environments
from tf_mmdrl.core import specs
from tf_mmdrl.environments import checked
from tf_mmdrl.policies.player import Act, ArrayPlayer

# [K, D] scores of games -> what each is worth, [K], and all of them together.
Worth = Callable[[np.ndarray], Tuple[np.ndarray, float]]


class Plan(Protocol):
  """How much to play, and how."""

  @property
  def episodes(self) -> int:
    """Games in all."""

  @property
  def steps(self) -> int:
    """Steps in all, instead of games; 0 for games."""

  @property
  def epsilon(self) -> float:
    """The share of random actions."""

  @property
  def max_episode_steps(self) -> int:
    """Steps after which a game that has not ended counts as it is."""


class Evaluation(NamedTuple):
  """What an evaluation found.

  Attributes:
    scores: the score of every game that counts, unclipped; what it is worth,
      if its rewards were vectors.
    lengths: how many steps each of these games took.
    cut: how many of them had not ended when they were as long as may be.
    vectors: [K, D] sums of the games' rewards, if these were vectors.
    worth: of all games together, if so.
  """

  scores: List[float]
  lengths: List[int]
  cut: int = 0
  vectors: Optional[np.ndarray] = None
  worth: Optional[float] = None

  @property
  def mean(self) -> float:
    """The average score, or what vectors of scores are worth together."""
    return float(np.mean(self.scores)) if self.worth is None else self.worth


class Turn(NamedTuple):
  """One step of a batch of games.

  Attributes:
    time_step: what the environments show.
    reward: [B] or [B, D] raw rewards that came with it; 0 at first.
    actions: [B] what the policy chose to do next.
  """

  time_step: ts.TimeStep
  reward: np.ndarray
  actions: np.ndarray


class Evaluator:
  """Plays games that depend on the seed and the step of the run only."""

  def __init__(
    self,
    environment: environments.Environment,
    act: Act,
    plan: Plan,
    seed: int,
    worth: Optional[Worth] = None,
  ):
    """Plays nothing yet.

    Args:
      environment: batched, with a seed, its rewards unclipped.
      act: how actions are chosen: `Player.act`, or what `by_scores` makes.
      plan: how many games to play, and how.
      seed: the seed of the random actions.
      worth: what games are worth whose scores are vectors [K, D]: [K] numbers,
        and the number of all together. It is asked for such scores only.
    """
    self._environment = environment
    self._worth = worth
    self._plan = plan
    self._seed = seed
    num_actions = specs.num_actions(environment.action_spec())
    self._player = ArrayPlayer(act, num_actions)

  def evaluate(
    self,
    step: int,
    stop: Callable[[], bool] = lambda: False,
    watch: Callable[[ts.TimeStep], None] = lambda time_step: None,
    progress: Callable[[float], None] = lambda share: None,
  ) -> Evaluation:
    """Plays the games of an evaluation.

    A fixed number of games, or of steps, falls to each environment. To count
    whichever games end first would favour short ones.

    Args:
      step: the step of the run; together with the seed it decides the games.
      stop: asked at every step whether to break off.
      watch: shown every time step.
      progress: told, at every step, the share that is done.

    Returns:
      The games; incomplete if broken off.
    """
    shape = self._environment.reward_spec().shape
    tally = _Tally(self._environment.batch_size, self._plan, shape)
    for turn in self.turns(step):
      tally.add(turn.time_step, turn.reward)
      watch(turn.time_step)
      progress(tally.share)
      if tally.done or stop():
        break
    return tally.result(self._worth)

  def turns(self, step: int) -> Iterator[Turn]:
    """Plays on for as long as it is asked to.

    An action is taken when the next turn is asked for, so that until then the
    environments can be drawn as they were when it was chosen.

    Args:
      step: the step of the run; together with the seed it decides the games.

    Yields:
      The turns, from the first time step on.
    """
    play = self._player.reseeded(self._seed, step)
    time_step = self._environment.rebuild(step)
    shape = self._environment.reward_spec().shape
    reward = np.zeros([self._environment.batch_size, *shape])
    for number in itertools.count():
      actions = play(time_step, self._plan.epsilon, number)
      yield Turn(time_step, reward, actions)
      with checked.telling(
        f"at step {number} of the evaluation at step {step}; mend the"
        " environment"
      ):
        time_step = self._environment.step(actions)
      reward = self._environment.raw_reward

  def close(self) -> None:
    """Closes the environments."""
    self._environment.close()


class _Tally:
  """Counts the games of a batch until each environment has done its share."""

  def __init__(
    self, batch: int, plan: Plan, reward_shape: Tuple[int, ...] = ()
  ):
    self._episodes = -(-plan.episodes // batch)
    self._steps = -(-plan.steps // batch)
    self._longest = plan.max_episode_steps
    self._is_cut = np.zeros([batch], bool)
    self._score = np.zeros([batch, *reward_shape])
    self._length = np.zeros([batch], np.int64)
    self._played = np.zeros([batch], np.int64)
    self._games: List[List[tuple]] = [[] for _ in range(batch)]

  @property
  def done(self) -> bool:
    return not self._wants().any()

  @property
  def share(self) -> float:
    """How much of it is done, from 0 to 1; a cut environment's part is."""
    if self._steps:
      each = np.minimum(1.0, self._played / self._steps)
    else:
      games = [len(row) for row in self._games]
      each = np.minimum(1.0, np.array(games) / self._episodes)
    return float(np.mean(np.where(self._is_cut, 1.0, each)))

  def add(self, time_step: ts.TimeStep, reward: np.ndarray) -> None:
    first = time_step.step_type == ts.StepType.FIRST
    last = time_step.step_type == ts.StepType.LAST
    self._score += reward
    self._length += ~first
    self._played += ~first
    wanted = self._wants()
    too_long = wanted & ~last & (self._length >= self._longest)
    for row in np.flatnonzero(last & wanted | too_long):
      self._games[row].append((self._score[row].copy(), self._length[row]))
    self._is_cut |= too_long
    self._score[last], self._length[last] = 0, 0

  def result(self, worth: Optional[Worth] = None) -> Evaluation:
    games = [game for row in self._games for game in row]
    lengths, cut = [int(n) for _, n in games], int(self._is_cut.sum())
    if self._score.ndim == 1 or not games:
      return Evaluation([float(score) for score, _ in games], lengths, cut)
    assert worth is not None
    vectors = np.array([score for score, _ in games])
    each, together = worth(vectors)
    scores = [float(score) for score in each]
    return Evaluation(scores, lengths, cut, vectors, together)

  def _wants(self) -> np.ndarray:
    """[B] whether an environment's game under way still counts.

    By steps, a game counts that began before the steps were through, as in the
    authors' code; it is played to its end. Where one was too long, no more are
    played: it would only go on.
    """
    if self._steps:
      return ~self._is_cut & (self._played - self._length < self._steps)
    few = np.array([len(row) < self._episodes for row in self._games])
    return ~self._is_cut & few
