"""The TF-Agents replay buffer that stores each frame once."""

from typing import (
  Any,
  Callable,
  Iterable,
  List,
  NamedTuple,
  Optional,
  Sequence,
  Tuple,
)

import numpy as np
import tensorflow as tf
from tf_agents.replay_buffers import replay_buffer
from tf_agents.trajectories import trajectory
from tf_agents.typing import types

from tf_mmdrl.replay import arrays, drawing, graph, replay_checks
from tf_mmdrl.replay.frame_replay import FrameReplay
from tf_mmdrl.replay.frame_store import Field, FrameStore
from tf_mmdrl.replay.samplers import Sampler, UniformSampler
from tf_mmdrl.replay.stacks import stack_last, stack_last_now


class BufferInfo(NamedTuple):
  """What comes with a sample.

  Attributes:
    ids: [B] int64, for `update_priorities`.
    probabilities: [B] float32, of each draw.
    weights: [B] float32 importance weights; the largest of a batch is 1.
  """

  ids: types.Tensor
  probabilities: types.Tensor
  weights: types.Tensor


class FrameReplayBuffer(replay_buffer.ReplayBuffer):
  """Replay of a batch of environments in which each frame is kept once.

  It stands wherever `TFUniformReplayBuffer` stands, as a driver's observer and
  as an agent's dataset. The observation `[..., stack * C]` of the data spec is
  taken apart into `stack` frames, oldest first, and put together again bit for
  bit. With a stack of 1 observations are kept as they come, also nests.

  A sample never starts at a LAST step, and never runs over the end of an
  episode that was cut short, see `frame_replay.may_start`.

  The content lives in NumPy, outside of `tf.train.Checkpoint`; `ReplaySaver`
  keeps it on disk.
  """

  def __init__(
    self,
    data_spec: trajectory.Trajectory,
    batch_size: int,
    max_length: int,
    *,
    stack: int = 1,
    n_step: int = 1,
    sampler: Callable[[int, int], Sampler] = UniformSampler,
    beta: float = 0.4,
    seed: int = 0,
  ):
    """Creates an empty buffer; memory is taken as steps come in.

    Args:
      data_spec: the spec of a step, `agent.collect_data_spec`.
      batch_size: the number of environments.
      max_length: the steps kept of each environment.
      stack: the frames in an observation; 4 for Atari.
      n_step: n; samples have up to n + 1 steps.
      sampler: `UniformSampler` or `PrioritizedSampler`, or a
        `functools.partial` that sets the latter's alpha.
      beta: the exponent of the importance weights where a call gives none.
      seed: seeds the draws.
    """
    replay_checks.check_sizes(
      batch_size, max_length, stack=stack, n_step=n_step
    )
    stacked = replay_checks.check_spec(data_spec, stack=stack)
    super().__init__(data_spec, batch_size * max_length, stateful_dataset=True)
    self._specs = tf.nest.flatten(data_spec)
    self._beta = beta
    self._stacked = stacked
    fields = [
      Field(tuple(spec.shape.as_list()), np.dtype(spec.dtype.as_numpy_dtype))
      for spec in self._specs
    ]
    self._names = [spec.name or "a field" for spec in self._specs]
    self._example = [
      np.broadcast_to(np.zeros([], dtype), [batch_size, *shape])
      for shape, dtype in fields
    ]
    store = FrameStore(
      fields,
      batch_size=batch_size,
      max_length=max_length,
      stack=stack,
      stacked=stacked,
    )
    self.replay = FrameReplay(
      store,
      sampler,
      n_step=n_step,
      step_type=replay_checks.index_of(data_spec, "step_type"),
      discount=replay_checks.index_of(data_spec, "discount"),
      seed=seed,
    )

  @property
  def batch_size(self) -> int:
    """The number of environments."""
    return self.replay.store.batch_size

  @property
  def max_length(self) -> int:
    """The steps kept of each environment."""
    return self.replay.store.max_length

  @property
  def nbytes(self) -> int:
    """Bytes of the content when full."""
    return self.replay.store.nbytes

  @property
  def num_starts(self) -> int:
    """Steps at which a sample can start now."""
    return self.replay.sampler.num_open

  def add_steps(self, steps: Sequence[trajectory.Trajectory]) -> None:
    """Adds several steps at once, or none of them if one does not fit.

    Args:
      steps: steps of all environments, [B, ...] arrays, in the order of time.
    """
    for step in steps:
      tf.nest.assert_same_structure(step, self._data_spec)
    self._add([tf.nest.flatten(step) for step in steps])

  def sample(
    self, batch_size: int, *, beta: Optional[float] = None
  ) -> Tuple[trajectory.Trajectory, BufferInfo]:
    """Draws a batch, with replacement.

    Args:
      batch_size: B.
      beta: the exponent of the importance weights.

    Returns:
      A `[B, n + 1, ...]` trajectory, and info `[B]`.
    """
    planes, info = sample_planes([self], None, batch_size, beta)
    return self.from_planes(planes, stack_last_now), info

  def sample_batches(
    self, num_batches: int, batch_size: int, *, beta: Optional[float] = None
  ) -> Tuple[trajectory.Trajectory, BufferInfo]:
    """Draws the batches of several updates at once, from one state.

    Args:
      num_batches: K.
      batch_size: B.
      beta: the exponent of the importance weights.

    Returns:
      A `[K, B, n + 1, ...]` trajectory, and info `[K, B]`.
    """
    planes, info = self.sample_planes(num_batches, batch_size, beta=beta)
    return self.from_planes(planes, stack_last_now), info

  def sample_planes(
    self,
    num_batches: int,
    batch_size: int,
    *,
    beta: Optional[float] = None,
    ends: bool = False,
  ) -> Tuple[trajectory.Trajectory, BufferInfo]:
    """Draws as `sample_batches` does, but leaves stacks as planes.

    The fastest way into a compiled training step: it costs one copy of the
    frames, and `from_planes` inside the step is all but free.

    Args:
      num_batches: K.
      batch_size: B.
      beta: the exponent of the importance weights.
      ends: leaves out the stacks between the first and the last step. An
        n-step return needs no more of these samples: none runs over the end
        of an episode that was cut short. The agents here take such batches.

    Returns:
      A `[K, B, n + 1, ...]` trajectory whose observation is
      `[K, B, n + 1, stack, *frame, C]` with a stack above 1 (with `ends`,
      `[K, B, 2, stack, *frame, C]`), and info `[K, B]`.
    """
    return sample_planes([self], num_batches, batch_size, beta, ends)

  def from_planes(
    self,
    planes: trajectory.Trajectory,
    stack_fn: Callable[[tf.Tensor, int], tf.Tensor] = stack_last,
  ) -> trajectory.Trajectory:
    """Puts the observations of `sample_planes` together; may be compiled.

    Args:
      planes: what `sample_planes` gave, or a part of it along leading axes.
      stack_fn: how, given planes and an observation's rank.

    Returns:
      The trajectory as the environments showed it.
    """
    if self._stacked is None:
      return planes
    rank = self._specs[self._stacked].shape.rank
    return planes._replace(observation=stack_fn(planes.observation, rank))

  def update_priorities(
    self, ids: types.Array, priorities: types.Array
  ) -> None:
    """Sets the priorities of samples; those gone since are passed over.

    Args:
      ids: [...] from `BufferInfo`.
      priorities: [...] of the same shape, finite and not negative.
    """
    ids, priorities = np.asarray(ids), np.asarray(priorities)
    replay_checks.check_priorities(ids, priorities)
    self.replay.update_priorities(ids.reshape([-1]), priorities.reshape([-1]))

  def _num_frames(self) -> tf.Tensor:
    spec = tf.TensorSpec([], tf.int64)
    return graph.call(lambda: [np.array(self.replay.num_steps)], [spec])[0]

  def _add_batch(self, items: trajectory.Trajectory) -> Any:
    tf.nest.assert_same_structure(items, self._data_spec)
    return graph.run(lambda *step: self._add([step]), *tf.nest.flatten(items))

  def _add(self, steps: Sequence[Sequence[types.Array]]) -> None:
    arrived = [[np.asarray(value) for value in step] for step in steps]
    replay_checks.check_steps(arrived, self._example, self._names)
    self.replay.add(arrived)

  def _clear(self) -> Any:
    return graph.run(self.replay.clear)

  def _get_next(
    self,
    sample_batch_size: Optional[int] = None,
    num_steps: Optional[int] = None,
    time_stacked: bool = True,
  ) -> Tuple[Any, BufferInfo]:
    replay_checks.check_num_steps(num_steps, self.replay.n_step)
    size, length = sample_batch_size or 1, num_steps or 1

    def draw():
      drawn = drawing.draw(
        [self.replay], self.replay.generator, 1, size, length, self._beta
      )
      values, *info = drawn.batch(0)
      return [*values, *info]

    info_specs = [
      tf.TensorSpec([size], dtype)
      for dtype in (tf.int64, tf.float32, tf.float32)
    ]
    specs = [*self._plane_specs([size, length]), *info_specs]
    *values, ids, probabilities, weights = graph.call(draw, specs)
    items = self._from_flat_planes(values)
    info = BufferInfo(ids, probabilities, weights)
    if num_steps is None:
      items = tf.nest.map_structure(lambda t: t[:, 0], items)
    if sample_batch_size is None:
      items, info = tf.nest.map_structure(lambda t: t[0], (items, info))
    if num_steps is not None and not time_stacked:
      axis = 0 if sample_batch_size is None else 1
      items = tuple(
        tf.nest.map_structure(lambda t, k=k: tf.gather(t, k, axis=axis), items)
        for k in range(num_steps)
      )
    return items, info

  def _as_dataset(
    self,
    sample_batch_size: Optional[int] = None,
    num_steps: Optional[int] = None,
    sequence_preprocess_fn: Optional[Callable[..., Any]] = None,
    num_parallel_calls: Optional[int] = None,
  ) -> tf.data.Dataset:
    replay_checks.check_no_preprocessing(sequence_preprocess_fn)
    replay_checks.check_num_steps(num_steps, self.replay.n_step)
    # Parallel draws would come in any order; the seed wants one at a time.
    del num_parallel_calls
    return tf.data.Dataset.counter().map(
      lambda _: self._get_next(sample_batch_size, num_steps)
    )

  def _single_deterministic_pass_dataset(
    self,
    sample_batch_size: Optional[int] = None,
    num_steps: Optional[int] = None,
    sequence_preprocess_fn: Optional[Callable[..., Any]] = None,
    num_parallel_calls: Optional[int] = None,
  ) -> tf.data.Dataset:
    replay_checks.check_no_preprocessing(sequence_preprocess_fn)
    del num_parallel_calls

    length = num_steps or 1

    def starts(_):
      (ids,) = graph.call(
        lambda: [self.replay.sequences(length)],
        [tf.TensorSpec([None], tf.int64)],
      )
      return tf.data.Dataset.from_tensor_slices(ids)

    def read(ids):
      values = graph.call(
        lambda ids: self.replay.read(ids, length),
        self._plane_specs([*ids.shape, length]),
        ids,
      )
      items = self._from_flat_planes(values)
      if num_steps is None:
        items = tf.nest.map_structure(
          lambda t: tf.squeeze(t, axis=ids.shape.rank), items
        )
      return items, BufferInfo(ids, (), ())

    dataset = tf.data.Dataset.range(1).flat_map(starts)
    if sample_batch_size is not None:
      dataset = dataset.batch(sample_batch_size)
    return dataset.map(read)

  def _gather_all(self) -> trajectory.Trajectory:
    """All steps that every environment still has; [B, T, ...]."""

    def read():
      with self.replay.lock:
        store = self.replay.store
        first = int(store.oldest.max())
        ids = first * store.batch_size + np.arange(store.batch_size)
        return self.replay.read(ids, store.head - first)

    specs = self._plane_specs([self.batch_size, None])
    return self._from_flat_planes(graph.call(read, specs))

  def _plane_specs(self, outer: Sequence[Optional[int]]) -> List[tf.TensorSpec]:
    """The specs of the fields as they are read, planes not yet stacked."""
    specs = [tf.TensorSpec([*outer, *s.shape], s.dtype) for s in self._specs]
    if self._stacked is not None:
      store = self.replay.store
      specs[self._stacked] = tf.TensorSpec(
        [*outer, store.stack, *store.frame_shape], specs[self._stacked].dtype
      )
    return specs

  def _from_flat_planes(self, values: List[tf.Tensor]) -> trajectory.Trajectory:
    return self.from_planes(self._pack(values))

  def _pack(self, values: Iterable[tf.Tensor]) -> trajectory.Trajectory:
    """Packs as `tf.nest.pack_sequence_as`, which costs as much as a draw."""
    left = iter(values)

    def fill(field):
      if isinstance(field, tf.TypeSpec):
        return next(left)
      return tf.nest.map_structure(lambda _: next(left), field)

    return trajectory.Trajectory(*map(fill, self._data_spec))


def sample_planes(
  buffers: Sequence[FrameReplayBuffer],
  num_batches: Optional[int],
  batch_size: int,
  beta: Optional[float],
  ends: bool = False,
) -> Tuple[trajectory.Trajectory, BufferInfo]:
  """Draws from several buffers as if they were one, and leaves planes.

  Args:
    buffers: the first one's generator draws.
    num_batches: K; there is no such axis if it is None.
    batch_size: B.
    beta: the exponent of the importance weights.
    ends: leaves out the stacks between the first and the last step.

  Returns:
    The trajectory, and info.
  """
  count = 1 if num_batches is None else num_batches
  replay_checks.check_counts(count, batch_size)
  first = buffers[0]
  drawn = drawing.draw(
    [buffer.replay for buffer in buffers],
    first.replay.generator,
    count,
    batch_size,
    first.replay.n_step + 1,
    first._beta if beta is None else float(beta),
    ends=ends,
  )
  values, *info = drawn.batch(0) if num_batches is None else drawn
  *planes, ids, probabilities, weights = arrays.share([*values, *info])
  return first._pack(planes), BufferInfo(ids, probabilities, weights)
