"""What one update asks of a GPU, agent by agent; needs none.

  python benchmarks/gpu.py [--network minatar] [--particles 200] [--agents dqn]

Each agent's whole update (unit, loss, gradients, optimizer, target network) is
lowered for a GPU by XLA. The table counts operations, before XLA fuses them,
and those in float64, which a consumer's GPU computes at 1/64 of its speed, with
the elements they go through. `hlo.py` says what counts.
"""

import argparse
from typing import Sequence

import hlo
import lowering
import tensorflow as tf
import update
from tf_agents.trajectories import time_step

from tf_mmdrl.agents import base
from tf_mmdrl.core import algorithms
from tf_mmdrl.networks import ReturnNetwork
from tf_mmdrl.train import config as configs


def make(
  name: str,
  task: update.Task,
  *,
  num_particles: int = update.PARTICLES,
) -> base.ReturnDistributionAgent:
  """The agent of an algorithm, with the algorithm's own settings."""
  algorithm = algorithms.get(name)
  settings = algorithm.settings()
  shared = configs.change(
    configs.Config(), [f"agent.name={name}", *algorithm.assignments()]
  )
  if "network.num_particles" in algorithm.shared:  # DQN has one
    num_particles = shared.network.num_particles
  run = algorithms.Run(num_particles, num_updates=1000)
  net = ReturnNetwork(
    task.observation,
    update.ACTION,
    settings.head(run),
    conv_layer_params=task.conv_layer_params,
    fc_layer_params=task.fc_layer_params,
    dueling=shared.network.dueling,
    noisy_layers=shared.network.noisy,
  )
  agent = algorithm.agent(
    time_step.time_step_spec(task.observation),
    update.ACTION,
    net,
    update.adam(),
    **settings.options(run),
    **update.COMMON,
    double=shared.agent.double,
    gradient_clipping=10.0,
  )
  agent.initialize()
  return agent


def lowered(name: str, task: update.Task, **options: int) -> hlo.Module:
  """One update of that algorithm's agent, for a GPU."""
  agent = make(name, task, **options)
  batch = update.experience(task)
  text = lowering.update_for_gpu(agent, batch, tf.ones([update.BATCH]))
  return hlo.Module(text)


def row(name: str, module: hlo.Module) -> Sequence[object]:
  """What the table says of an update."""
  single = module.work("f32").operations
  return (name, single, *module.work("f64"), len(module.on_host()))


def main():
  """Prints the table."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--network", choices=update.TASKS, default="nature")
  parser.add_argument("--particles", type=int, default=update.PARTICLES)
  # joint_mmdqn wants vector rewards; see benchmarks/joint.py.
  names = [name for name in algorithms.names() if name != "joint_mmdqn"]
  parser.add_argument("--agents", nargs="+", default=names)
  args = parser.parse_args()
  print(
    f"tensorflow {tf.__version__}; one update for a GPU, {args.network}, batch"
    f" {update.BATCH}, {args.particles} particles"
  )
  print(f"{'':20} {'float32':>8} {'float64':>8} {'elements':>10} {'host':>5}")
  for name in args.agents:
    module = lowered(
      name, update.TASKS[args.network], num_particles=args.particles
    )
    print("{:20} {:8} {:8} {:10} {:5}".format(*row(name, module)))
  print(
    "float32, float64: operations; elements: that those in float64 go through;"
    "\nhost: callbacks and custom calls"
  )


if __name__ == "__main__":
  main()
