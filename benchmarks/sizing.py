"""What 1,000 actors would cost a learner: the table of docs/cluster.md.

  python benchmarks/sizing.py

Bytes are counted: the parameters of the Nature network as this package makes
it, a frame, a chunk as it travels. How fast a learner unpacks chunks and puts
them into replay is measured, in CPU time, which other work on the machine
changes little.
"""

import time
from typing import Iterator, NamedTuple

import timing  # noqa: F401  (first: Keras 2)

# isort: split

import numpy as np
import tensorflow as tf
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import trajectory

from tf_mmdrl.cluster import packing
from tf_mmdrl.replay import FrameReplayBuffer
from tf_mmdrl.train import config, factories
from tf_mmdrl.train.actor import Chunk

ACTORS, RATE = 1000, 100  # of them, and the steps that each plays a second
MACHINES = 50
CHUNK = 512  # steps, over the environments of a slot
_ENVS = 4  # of a slot
_PARTICLES, _ACTIONS = 200, 6
_STACK, _SIDE = 4, 84
_EPISODE = 200  # steps of a game


class Insertion(NamedTuple):
  """How chunks go into replay.

  Attributes:
    bytes: of a chunk as it travels, for each of its steps.
    rate: steps a second of CPU time.
  """

  bytes: float
  rate: float


def parameters(particles: int, actions: int) -> int:
  """Numbers that the Nature network learns."""
  observation = tf.TensorSpec([_SIDE, _SIDE, _STACK], tf.uint8)
  action = tensor_spec.BoundedTensorSpec([], tf.int64, 0, actions - 1)
  settings = config.Config().replace(
    network={"num_particles": particles, "torso": "nature"}
  )
  network = factories.network(settings.completed(), observation, action)
  network.create_variables()
  return sum(int(np.prod(v.shape)) for v in network.trainable_variables)


def insertion(chunks: int, repeats: int) -> Insertion:
  """Unpacks chunks, and puts them into replay, as a learner does.

  Args:
    chunks: different ones, of `CHUNK` steps.
    repeats: how often each is put in.
  """
  spec = _spec()
  length = CHUNK // _ENVS
  buffer = FrameReplayBuffer(spec, _ENVS, chunks * length, stack=_STACK)
  played = list(_play(chunks * length))
  packed = [
    packing.pack(Chunk(played[at : at + length], CHUNK, [], 0), _STACK)
    for at in range(0, len(played), length)
  ]
  for chunk in packed:  # touches the memory of the rings
    buffer.add_steps(packing.unpack(chunk).trajectories)
  start = time.process_time()
  for _ in range(repeats):
    for chunk in packed:
      buffer.add_steps(packing.unpack(chunk).trajectories)
  seconds = time.process_time() - start
  return Insertion(
    sum(chunk.nbytes for chunk in packed) / (chunks * CHUNK),
    repeats * chunks * CHUNK / seconds,
  )


def _spec() -> trajectory.Trajectory:
  scalars = {
    name: tf.TensorSpec([], dtype, name)
    for name, dtype in (
      ("step_type", tf.int32),
      ("action", tf.int64),
      ("next_step_type", tf.int32),
      ("reward", tf.float32),
      ("discount", tf.float32),
    )
  }
  shown = tf.TensorSpec([_SIDE, _SIDE, _STACK], tf.uint8, "observation")
  return trajectory.Trajectory(observation=shown, policy_info=(), **scalars)


def _play(length: int) -> Iterator[trajectory.Trajectory]:
  """[B, ...] steps of games whose frames are noise; stacks are filled anew."""
  random = np.random.default_rng(0)
  stack = np.zeros([_ENVS, _SIDE, _SIDE, _STACK], np.uint8)
  for at in range(length):
    frame = random.integers(0, 256, [_ENVS, _SIDE, _SIDE, 1], np.uint8)
    is_first = at % _EPISODE == 0
    older = [frame] * (_STACK - 1) if is_first else [stack[..., 1:]]
    stack = np.concatenate([*older, frame], axis=-1)
    yield trajectory.Trajectory(
      step_type=np.full([_ENVS], _kind(at), np.int32),
      observation=stack,
      action=np.zeros([_ENVS], np.int64),
      policy_info=(),
      next_step_type=np.full([_ENVS], _kind(at + 1), np.int32),
      reward=np.zeros([_ENVS], np.float32),
      discount=np.ones([_ENVS], np.float32),
    )


def _kind(at: int) -> int:
  """FIRST, MID or LAST of TF-Agents."""
  return 0 if at % _EPISODE == 0 else 2 if at % _EPISODE == _EPISODE - 1 else 1


def lines(weights: int, found: Insertion) -> Iterator[str]:
  """The figures.

  Args:
    weights: parameters of the network.
    found: what `insertion` gave.
  """
  steps, size = ACTORS * RATE, 4 * weights
  yield (
    f"network card: {found.bytes:,.0f} bytes a step,"
    f" {found.bytes * steps / 1e9:.2f} GB/s at {steps:,} steps/s"
  )
  yield (
    f"weights: {weights:,} parameters, {size / 1e6:.1f} MB; to {MACHINES}"
    f" machines, 5 rounds a second: {5 * MACHINES * size / 1e9:.1f} GB/s; 1"
    f" round in 2 s: {MACHINES * size / 2e9:.2f} GB/s"
  )
  yield (
    f"replay insertion, {_ENVS} environments a slot: {found.rate:,.0f} steps a"
    " second of one core;"
    f" {steps / found.rate:.1f} cores at {steps:,} steps/s"
  )
  yield (
    f"object store: {ACTORS:,} slots x 2 x {CHUNK * found.bytes / 1e6:.1f} MB"
    f" = {2 * ACTORS * CHUNK * found.bytes / 1e9:.1f} GB"
  )


def main():
  """Prints them."""
  found = insertion(chunks=8, repeats=4)
  for line in lines(parameters(_PARTICLES, _ACTIONS), found):
    print(line)


if __name__ == "__main__":
  main()
