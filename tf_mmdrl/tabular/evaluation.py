"""Algorithm 2: tabular policy evaluation with TD-style updates.

Many independent learners run at once. Their tables are stacked into one array
of rows, one row of N numbers (particles or probabilities) for each state of
each learner, and a step of the compiled loop carries out one transition of W
different learners. Learners are queued on the W slots, longest first, so that
short and long ones keep every slot busy to the end.
"""

import concurrent.futures
import dataclasses
from typing import Callable, Iterator, List, Sequence, Tuple

import numpy as np
import tensorflow as tf

from tf_mmdrl.ops import kernels

# (row [W, N], successor's row [W, N], reward [W, 1], discount [W, 1],
#  rate [W, 1]) -> the row after the step [W, N].
Update = Callable[..., tf.Tensor]

_STEPS_PER_CALL = 2048


@dataclasses.dataclass(frozen=True)
class Transitions:
  """What one learner sees, in order.

  Attributes:
    row: [T] the learner's table row to change.
    successor: [T] the row to bootstrap from.
    reward: [T].
    discount: [T]; 0 where the episode ends.
    rate: [T] learning rates.
  """

  row: np.ndarray
  successor: np.ndarray
  reward: np.ndarray
  discount: np.ndarray
  rate: np.ndarray


def mmd_gradient(
  particles: tf.Tensor, target: tf.Tensor, kernel: kernels.Kernel
) -> tf.Tensor:
  """Gradient of MMD_b^2 in the particles, in closed form.

  Args:
    particles: [W, N].
    target: [W, M] particles.
    kernel: the kernel k.

  Returns:
    [W, N] gradients: 2/N (mean_j k'(x_i, x_j) - mean_j k'(x_i, y_j)).
  """
  # The pair axis comes before the particles', so that the sum over it runs
  # over vectors: twice as fast on a CPU.
  x = particles[:, None, :]
  own = tf.reduce_mean(kernel.gradient(x, particles[:, :, None]), 1)
  cross = tf.reduce_mean(kernel.gradient(x, target[:, :, None]), 1)
  return (2 / particles.shape[-1]) * (own - cross)


def quantile_gradient(particles: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
  """Gradient of the quantile regression loss at the levels (2i - 1) / 2N.

  Args:
    particles: [W, N], the i-th at the i-th level.
    target: [W, M] particles.

  Returns:
    [W, N] gradients: the share of targets below each particle less its level.
  """
  count = particles.shape[-1]
  levels = (np.arange(count) + 0.5) / count
  below = target[:, None, :] < particles[:, :, None]
  share = tf.reduce_mean(tf.cast(below, particles.dtype), -1)
  return share - tf.constant(levels, particles.dtype)


def project(
  values: tf.Tensor, probabilities: tf.Tensor, support: tf.Tensor
) -> tf.Tensor:
  """C51's projection of a distribution onto an even grid.

  Args:
    values: [W, M]; outside the grid they count as its nearest end.
    probabilities: [W, M].
    support: [N] evenly spaced and increasing.

  Returns:
    [W, N] probabilities: each value's share goes to its two neighbours.
  """
  values = tf.clip_by_value(values, support[0], support[-1])
  gap = support[1] - support[0]
  distance = tf.abs(values[:, None, :] - support[:, None]) / gap
  share = tf.nn.relu(1 - distance)
  return tf.reduce_sum(share * probabilities[:, None, :], -1)


def mmd_update(kernel: kernels.Kernel) -> Update:
  """The MMDRL case of Algorithm 2."""

  def update(row, successor, reward, discount, rate):
    target = reward + discount * successor
    return row - rate * mmd_gradient(row, target, kernel)

  return update


def quantile_update(row, successor, reward, discount, rate) -> tf.Tensor:
  """The QRDRL case of Algorithm 2."""
  target = reward + discount * successor
  return row - rate * quantile_gradient(row, target)


def categorical_update(support: np.ndarray) -> Update:
  """CDRL: the row moves by `rate` towards the projected target.

  This is categorical temporal-difference learning; the paper's Algorithm 2 has
  no CDRL case.

  Args:
    support: [N] evenly spaced returns.
  """

  def update(row, successor, reward, discount, rate):
    atoms = tf.constant(support, row.dtype)
    target = project(reward + discount * atoms, successor, atoms)
    return row + rate * (target - row)

  return update


def evaluate(
  table: np.ndarray,
  learners: Sequence[Transitions],
  update: Update,
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
    dtype: of the arithmetic. float32 errs by 1e-7 a step where the sampling of
      the transitions errs by 1e-1, and takes half the time.
    on_progress: told the share that is done.

  Returns:
    [R, N] the table after all transitions.
  """
  threads = min(threads, len(learners))
  slots = min(slots, -(-len(learners) // threads))
  run = _compiled_loop(update, table.shape[-1])
  queues = _queues(learners, slots * threads)
  groups = [queues[i::threads] for i in range(threads)]
  calls = sum(_calls(group) for group in groups)
  finished: List[None] = []

  def run_group(group: List[List[Transitions]]) -> np.ndarray:
    # Row R + w belongs to slot w alone: an idle slot writes there.
    idle = np.zeros([len(group), table.shape[-1]])
    state = tf.constant(np.concatenate([table, idle]), dtype)
    for indices, numbers in _batches(group, idle_row=len(table)):
      state = run(state, tf.constant(indices), tf.constant(numbers, dtype))
      state.numpy()  # waits: a call that is merely queued is not done
      finished.append(None)
      on_progress(len(finished) / calls)
    return state.numpy()

  result = table.astype(dtype.as_numpy_dtype)
  with concurrent.futures.ThreadPoolExecutor(threads) as pool:
    for group, state in zip(groups, pool.map(run_group, groups)):
      rows = [each.row for queue in group for each in queue]
      changed = np.unique(np.concatenate(rows))
      result[changed] = state[changed]
  return result


def _compiled_loop(update: Update, width: int) -> Callable[..., tf.Tensor]:
  @tf.function(jit_compile=True)
  def run(table, indices, numbers):
    """One call: indices [C, W, 2] of rows, numbers [C, W, 3]."""

    def step(i, table):
      at, successor = tf.unstack(indices[i], axis=-1)
      reward, discount, rate = tf.split(numbers[i], 3, axis=-1)
      row = tf.gather(table, at)
      new = update(row, tf.gather(table, successor), reward, discount, rate)
      new = tf.ensure_shape(new, [None, width])
      return i + 1, tf.tensor_scatter_nd_update(table, at[:, None], new)

    return tf.while_loop(lambda i, _: i < _STEPS_PER_CALL, step, (0, table))[1]

  return run


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
  group: List[List[Transitions]], idle_row: int
) -> Iterator[Tuple[np.ndarray, np.ndarray]]:
  """Yields the arguments of each call: [C, W, 2] and [C, W, 3]."""
  steps = _calls(group) * _STEPS_PER_CALL
  indices = np.empty([steps, len(group), 2], np.int32)
  indices[:] = idle_row + np.arange(len(group))[:, None]
  numbers = np.zeros([steps, len(group), 3])
  for slot, queue in enumerate(group):
    if queue:
      parts = [np.concatenate(field) for field in zip(*map(_fields, queue))]
      indices[: parts[0].size, slot] = np.stack(parts[:2], -1)
      numbers[: parts[0].size, slot] = np.stack(parts[2:], -1)
  for start in range(0, steps, _STEPS_PER_CALL):
    span = slice(start, start + _STEPS_PER_CALL)
    yield indices[span], numbers[span]


def _fields(each: Transitions) -> Tuple[np.ndarray, ...]:
  return each.row, each.successor, each.reward, each.discount, each.rate
