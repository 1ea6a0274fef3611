"""Logged episodes, whatever file they lie in."""

import abc
import pathlib
from typing import Iterator, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_mmdrl.core import errors


class Episode(NamedTuple):
  """T steps in a row.

  Attributes:
    observations: [T, ...] before each action.
    actions: [T] int64, from 0.
    rewards: [T] float32 natural rewards, or [T, D].
    next_observations: [T, ...] after each action.
    terminated: whether the last step ended the episode. If not, it was cut off
      there, and its last state has a return, too.
    behaviour: [T] float64 probabilities with which the behaviour policy took
      these actions; None if they were not logged.
  """

  observations: np.ndarray
  actions: np.ndarray
  rewards: np.ndarray
  next_observations: np.ndarray
  terminated: bool
  behaviour: Optional[np.ndarray] = None


class Description(NamedTuple):
  """What all episodes of a data set share.

  Attributes:
    observation_shape: of one observation.
    observation_dtype: of its numbers.
    num_actions: A.
    reward_size: D of vector rewards; 0 for plain numbers.
    environment: what was played, if the data says so.
  """

  observation_shape: Tuple[int, ...]
  observation_dtype: np.dtype
  num_actions: int
  reward_size: int = 0
  environment: Optional[str] = None

  @property
  def step_bytes(self) -> int:
    """Of one transition in memory."""
    size = int(np.prod(self.observation_shape, dtype=np.int64))
    return 2 * size * self.observation_dtype.itemsize + 32


class DataSet(abc.ABC):
  """Episodes that are read when they are asked for.

  Attributes:
    path: where they lie.
    description: what they share.
    lengths: [E] steps of each episode.
    has_behaviour: whether the probabilities of actions were logged.
    counts_actions: whether the number of actions is known only from those that
      were taken, so that there may be more.
  """

  counts_actions = False
  path: pathlib.Path
  description: Description
  lengths: np.ndarray
  has_behaviour: bool

  @property
  def num_steps(self) -> int:
    """Steps of all episodes."""
    return int(self.lengths.sum())

  @abc.abstractmethod
  def read(self, indices: Sequence[int]) -> Iterator[Episode]:
    """Episodes by number, checked, one after another."""

  def allow(self, num_actions: int) -> None:
    """Takes it that there are so many actions, if the data does not say."""
    if self.counts_actions and num_actions > self.description.num_actions:
      self.description = self.description._replace(num_actions=num_actions)

  def __len__(self) -> int:
    return len(self.lengths)


def broken(path: pathlib.Path, why: str) -> errors.UserError:
  """The error for a data set that cannot be read."""
  return errors.UserError(f"the data set {str(path)!r} cannot be used: {why}")


def check(
  episode: Episode, description: Description, path: pathlib.Path, number: int
) -> Episode:
  """The episode, if its numbers can be learnt from."""
  where = f"episode {number}"
  steps = len(episode.actions)
  if not steps:
    raise broken(path, f"{where} has no steps; leave it out")
  for name, part in (
    ("observations", episode.observations),
    ("rewards", episode.rewards),
    ("next observations", episode.next_observations),
    ("behaviour probabilities", episode.behaviour),
  ):
    if part is None:
      continue
    if len(part) != steps:
      raise broken(path, f"{where} has {steps} actions, but {len(part)} {name}")
    if part.dtype.kind == "f" and not np.isfinite(part).all():
      step = int(np.argwhere(~np.isfinite(part))[0][0])
      raise broken(
        path,
        f"{name} must be finite, got {part[step].ravel()[:4]} in {where} at"
        f" step {step}; repair or remove that episode",
      )
  _check_actions(episode, description, path, where)
  shape = episode.observations.shape[1:]
  if shape != description.observation_shape:
    raise broken(
      path,
      f"observations of shape {description.observation_shape} are wanted, got"
      f" {shape} in {where}",
    )
  if episode.rewards.ndim != 1 + (description.reward_size > 0):
    raise broken(
      path,
      f"rewards must be one number for each step in {where}, got the shape"
      f" {episode.rewards.shape}",
    )
  return episode


def _check_actions(episode, description, path, where) -> None:
  low, high = int(episode.actions.min()), int(episode.actions.max())
  if low < 0 or high >= description.num_actions:
    raise broken(
      path,
      f"actions must lie in 0 to {description.num_actions - 1}, got"
      f" {low if low < 0 else high} in {where}",
    )
  if episode.behaviour is not None:
    least, most = episode.behaviour.min(), episode.behaviour.max()
    if least <= 0 or most > 1 + 1e-6:
      raise broken(
        path,
        "behaviour probabilities of actions that were taken must lie in"
        f" (0, 1], got {least if least <= 0 else most:g} in {where}",
      )


class Summary(NamedTuple):
  """What one pass over a data set found.

  Attributes:
    num_terminated: episodes that ended, and were not cut off.
    action_counts: [A] how often each action was taken.
  """

  num_terminated: int
  action_counts: np.ndarray


def summarize(data: DataSet) -> Summary:
  """Reads all of it once: what cannot be learnt from raises here."""
  counts = np.zeros([data.description.num_actions], np.int64)
  terminated = 0
  for episode in data.read(range(len(data))):
    counts += np.bincount(episode.actions, minlength=len(counts))
    terminated += episode.terminated
  return Summary(terminated, counts)


def blocks(data: DataSet, budget: int, order: Sequence[int]) -> List[List[int]]:
  """Episodes in parts that fit into memory.

  Args:
    data: the episodes.
    budget: bytes that the transitions of a part may take.
    order: numbers of episodes, in which they are dealt to the parts.

  Returns:
    Lists of numbers of episodes; an episode alone may exceed the budget.
  """
  room = max(1, budget // data.description.step_bytes)
  parts: List[List[int]] = [[]]
  steps = 0
  for index in order:
    length = int(data.lengths[index])
    if parts[-1] and steps + length > room:
      parts.append([])
      steps = 0
    parts[-1].append(int(index))
    steps += length
  return parts
