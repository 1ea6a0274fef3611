"""Replay that stores each frame once, for any TF-Agents agent."""

from tf_mmdrl.core.whole_files import DamagedFileError
from tf_mmdrl.replay.fingerprint import fingerprint
from tf_mmdrl.replay.frame_replay_buffer import BufferInfo, FrameReplayBuffer
from tf_mmdrl.replay.persistence import ReplaySaver
from tf_mmdrl.replay.regrouping import regroup
from tf_mmdrl.replay.samplers import PrioritizedSampler, UniformSampler
from tf_mmdrl.replay.sharded_replay import ShardedReplay
from tf_mmdrl.replay.stacks import stack_last

__all__ = [
  "BufferInfo",
  "DamagedFileError",
  "FrameReplayBuffer",
  "PrioritizedSampler",
  "ReplaySaver",
  "ShardedReplay",
  "UniformSampler",
  "fingerprint",
  "regroup",
  "stack_last",
]
