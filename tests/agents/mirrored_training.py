"""Trains on two virtual CPU devices with MirroredStrategy; run by a test."""

import functools

import tf_mmdrl  # noqa: F401  isort: skip
import agent_fixtures as fixtures
import family
import numpy as np
import tensorflow as tf


def halves(batch, strategy):
  """The batch, half of it on each replica."""
  return strategy.experimental_distribute_values_from_function(
    lambda context: tf.nest.map_structure(
      lambda part: tf.split(part, 2)[context.replica_id_in_sync_group], batch
    )
  )


def compare(make, batch, strategy, tolerance):
  """Two replicas with half a batch each against one with the whole batch."""
  with strategy.scope():
    mirrored = make()

  @tf.function
  def train(parts):
    return strategy.run(lambda part: mirrored.train(part).loss, args=(parts,))

  alone = make()
  for _ in range(5):
    train(halves(batch, strategy))
    alone.train(batch)
  for one, other in zip(mirrored.variables, alone.variables, strict=True):
    np.testing.assert_allclose(one, other, **tolerance)
  assert mirrored.train_step_counter.numpy() == 5
  assert mirrored.unit.numpy() == alone.unit.numpy() > 10


def main():
  """An agent that draws nothing, and then one that draws for each row."""
  tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
  )
  strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
  batch = fixtures.experience(batch=8)
  batch = batch._replace(reward=100 * batch.reward)  # so that there is a unit
  for make in (fixtures.make_agent, functools.partial(family.make, "iqn")):
    compare(
      functools.partial(make, target_update_period=2, unit="auto"),
      batch,
      strategy,
      dict(rtol=1e-4, atol=1e-5),
    )
  print("replicas agree")


if __name__ == "__main__":
  main()
