"""What joint returns cost: an update, its loss, and the loss's memory.

  python benchmarks/joint_cost.py update
  python benchmarks/joint_cost.py loss
  python benchmarks/joint_cost.py memory

Times are CPU milliseconds of the process, of calls that take turns, because
wall times of a busy machine say little.
"""

import argparse
import functools
import resource
import time
from typing import Any, Callable, Dict, List, Tuple

import numpy as np
import tensorflow as tf
import update
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import agents
from tf_mmdrl.core.return_distribution import (
  JointReturnDistribution,
  ReturnDistribution,
)
from tf_mmdrl.losses import MMDLoss
from tf_mmdrl.networks import ReturnNetwork, heads
from tf_mmdrl.ops import kernels


def of_updates(rounds: int) -> List[Tuple[str, float, float]]:
  """(name, CPU ms, wall ms) of an update, Nature network, batch 32, N = 200."""
  task = update.TASKS["nature"]
  calls: Dict[str, Callable[[], Any]] = {}
  for name, dimensions in (("mmdqn", None), ("joint D=2", 2), ("joint D=3", 3)):
    agent, batch = _nature_agent(task, dimensions)
    calls[name] = functools.partial(_train, agent, batch)
  return in_turns({**calls, **loss_calls(update.PARTICLES)}, rounds)


def _train(agent, batch) -> None:
  agent.train(batch).loss.numpy()


def in_turns(
  calls: Dict[str, Callable[[], Any]], rounds: int
) -> List[Tuple[str, float, float]]:
  """(name, median CPU ms, least wall ms) of calls that meet the same load."""
  for call in calls.values():
    call()  # compiles
  cpu: Dict[str, List[float]] = {name: [] for name in calls}
  wall: Dict[str, List[float]] = {name: [] for name in calls}
  for _ in range(rounds):
    for name, call in calls.items():
      cpu_0, wall_0 = time.process_time(), time.perf_counter()
      call()
      cpu[name].append(1e3 * (time.process_time() - cpu_0))
      wall[name].append(1e3 * (time.perf_counter() - wall_0))
  return [
    (name, float(np.median(cpu[name])), float(np.min(wall[name])))
    for name in calls
  ]


def _nature_agent(task, dimensions, particles: int = update.PARTICLES):
  shape = [] if dimensions is None else [dimensions]
  spec = ts.time_step_spec(task.observation, tf.TensorSpec(shape, tf.float32))
  net = ReturnNetwork(
    task.observation,
    update.ACTION,
    heads.particles(particles, dimensions),
    conv_layer_params=task.conv_layer_params,
    fc_layer_params=task.fc_layer_params,
  )
  cls = agents.MMDQNAgent if dimensions is None else agents.JointMMDQNAgent
  agent = cls(spec, update.ACTION, net, update.adam(), **update.COMMON)
  agent.initialize()
  batch = update.experience(task)
  if dimensions is not None:
    reward = tf.repeat(batch.reward[..., tf.newaxis], dimensions, axis=-1)
    batch = batch._replace(reward=reward)
  return agent, batch


def loss_calls(particles: int) -> Dict[str, Callable[[], tf.Tensor]]:
  """Calls of the loss with its gradient, B = 32: of vectors and on the line."""
  rng = np.random.default_rng(0)
  x, y = (
    tf.constant(rng.normal(size=[32, particles, 3]), tf.float32)
    for _ in range(2)
  )
  loss = MMDLoss(kernels.smooth_energy(1.0), by_xla=True, mean_distance=True)

  def call(kind, x, y):
    @tf.function(autograph=False, jit_compile=True)
    def compute(x, y):
      with tf.GradientTape() as tape:
        tape.watch(x)
        value = loss(kind(x), kind(y), tf.zeros([]))
      return value, tape.gradient(value, x)

    return lambda: compute(x, y)[1].numpy()

  return {
    "loss, D = 3": call(JointReturnDistribution, x, y),
    "loss on the line": call(ReturnDistribution, x[..., 0], y[..., 0]),
  }


def memory(particles: int) -> Tuple[float, float]:
  """MB of this process before and after the loss and its gradient at D = 3."""
  loss_calls(8)["loss, D = 3"]()  # what XLA itself takes
  call = loss_calls(particles)["loss, D = 3"]
  before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
  call()
  after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
  return before, after


def main() -> None:
  """Prints a line for each call."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("what", choices=("update", "loss", "memory"))
  parser.add_argument("--rounds", type=int, default=20)
  args = parser.parse_args()
  if args.what == "memory":
    for particles in (200, 1000):
      before, after = memory(particles)
      print(
        f"N = {particles}: {after - before:.0f} MB more, {after:.0f} in all"
      )
    return
  if args.what == "update":
    rows = of_updates(args.rounds)
  else:
    rows = in_turns(loss_calls(update.PARTICLES), args.rounds)
  for row in rows:
    print("{:16} CPU {:6.1f} ms, least wall {:6.1f} ms".format(*row))


if __name__ == "__main__":
  main()
