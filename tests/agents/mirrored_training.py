"""Trains on two virtual CPU devices with MirroredStrategy; run by a test."""

import tf_mmdrl  # noqa: F401  isort: skip
import agent_fixtures as fixtures
import numpy as np
import tensorflow as tf


def halves(batch, strategy):
  """The batch, half of it on each replica."""
  return strategy.experimental_distribute_values_from_function(
    lambda context: tf.nest.map_structure(
      lambda part: tf.split(part, 2)[context.replica_id_in_sync_group], batch
    )
  )


def main():
  """Two replicas with half a batch each against one with the whole batch."""
  tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0],
    [tf.config.LogicalDeviceConfiguration()] * 2,
  )
  strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
  batch = fixtures.experience(batch=8)
  batch = batch._replace(reward=100 * batch.reward)  # so that there is a unit
  with strategy.scope():
    mirrored = fixtures.make_agent(
      target_update_period=2, unit="auto", jit_compile=None
    )

  @tf.function
  def train(parts):
    return strategy.run(lambda part: mirrored.train(part).loss, args=(parts,))

  alone = fixtures.make_agent(target_update_period=2, unit="auto")
  for _ in range(5):
    train(halves(batch, strategy))
    alone.train(batch)
  for one, other in zip(mirrored.variables, alone.variables):
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
  assert mirrored.train_step_counter.numpy() == 5
  assert mirrored.unit.numpy() == alone.unit.numpy() > 10
  print("replicas agree")


if __name__ == "__main__":
  main()
