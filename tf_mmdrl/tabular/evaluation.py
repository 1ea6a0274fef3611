"""Algorithm 2: tabular policy evaluation with TD-style updates.

Many independent learners run at once. Their tables are stacked into one array
of rows, one row of N numbers (particles or probabilities) for each state of
each learner, and a step of the compiled loop carries out one transition of W
different learners. Learners are queued on the W slots, longest first, so that
short and long ones keep every slot busy to the end.

Targets come from theta^-, a copy that a learner renews once a period. It is not
copied whole: a row's value is kept aside at its first change in a period, and
what reads it later in that period is pointed there beforehand.
"""

import concurrent.futures
import dataclasses
import threading
from typing import Callable, Iterator, List, Sequence, Tuple

import numpy as np
import tensorflow as tf

from tf_mmdrl.tabular import tabular_updates

_STEPS_PER_CALL = 2048


@dataclasses.dataclass(frozen=True)
class Transitions:
  """The transitions that one learner learns from, in order.

  Attributes:
    row: [T] the learner's table row to change.
    successor: [T] the row to bootstrap from.
    period: [T] never falling; the rows to bootstrap from are those at the
      beginning of the period, theta^- of Algorithm 2.
    reward: [T].
    discount: [T]; 0 where the episode ends.
    rate: [T] learning rates.
  """

  row: np.ndarray
  successor: np.ndarray
  period: np.ndarray
  reward: np.ndarray
  discount: np.ndarray
  rate: np.ndarray


def evaluate(
  table: np.ndarray,
  learners: Sequence[Transitions],
  update: tabular_updates.Update,
  *,
  slots: int = 80,
  threads: int = 2,
  dtype: tf.DType = tf.float32,
  on_progress: Callable[[float], None] = lambda share: None,
) -> np.ndarray:
  """Runs every learner through its transitions.

  Args:
    table: [R, N] initial rows; learners never share one.
    learners: their transitions.
    update: what one transition does to a row.
    slots: W, the learners a thread steps at once.
    threads: how many compiled loops run side by side.
    dtype: the dtype of the arithmetic. float32 errs by 1e-7 a step where the
      sampling of the transitions errs by 1e-1, and takes half the time.
    on_progress: told the share that is done.

  Returns:
    [R, N] the table after all transitions.
  """
  rows = len(table)
  threads = min(threads, len(learners))
  slots = min(slots, -(-len(learners) // threads))
  run = _compiled_loop(update, slots, table.shape, dtype)
  queues = _queues(learners, slots * threads)
  groups = [queues[i::threads] for i in range(threads)]
  calls = sum(_calls(group) for group in groups)
  progress = _Progress(calls, on_progress)
  stopped = threading.Event()

  def run_group(group: List[List[Transitions]]) -> np.ndarray:
    # Rows R to 2R hold theta^-; row 2R + w is where slot w writes when idle.
    idle = np.zeros([len(group), table.shape[-1]])
    state = tf.constant(np.concatenate([table, table, idle]), dtype)
    for indices, numbers in _batches(group, rows):
      if stopped.is_set():
        break
      state = run(state, tf.constant(indices), tf.constant(numbers, dtype))
      state.numpy()  # waits: a call that is merely queued is not done
      progress.advance()
    return state.numpy()

  result = table.astype(dtype.as_numpy_dtype)
  with concurrent.futures.ThreadPoolExecutor(threads) as pool:
    try:
      for group, state in zip(groups, pool.map(run_group, groups)):
        changed = [each.row for queue in group for each in queue]
        changed = np.unique(np.concatenate(changed))
        result[changed] = state[changed]
    finally:
      stopped.set()  # an interrupt need not wait for the threads' last call
  return result


class _Progress:
  """Counts the calls of all threads; reports one at a time, in order."""

  def __init__(self, total: int, report: Callable[[float], None]):
    self._total, self._report = total, report
    self._done, self._lock = 0, threading.Lock()

  def advance(self) -> None:
    with self._lock:
      self._done += 1
      self._report(self._done / self._total)


def _compiled_loop(
  update: tabular_updates.Update,
  slots: int,
  shape: Sequence[int],
  dtype: tf.DType,
) -> Callable[..., tf.Tensor]:
  """Traced here, once: all threads would trace it at their first calls."""
  rows, count = shape
  signature = (
    tf.TensorSpec([2 * rows + slots, count], dtype),
    tf.TensorSpec([_STEPS_PER_CALL, slots, 3], tf.int32),
    tf.TensorSpec([_STEPS_PER_CALL, slots, 3], dtype),
  )

  def run(table, indices, numbers):
    """One call: indices [C, W, 3] of rows, numbers [C, W, 3]."""

    def step(i, table):
      at, successor, keep = tf.unstack(indices[i], axis=-1)
      reward, discount, rate = tf.split(numbers[i], 3, axis=-1)
      row = tf.gather(table, at)
      new = update(row, tf.gather(table, successor), reward, discount, rate)
      written = tf.concat([at, keep], 0)[:, None]
      values = tf.concat([new, row], 0)
      return i + 1, tf.tensor_scatter_nd_update(table, written, values)

    return tf.while_loop(lambda i, _: i < _STEPS_PER_CALL, step, (0, table))[1]

  return tf.function(run, jit_compile=True).get_concrete_function(*signature)


def _queues(
  learners: Sequence[Transitions], count: int
) -> List[List[Transitions]]:
  """Deals the learners to `count` queues, longest first, evenly filled."""
  queues: List[List[Transitions]] = [[] for _ in range(count)]
  load = np.zeros(count, int)
  for learner in sorted(learners, key=lambda each: -each.row.size):
    shortest = int(np.argmin(load))
    queues[shortest].append(learner)
    load[shortest] += learner.row.size
  return queues


def _calls(group: List[List[Transitions]]) -> int:
  """How many calls of C steps the longest queue needs."""
  longest = max(sum(each.row.size for each in queue) for queue in group)
  return -(-longest // _STEPS_PER_CALL)


def _batches(
  group: List[List[Transitions]], rows: int
) -> Iterator[Tuple[np.ndarray, np.ndarray]]:
  """Yields the arguments of each call: [C, W, 3] and [C, W, 3]."""
  steps = _calls(group) * _STEPS_PER_CALL
  idle = 2 * rows + np.arange(len(group))
  indices = np.empty([steps, len(group), 3], np.int32)
  indices[:] = idle[:, None]
  numbers = np.zeros([steps, len(group), 3])
  for slot, queue in enumerate(group):
    start = 0
    for each in queue:
      span = slice(start, start + each.row.size)
      indices[span, slot] = _indices(each, rows, idle[slot])
      numbers[span, slot, 0] = each.reward
      numbers[span, slot, 1] = each.discount
      numbers[span, slot, 2] = each.rate
      start = span.stop
  for start in range(0, steps, _STEPS_PER_CALL):
    span = slice(start, start + _STEPS_PER_CALL)
    yield indices[span], numbers[span]


def _indices(each: Transitions, rows: int, idle: int) -> np.ndarray:
  """[T, 3]: the row, where its target is read, where its old value is kept."""
  time = np.arange(each.row.size)
  changed, first = np.unique(each.period * rows + each.row, return_index=True)
  keep = np.full(each.row.size, idle)
  keep[first] = rows + each.row[first]
  wanted = each.period * rows + each.successor
  at = np.minimum(np.searchsorted(changed, wanted), changed.size - 1)
  kept = (changed[at] == wanted) & (first[at] < time)
  return np.stack([each.row, each.successor + rows * kept, keep], -1)
