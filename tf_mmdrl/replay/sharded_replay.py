"""Replay in shards: each is filled by itself, all are drawn from as one."""

from typing import Optional, Sequence, Tuple

import numpy as np
from tf_agents.trajectories import trajectory
from tf_agents.typing import types

from tf_mmdrl.replay import frame_replay_buffer, replay_checks
from tf_mmdrl.replay.frame_replay_buffer import BufferInfo, FrameReplayBuffer
from tf_mmdrl.replay.samplers import PrioritizedSampler
from tf_mmdrl.replay.shards import parts


class ShardedReplay:
  """Several buffers that are drawn from as if they were one.

  A start is drawn with the probability that it would have in one large buffer:
  all alike, or in proportion to its priority over that of all shards. With one
  shard draws are those of the shard, bit for bit. Shards may be filled at
  different rates, and in any order, but the draws depend on what is in each.

  Attributes:
    shards: the buffers, alike but for what is in them. The generator of the
      first draws.
    is_prioritized: whether draws depend on priorities.
  """

  def __init__(self, shards: Sequence[FrameReplayBuffer]):
    self.shards = list(shards)
    sampler = self.shards[0].replay.sampler
    self.is_prioritized = isinstance(sampler, PrioritizedSampler)

  @property
  def num_steps(self) -> int:
    """Steps kept, over all shards."""
    return sum(shard.replay.num_steps for shard in self.shards)

  @property
  def generator(self) -> np.random.Generator:
    """What drives the draws."""
    return self.shards[0].replay.generator

  def sample_planes(
    self,
    num_batches: int,
    batch_size: int,
    *,
    beta: Optional[float] = None,
    ends: bool = False,
  ) -> Tuple[trajectory.Trajectory, BufferInfo]:
    """See `FrameReplayBuffer.sample_planes`; ids are of all shards."""
    return frame_replay_buffer.sample_planes(
      self.shards, num_batches, batch_size, beta, ends
    )

  def update_priorities(
    self, ids: types.Array, priorities: types.Array
  ) -> None:
    """See `FrameReplayBuffer.update_priorities`."""
    ids, priorities = np.asarray(ids), np.asarray(priorities)
    replay_checks.check_priorities(ids, priorities)
    local, owned = np.divmod(ids, len(self.shards))
    for index, where in parts(owned, len(self.shards)):
      self.shards[index].update_priorities(local[where], priorities[where])
    # What is new anywhere has the largest priority of all shards.
    samplers = [shard.replay.sampler for shard in self.shards]
    known = [s for s in samplers if isinstance(s, PrioritizedSampler)]
    largest = max(sampler.largest for sampler in known)
    for sampler in known:
      sampler.largest = largest
