"""The devices that a run learns on: one, or all with copies of the weights."""

from typing import Any, Callable

import tensorflow as tf
from tf_agents.agents import tf_agent

from tf_mmdrl.agents import base
from tf_mmdrl.agents.train_step import TrainInTurn
from tf_mmdrl.core import errors
from tf_mmdrl.train.config import Config


def configure(config: Config) -> None:
  """Sets how much of the GPUs' memory TensorFlow takes; before it uses them."""
  if not config.system.memory_growth:
    return
  for gpu in tf.config.list_physical_devices("GPU"):
    try:
      tf.config.experimental.set_memory_growth(gpu, True)
    except RuntimeError as error:
      raise errors.UserError(
        "system.memory_growth comes too late: TensorFlow has taken the GPUs'"
        " memory already. Train in a process of its own, with mmdrl train"
      ) from error


def strategy(config: Config) -> tf.distribute.Strategy:
  """Where the agent's variables are, and who updates them.

  Args:
    config: the run's.

  Returns:
    TensorFlow's default for one device; one replica on each device for all:
    GPUs if there are any, otherwise CPUs, of which TensorFlow sees one unless
    it was told to see several.
  """
  if config.system.devices == "one":
    return tf.distribute.get_strategy()
  found = tf.config.list_logical_devices("GPU") or (
    tf.config.list_logical_devices("CPU")
  )
  if config.schedule.batch_size % len(found):
    raise errors.UserError(
      f"system.devices=all shares each batch among {len(found)} devices, so"
      " schedule.batch_size must be a multiple of that, got"
      f" {config.schedule.batch_size}"
    )
  if len(found) == 1:
    return tf.distribute.get_strategy()
  return tf.distribute.MirroredStrategy([device.name for device in found])


def train_in_turn(
  agent: base.ReturnDistributionAgent,
  unpack: Callable[[Any], Any],
  where: tf.distribute.Strategy,
) -> TrainInTurn:
  """`agent.train_in_turn`, compiled, on the devices that the agent is on.

  With several, each takes its share of every batch, and they add up their
  gradients: the update is that of one device with the whole batch.

  Args:
    agent: what learns, made within the strategy's scope.
    unpack: what is kept of a batch -> experience.
    where: from `strategy`.

  Returns:
    (nest of [K, B, ...], importance weights [K, B]) -> the losses.
  """
  if where.num_replicas_in_sync == 1:
    return tf.function(agent.train_in_turn(unpack), autograph=False)

  @tf.function(autograph=False)
  def train(batch, weights):
    found = where.run(
      lambda batch, weights: agent.train(unpack(batch), weights),
      args=_shares((batch, weights), where),
    )
    # A replica's losses are its own, and its loss is its share of the sum.
    examples = tf.nest.map_structure(
      lambda part: tf.concat(where.experimental_local_results(part), 0),
      found.extra,
    )
    loss = where.reduce(tf.distribute.ReduceOp.SUM, found.loss, axis=None)
    return tf_agent.LossInfo(loss, examples)

  def in_turn(batches, weights):
    # Replicas exchange gradients, which they may not do within a loop.
    in_order = zip(*map(tf.unstack, tf.nest.flatten((batches, weights))))
    found = [
      train(*tf.nest.pack_sequence_as((batches, weights), parts))
      for parts in in_order
    ]
    return tf.nest.map_structure(lambda *parts: tf.stack(parts), *found)

  return in_turn


def _shares(batch: Any, where: tf.distribute.Strategy) -> Any:
  """A batch [B, ...], in equal shares for the replicas."""
  count = where.num_replicas_in_sync
  return where.experimental_distribute_values_from_function(
    lambda replica: tf.nest.map_structure(
      lambda part: tf.split(part, count)[replica.replica_id_in_sync_group],
      batch,
    )
  )
