"""Time of one update on a batch of Atari transitions, agent against agent.

  python benchmarks/update.py [--seconds 60] [--network minatar] [--unit]
    [--json docs/results/speed_update.json]

Batch 32, 6 actions, 200 particles (51 atoms for C51), the Nature network or
MinAtar's. All are updated in turn in one process, called as a TF-Agents user
does, so that the ratios mean something on a busy machine. TF-Agents' agents are
compiled as a graph and with XLA. Ours are as they come, which is what
`agents/compiling.py` takes to be fastest here (the second line says what that
is); rows of MMDQN compiled otherwise show whether it is. The first call, which
traces and compiles, is timed too.

With `--unit`, what it costs that the agent finds the unit of return and looks
whether its loss sees: MMDQN as it is and without that, in turn, by the CPU time
of all threads. It does so at some updates only: times are means over a period.
"""

import argparse
import pathlib
import time
from typing import NamedTuple, Optional, Sequence

import numpy as np
import published
import tensorflow as tf
import timing
from tf_agents.agents.categorical_dqn import categorical_dqn_agent
from tf_agents.agents.dqn import dqn_agent
from tf_agents.networks import categorical_q_network, q_network
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import time_step, trajectory
from tf_agents.utils import common

from tf_mmdrl import agents, losses
from tf_mmdrl.agents import base, compiling, sight
from tf_mmdrl.networks import ReturnNetwork, heads, implicit_heads, torsos
from tf_mmdrl.ops import convolution

BATCH, ACTIONS, PARTICLES = 32, 6, 200
ACTION = tensor_spec.BoundedTensorSpec([], tf.int32, 0, ACTIONS - 1)


class Task(NamedTuple):
  """What is learnt from, and the torso that learns."""

  observation: tf.TensorSpec
  conv_layer_params: Optional[torsos.ConvParams]
  fc_layer_params: Sequence[int]


TASKS = {
  "nature": Task(
    tf.TensorSpec([84, 84, 4], tf.uint8), torsos.NATURE_CONV, torsos.NATURE_FC
  ),
  "minatar": Task(
    tf.TensorSpec([10, 10, 4], tf.uint8), torsos.MINATAR_CONV, torsos.MINATAR_FC
  ),
  "cartpole": Task(tf.TensorSpec([4], tf.uint8), None, (128, 128)),
}


class PublishedLoss(losses.Loss):
  """The MMD as the formula is usually typed in."""

  def __call__(self, predicted, target, step):
    """[B] losses."""
    return published.mmd_squared(predicted.values, target.values)


def as_float(observation):
  """What TF-Agents' networks need in front for uint8 images."""
  return tf.cast(observation, tf.float32) / 255


def theirs(task, agent, network, **options):
  """One of TF-Agents' agents."""
  net = network(
    task.observation,
    ACTION,
    preprocessing_layers=tf.keras.layers.Lambda(as_float),
    conv_layer_params=task.conv_layer_params,
    fc_layer_params=task.fc_layer_params,
    **options,
  )
  made = agent(
    time_step.time_step_spec(task.observation), ACTION, net, adam(), **COMMON
  )
  made.initialize()
  return made


def ours(task, agent, head, **options):
  """One of this library's agents."""
  net = ReturnNetwork(
    task.observation,
    ACTION,
    head,
    conv_layer_params=task.conv_layer_params,
    fc_layer_params=task.fc_layer_params,
  )
  specification = time_step.time_step_spec(task.observation)
  made = agent(specification, ACTION, net, adam(), **COMMON, **options)
  made.initialize()
  return made


COMMON = dict(gamma=0.99, target_update_period=10_000)


def adam():
  """The paper's optimizer."""
  return tf.keras.optimizers.Adam(5e-5, epsilon=0.01 / 32)


def updates(task, batch):
  """Name -> a call that updates an agent of that name once."""
  dqn = (dqn_agent.DqnAgent, q_network.QNetwork)
  c51 = (
    categorical_dqn_agent.CategoricalDqnAgent,
    categorical_q_network.CategoricalQNetwork,
  )
  calls = {}
  for mode, jit_compile in (("graph", False), ("XLA", True)):
    for name, made in (
      ("DqnAgent", theirs(task, *dqn)),
      ("CategoricalDqnAgent", theirs(task, *c51, num_atoms=51)),
    ):
      # XLA cannot make variables, so they are made before.
      made._optimizer.build(made._q_network.trainable_weights)
      calls[f"{name}, {mode}"] = call(made, batch, jit_compile=jit_compile)
  particles = heads.particles(PARTICLES)
  own = {
    "DQNAgent": ours(task, agents.DQNAgent, heads.particles(1)),
    "C51Agent": ours(task, agents.C51Agent, heads.categorical(51)),
    "QRDQNAgent": ours(task, agents.QRDQNAgent, particles),
    "IQNAgent": ours(task, agents.IQNAgent, implicit_heads.implicit(64)),
    "MMDQNAgent": ours(task, agents.MMDQNAgent, particles),
    "MMDQNAgent, graph": ours(
      task, agents.MMDQNAgent, particles, jit_compile=False
    ),
    "MMDQNAgent, XLA": ours(
      task, agents.MMDQNAgent, particles, jit_compile=True
    ),
    "MMDQNAgent, published formula": ours(
      task, base.ReturnDistributionAgent, particles, loss=PublishedLoss()
    ),
  }
  calls.update((name, call(made, batch)) for name, made in own.items())
  return calls


def unit_updates(task, batch):
  """Name -> a call that updates MMDQN, with and without its measures.

  Measures are taken at some updates only, so a call is a whole period.
  """
  calls = {}
  for mode, jit_compile in (("default", None), ("graph", False), ("XLA", True)):
    for name in ("as it is", "no measures"):
      made = ours(
        task,
        agents.MMDQNAgent,
        heads.particles(PARTICLES),
        jit_compile=jit_compile,
      )
      if name == "no measures":
        without_measures(made)
      calls[f"{mode}, {name}"] = call(made, batch, times=sight.PERIOD)
  return calls


def without_measures(agent):
  """Takes from an agent what finds its unit and what it sees."""
  agent._train_step._follow_unit = lambda experience, weights: None
  agent._sight.look = lambda *args: sight.nothing()


def show_unit(calls, seconds):
  """Prints what the measures cost."""
  found = timing.interleaved(
    calls, seconds=seconds, quantile=0.25, clock=time.process_time
  )
  print(f"{'MMDQNAgent':12} {'as it is':>10} {'without':>10} {'more':>7}")
  for mode in dict.fromkeys(name.partition(",")[0] for name in found):
    whole, rest = (
      found[f"{mode}, {name}"] for name in ("as it is", "no measures")
    )
    print(
      f"{mode:12} {whole / sight.PERIOD * 1e3:7.3f} ms"
      f" {rest / sight.PERIOD * 1e3:7.3f} ms"
      f" {whole / rest - 1:7.1%}"
    )
  print(
    f"an update of {sight.PERIOD}, among which are those that look; CPU time of"
    " all threads,\n25th percentiles of rounds that take turns"
  )


def rule(task) -> str:
  """What XLA compiles of this network's updates, if nobody says."""
  net = ReturnNetwork(
    task.observation,
    ACTION,
    heads.particles(PARTICLES),
    conv_layer_params=task.conv_layer_params,
    fc_layer_params=task.fc_layer_params,
  )
  net.create_variables()
  plan = compiling.resolve(None, net)
  if plan.whole:
    return "all updates of a round as one piece"
  parts = ["all up to the gradients"] * plan.networks
  parts += ["the loss and the optimizer"] * plan.pieces
  return ", ".join(parts) or "nothing"


def call(agent, batch, times=1, **options):
  """A call that updates the agent so many times, and waits for it."""
  train = common.function(agent.train, **options)

  def update():
    for _ in range(times - 1):
      train(batch)
    train(batch).loss.numpy()

  return update


def experience(task):
  """A batch [B, 2] of random transitions."""
  rng = np.random.default_rng(0)
  shape = [BATCH, 2]
  return trajectory.Trajectory(
    step_type=tf.ones(shape, tf.int32),
    observation=tf.constant(
      rng.integers(256, size=[*shape, *task.observation.shape]), tf.uint8
    ),
    action=tf.constant(rng.integers(ACTIONS, size=shape), tf.int32),
    policy_info=(),
    next_step_type=tf.ones(shape, tf.int32),
    reward=tf.constant(rng.integers(-1, 2, size=shape), tf.float32),
    discount=tf.ones(shape),
  )


def main():
  """Prints the table."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--seconds", type=float, default=60.0)
  parser.add_argument("--network", choices=TASKS, default="nature")
  parser.add_argument(
    "--unit", action="store_true", help="what finding the unit costs MMDQN"
  )
  parser.add_argument("--json", type=pathlib.Path, help="file for the figures")
  args = parser.parse_args()
  task = TASKS[args.network]
  if args.unit:
    show_unit(unit_updates(task, experience(task)), args.seconds)
    return
  calls = updates(task, experience(task))
  print(
    f"tensorflow {tf.__version__}, oneDNN {convolution.has_onednn()}; one"
    f" update, {args.network}, batch {BATCH}\nby default XLA compiles here:"
    f" {rule(task)}"
  )
  first = {}
  for name, update in calls.items():
    start = time.perf_counter()
    update()
    first[name] = time.perf_counter() - start
  found = timing.interleaved(calls, seconds=args.seconds, quantile=0.1)
  print(f"{'':32} {'ms':>8} {'/ graph':>8} {'/ XLA':>8} {'first s':>8}")
  rows = {name: {"milliseconds": 1e3 * t} for name, t in found.items()}
  timing.record(args.json, rows)
  graph, xla = found["DqnAgent, graph"], found["DqnAgent, XLA"]
  for name, seconds in found.items():
    ratios = f"{seconds / graph:8.2f} {seconds / xla:8.2f}"
    print(f"{name:32} {seconds * 1e3:8.2f} {ratios} {first[name]:8.1f}")
  print("/ graph, / XLA: against DqnAgent's; times are 10th percentiles")


if __name__ == "__main__":
  main()
