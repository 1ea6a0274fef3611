"""What actors on Ray cost and bring, as ratios.

  python benchmarks/cluster.py [--rounds 30] [--only rate,store,slow]

- rate: a run with one actor on Ray beside the same with a thread, rounds of
  both in turn, by the clock and by the CPU time of all processes, which a busy
  machine changes less; the share of a round that the learner spends on
  transport: putting weights and unpacking chunks.
- store: the most that the object store held, beside the chunks in flight.
- slow: steps a second of four actors and of one, with environments that sleep
  20 ms at each step.
"""

import argparse
import os
import pathlib
import tempfile
import threading
import time

import processes
import timing  # noqa: F401  (sets the environment before TensorFlow)

from tf_mmdrl.cluster import connection
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import presets, run_directory, run_state, stopping, trainer
from tf_mmdrl.train.rounds import Rounds

_PARTS = ("rate", "store", "slow")
_WARM = 4  # rounds of each before anything is measured


def _config(*changes):
  return configs.change(
    presets.get("atari"),
    [
      "environment.name=Pong",
      "environment.num_envs=8",
      "schedule.collect_steps=32",
      "schedule.learning_starts=512",
      "replay.capacity=20000",
      "schedule.epsilon_start=0.05",
      *changes,
    ],
  )


def _state(config, folder, name, remote):
  directory = run_directory.RunDirectory(pathlib.Path(folder, name))
  crew = None
  if remote:
    from tf_mmdrl.cluster import crew as crews

    crew = crews.hire()(config, stopping.Stop())
  return run_state.RunState(config, directory, crew)


def _median(times):
  return sorted(times)[len(times) // 2]


class _Transport:
  """Adds up what the learner's own threads spend on transport."""

  def __init__(self):
    from tf_mmdrl.cluster import office, packing

    self.seconds = 0.0
    self.chunk = 0
    put, unpack = office.Office.put, packing.unpack

    def timed_put(this, weights):
      start = time.perf_counter()
      result = put(this, weights)
      self.seconds += time.perf_counter() - start
      return result

    def timed_unpack(packed):
      start = time.perf_counter()
      self.chunk = max(self.chunk, packed.nbytes)
      result = unpack(packed)
      self.seconds += time.perf_counter() - start
      return result

    office.Office.put = timed_put
    packing.unpack = timed_unpack


class _Store:
  """Watches how much the object store holds, in a thread."""

  def __init__(self):
    self.most = 0
    self._over = threading.Event()
    threading.Thread(target=self._watch, daemon=True).start()

  def _watch(self):
    import ray
    from ray._private import internal_api

    (node,) = ray.nodes()
    place = (node["NodeManagerAddress"], node["NodeManagerPort"], False)
    while not self._over.wait(0.05):
      used = internal_api.node_stats(*place).store_stats
      self.most = max(self.most, used.object_store_bytes_used)

  def close(self):
    """Ends the thread."""
    self._over.set()


def rate(rounds, folder):
  """A thread and a Ray actor, a round of each in turn."""
  config = _config()
  with connection.local(1):
    transport = _Transport()
    states = [_state(config, folder, f"rate{r}", r) for r in (False, True)]
    running = [Rounds(state) for state in states]
    times, used = [[], []], [0.0, 0.0]
    for index in range(rounds + _WARM):
      if index == _WARM:  # compiled, and replay has what is learnt from
        transport.seconds = 0.0
      for kind in (0, 1):
        start, before = time.perf_counter(), processes.cpu_time(os.getpid())
        running[kind].play_and_learn()
        if index >= _WARM:
          times[kind].append(time.perf_counter() - start)
          used[kind] += processes.cpu_time(os.getpid()) - before
    thread, process = map(_median, times)
    share = transport.seconds / sum(times[1])
    print(
      f"rate: {config.round_steps / thread:.0f} steps/s with a thread,"
      f" {config.round_steps / process:.0f} with --actors 1:"
      f" {thread / process:.2f} of it (wanted: at least 0.9)"
    )
    print(
      f"CPU time of a round: {used[0] / rounds:.2f} s with a thread,"
      f" {used[1] / rounds:.2f} s with --actors 1: {used[0] / used[1]:.2f}"
    )
    print(
      f"transport: {share:.1%} of the learner's time (wanted: at most 5 %),"
      f" chunks of {transport.chunk / 1e6:.2f} MB"
    )
    for part in (*running, *states):
      part.close()


def store(rounds, folder):
  """The peak of the object store with two actors."""
  config = _config("system.actors=2")
  with connection.local(2):
    transport, watched = _Transport(), _Store()
    state = _state(config, folder, "store", True)
    running = Rounds(state)
    for _ in range(rounds):
      running.play_and_learn()
    watched.close()
    values = state.learner.weights().values
    weights = sum(v.shape.num_elements() * v.dtype.size for v in values)
    flight = 2 * 2 * transport.chunk + 2 * weights
    print(
      f"object store: at most {watched.most / 1e6:.1f} MB, with two chunks an"
      f" actor and two rounds' weights in flight {flight / 1e6:.1f} MB:"
      f" {watched.most / flight:.2f} (wanted: at most 1.5)"
    )
    running.close()
    state.close()


def slow(rounds, folder):
  """Four actors against one, where environments take the time."""
  rates = []
  for actors in (1, 4):
    config = _config(
      "environment.name=slow_environments:SlowCartPole-v0",
      "network.torso=mlp",
      "network.num_particles=8",
      f"environment.num_envs={actors}",
      f"system.actors={actors}",
      "schedule.collect_steps=16",
      "schedule.learning_starts=1000000",
    )
    with connection.local(actors):
      state = _state(config, folder, f"slow{actors}", True)
      running = Rounds(state)
      for _ in range(2):
        running.play_and_learn()
      start, before = time.perf_counter(), state.step
      for _ in range(max(4, rounds // 3)):
        running.play_and_learn()
      rates.append((state.step - before) / (time.perf_counter() - start))
      running.close()
      state.close()
  print(
    f"environments of 20 ms a step: {rates[0]:.0f} steps/s with one actor,"
    f" {rates[1]:.0f} with four: {rates[1] / rates[0]:.2f} (wanted: 3.2)"
  )


def main():
  """Prints the ratios."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--rounds", type=int, default=30)
  parser.add_argument("--only", default=",".join(_PARTS))
  args = parser.parse_args()
  trainer.configure_process(_config())
  print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
  with tempfile.TemporaryDirectory() as folder:
    for part in args.only.split(","):
      {"rate": rate, "store": store, "slow": slow}[part](args.rounds, folder)


if __name__ == "__main__":
  main()
