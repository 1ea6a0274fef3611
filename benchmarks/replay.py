"""Time and memory of replay, beside TF-Agents' own buffer, in one run.

  python benchmarks/replay.py [--steps 1500] [--game breakout]

Both buffers hold the same real Atari steps and take turns with each other and
with an update of TF-Agents' DqnAgent, so that a busy machine disturbs all of
them alike. Read the ratios, not the microseconds.
"""

import argparse
import itertools
import os
import tempfile
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tf_mmdrl  # noqa: F401  (before TensorFlow: Keras 2)

# isort: split

import numpy as np
import tensorflow as tf
from ale_py.vector_env import AtariVectorEnv
from tf_agents.agents.dqn import dqn_agent
from tf_agents.networks import sequential
from tf_agents.replay_buffers import tf_uniform_replay_buffer
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step as ts
from tf_agents.trajectories import trajectory

from tf_mmdrl.replay import (
  FrameReplayBuffer,
  PrioritizedSampler,
  ReplaySaver,
  UniformSampler,
)

_NUM_ENVS = 8
_BATCH_SIZE = 32


def _spec():
  scalar = {
    name: tf.TensorSpec([], dtype, name)
    for name, dtype in (
      ("step_type", tf.int32),
      ("action", tf.int64),
      ("next_step_type", tf.int32),
      ("reward", tf.float32),
      ("discount", tf.float32),
    )
  }
  observation = tf.TensorSpec([84, 84, 4], tf.uint8, "observation")
  return trajectory.Trajectory(
    observation=observation, policy_info=(), **scalar
  )


def _play(game, steps):
  """[B, ...] trajectories of random play."""
  env = AtariVectorEnv(game, num_envs=_NUM_ENVS)
  rng = np.random.default_rng(0)
  seen, _ = env.reset(seed=0)
  before = np.zeros([_NUM_ENVS], np.int32)
  played = []
  for _ in range(steps):
    action = rng.integers(env.single_action_space.n, size=_NUM_ENVS)
    after, reward, terminated, truncated, _ = env.step(action)
    step_type = np.where(terminated | truncated, 2, 1).astype(np.int32)
    step_type[before == 2] = 0
    played.append(
      trajectory.Trajectory(
        step_type=before,
        observation=np.ascontiguousarray(np.moveaxis(seen, 1, -1)),
        action=action,
        policy_info=(),
        next_step_type=step_type,
        reward=reward.astype(np.float32),
        discount=1 - terminated.astype(np.float32),
      )
    )
    seen, before = after.copy(), step_type
  return played


def _microseconds(calls, rounds=60):
  """The median time of each call; the calls take turns."""
  times = {name: [] for name in calls}
  for call in calls.values():
    call()
  for _ in range(rounds):
    for name, call in calls.items():
      start = time.perf_counter()
      call()
      times[name].append(time.perf_counter() - start)
  return {name: 1e6 * float(np.median(t)) for name, t in times.items()}


def _report(title, times, base, whole=None):
  print(f"\n{title}")
  for name, value in times.items():
    line = f"  {name:36s} {value:6.0f} us"
    if name != whole:
      line += f", {times[base] / value:5.2f} times as fast"
      line += f", {value / times[whole]:6.2%} of an update" if whole else ""
    print(line)


def _update(n_step):
  """One update of the smallest agent there is: DQN, Nature network, XLA."""
  spec = _spec()
  conv, dense = tf.keras.layers.Conv2D, tf.keras.layers.Dense
  agent = dqn_agent.DqnAgent(
    ts.time_step_spec(spec.observation),
    tensor_spec.BoundedTensorSpec([], tf.int64, 0, 3, "action"),
    q_network=sequential.Sequential(
      [
        tf.keras.layers.Lambda(lambda x: tf.cast(x, tf.float32) / 255),
        conv(32, 8, 4, activation="relu"),
        conv(64, 4, 2, activation="relu"),
        conv(64, 3, 1, activation="relu"),
        tf.keras.layers.Flatten(),
        dense(512, activation="relu"),
        dense(4),
      ]
    ),
    optimizer=tf.keras.optimizers.Adam(1e-4),
    n_step_update=n_step,
  )
  train = tf.function(agent.train, jit_compile=True)
  shape = [_BATCH_SIZE, n_step + 1]
  experience = tf.nest.map_structure(
    lambda s: tf.ones([*shape, *s.shape], s.dtype), spec
  )
  return lambda: train(experience)


def _fill(buffer, played):
  for step in played:
    buffer.add_batch(step)
  return buffer


def _time_adding(ours, theirs, played):
  @tf.function
  def add_theirs(step):
    theirs.add_batch(step)

  def add_in_order(add, steps):
    steps = itertools.cycle(steps)  # each buffer sees the games as they went
    return lambda: add(next(steps))

  tensors = [tf.nest.map_structure(tf.constant, s) for s in played[:200]]
  calls = {"TFUniformReplayBuffer": add_in_order(add_theirs, tensors)}
  for name, buffer in ours.items():
    calls[name] = add_in_order(buffer.add_batch, played[:200])
  times = _microseconds(calls)
  _report("add_batch, 8 environments", times, "TFUniformReplayBuffer")


def _time_sampling(ours, theirs, n_step):
  batches = iter(theirs.as_dataset(_BATCH_SIZE, n_step + 1))
  get_next = tf.function(lambda: theirs.get_next(_BATCH_SIZE, n_step + 1))
  calls = {
    "TFUniformReplayBuffer": get_next,
    "TFUniformReplayBuffer dataset": lambda: next(batches),
  }
  for name, buffer in ours.items():
    calls[f"{name}: sample"] = lambda b=buffer: b.sample(_BATCH_SIZE)
    calls[f"{name}: sample_planes"] = lambda b=buffer: b.sample_planes(
      1, _BATCH_SIZE
    )
    calls[f"{name}: sample_planes of 2, each"] = lambda b=buffer: (
      b.sample_planes(2, _BATCH_SIZE)
    )
  times = _microseconds({"an update of DqnAgent": _update(n_step), **calls})
  for name in times:
    if name.endswith("each"):
      times[name] /= 2
  title = f"a batch of {_BATCH_SIZE}, n = {n_step}"
  _report(title, times, "TFUniformReplayBuffer", "an update of DqnAgent")


def _time_saving(make, buffer):
  store = buffer.replay.store
  megabytes = int(store.frame_heads.sum()) * store.frames[0, 0].nbytes / 1e6
  with tempfile.TemporaryDirectory() as directory:
    start = time.perf_counter()
    name = ReplaySaver(buffer, directory).save()
    saved = time.perf_counter()
    ReplaySaver(make(), directory).restore(name)
    restored = time.perf_counter()
    size = sum(e.stat().st_size for e in os.scandir(directory)) / 1e6
  print(f"\non disk, {int(buffer.num_frames())} steps, {megabytes:.0f} MB")
  print(f"  save     {megabytes / (saved - start):6.0f} MB/s")
  print(f"  restore  {megabytes / (restored - saved):6.0f} MB/s")
  print(f"  size     {size:6.1f} MB, {megabytes / size:.0f} times smaller")


def _bytes_per_step(max_length):
  ours = FrameReplayBuffer(_spec(), _NUM_ENVS, max_length, stack=4)
  theirs = sum(
    int(np.prod(s.shape, dtype=np.int64)) * s.dtype.size
    for s in tf.nest.flatten(_spec())
  )
  theirs += 8  # the table of ids
  capacity = _NUM_ENVS * max_length
  print(f"memory for {capacity} steps")
  for name, each in (
    ("TFUniformReplayBuffer", theirs),
    ("FrameReplayBuffer", ours.nbytes / capacity),
  ):
    print(
      f"  {name:22s} {each:8.0f} bytes a step, {each * capacity / 1e9:.2f} GB"
    )


def main():
  """Prints all of it."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("--steps", type=int, default=1500)
  parser.add_argument("--game", default="breakout")
  arguments = parser.parse_args()
  _bytes_per_step(125_000)
  played = _play(arguments.game, arguments.steps)
  theirs = _fill(
    tf_uniform_replay_buffer.TFUniformReplayBuffer(
      _spec(), _NUM_ENVS, arguments.steps
    ),
    played,
  )
  for n_step in (1, 3):

    def make(sampler, n_step=n_step):
      return FrameReplayBuffer(
        _spec(),
        _NUM_ENVS,
        arguments.steps,
        stack=4,
        n_step=n_step,
        sampler=sampler,
      )

    ours = {
      "uniform": _fill(make(UniformSampler), played),
      "prioritised": _fill(make(PrioritizedSampler), played),
    }
    _time_sampling(ours, theirs, n_step)
  _time_saving(lambda: make(PrioritizedSampler), ours["prioritised"])
  _time_adding(ours, theirs, played)


if __name__ == "__main__":
  main()
