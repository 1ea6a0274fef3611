"""Random games, and the slow and obviously right replay to hold against."""

import numpy as np
import tensorflow as tf
from tf_agents.trajectories import trajectory
from tf_agents.trajectories.time_step import StepType

FIRST, MID, LAST = int(StepType.FIRST), int(StepType.MID), int(StepType.LAST)


def make_spec(shape=(3, 2, 4), dtype=tf.uint8):
  return trajectory.Trajectory(
    step_type=tf.TensorSpec([], tf.int32, "step_type"),
    observation=tf.TensorSpec(shape, dtype, "observation"),
    action=tf.TensorSpec([], tf.int64, "action"),
    policy_info=(),
    next_step_type=tf.TensorSpec([], tf.int32, "next_step_type"),
    reward=tf.TensorSpec([], tf.float32, "reward"),
    discount=tf.TensorSpec([], tf.float32, "discount"),
  )


class _Game:
  """One environment: games of random length, lives, ends and padding."""

  def __init__(self, rng, stack, frame_shape, dtype, mean_length):
    self.rng, self.stack, self.dtype = rng, stack, np.dtype(dtype)
    self.frame_shape, self.mean_length = frame_shape, mean_length
    self.restart()

  def frame(self):
    # Few values: equal neighbours must not confuse the buffer.
    return self.rng.integers(0, 3, self.frame_shape).astype(self.dtype)

  def restart(self):
    newest = self.frame()
    older = {
      0: lambda: np.zeros_like(newest),
      1: lambda: newest,
      2: self.frame,
    }[self.rng.integers(3)]
    self.stacked = [older() for _ in range(self.stack - 1)] + [newest]
    self.step_type = FIRST

  def step(self):
    observation = np.concatenate(self.stacked, axis=-1)
    before, reward, discount = self.step_type, np.float32(0), np.float32(1)
    if before == LAST:
      self.restart()
    else:
      self.stacked = [*self.stacked[1:], self.frame()]
      over = self.rng.random() < 1 / self.mean_length
      self.step_type = LAST if over else MID
      reward = np.float32(self.rng.normal())
      discount = np.float32(self.rng.random() < 0.6)  # a life, an end, a cut
    return trajectory.Trajectory(
      step_type=np.int32(before),
      observation=observation,
      action=np.int64(self.rng.integers(5)),
      policy_info=(),
      next_step_type=np.int32(self.step_type),
      reward=reward,
      discount=discount,
    )


class Games:
  """A batch of random environments; `step` gives [B, ...] trajectories."""

  def __init__(
    self,
    seed,
    batch_size,
    *,
    stack=4,
    frame_shape=(3, 2, 1),
    dtype=np.uint8,
    mean_length=6,
  ):
    rngs = np.random.default_rng(seed).spawn(batch_size)
    self.games = [
      _Game(rng, stack, frame_shape, dtype, mean_length) for rng in rngs
    ]

  def step(self):
    steps = [game.step() for game in self.games]
    return tf.nest.map_structure(lambda *leaves: np.stack(leaves), *steps)


class Oracle:
  """Keeps whole trajectories in a list; slow, and plain to see through."""

  def __init__(self, batch_size, max_length, *, stack, frame_slots, n_step):
    self.steps = []
    self.max_length, self.stack = max_length, stack
    self.frame_slots, self.n_step = frame_slots, n_step
    self.batch_size = batch_size
    self.ends = [[] for _ in range(batch_size)]  # frames used up to each step
    self.cleared = 0  # the first step after that

  def add(self, step):
    for row, ends in enumerate(self.ends):
      new = self.stack
      if len(self.steps) > self.cleared:
        channels = step.observation.shape[-1] // self.stack
        old = self.steps[-1].observation[row][..., channels:]
        if np.array_equal(old, step.observation[row][..., :-channels]):
          new = 1
      ends.append((ends[-1] if ends else 0) + new)
    self.steps.append(step)

  def clear(self):
    self.cleared = len(self.steps)

  def retained(self, row):
    """The steps that must still be there."""
    ends = self.ends[row]
    return [
      t
      for t in range(len(self.steps))
      if t >= max(self.cleared, len(self.steps) - self.max_length)
      and (
        self.stack == 1 or ends[t] - self.stack >= ends[-1] - self.frame_slots
      )
    ]

  def starts(self):
    """The ids at which a sample may start."""
    found = set()
    for row in range(self.batch_size):
      for t in self.retained(row):
        if t + self.n_step >= len(self.steps):
          continue
        if self.steps[t].step_type[row] == LAST:
          continue
        cut = any(
          self.steps[s].step_type[row] == LAST
          and self.steps[s - 1].discount[row] != 0
          for s in range(t + 1, t + self.n_step)
        )
        if not cut:
          found.add(t * self.batch_size + row)
    return found

  def sequence(self, id_, num_steps):
    """The [T, ...] trajectory that starts at an id."""
    t, row = divmod(int(id_), self.batch_size)
    steps = [
      tf.nest.map_structure(lambda leaf: leaf[row], step)
      for step in self.steps[t : t + num_steps]
    ]
    return tf.nest.map_structure(lambda *leaves: np.stack(leaves), *steps)


def assert_same(actual, expected):
  """Equal nests: dtypes, shapes and every bit."""
  tf.nest.assert_same_structure(actual, expected)
  for a, b in zip(tf.nest.flatten(actual), tf.nest.flatten(expected)):
    a, b = np.asarray(a), np.asarray(b)
    assert a.dtype == b.dtype and a.shape == b.shape, (a.dtype, b.dtype)
    np.testing.assert_array_equal(a, b)
