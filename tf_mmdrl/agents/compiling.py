"""Which way to compile an update, and optimizers that are ready for it."""

from typing import Optional

import tensorflow as tf


def resolve(jit_compile: Optional[bool]) -> bool:
  """Whether to compile with XLA; what is faster here if not said.

  Measured (`benchmarks/update.py`): on a CPU XLA wins from TensorFlow 2.16 on
  and loses on 2.15; on a GPU it fuses what would be many small kernels.

  Args:
    jit_compile: the user's wish, or None.

  Returns:
    Whether XLA compiles an update.
  """
  if jit_compile is not None:
    return jit_compile
  if tf.config.list_physical_devices("GPU"):
    return True
  major, minor = (int(part) for part in tf.__version__.split(".")[:2])
  return (major, minor) >= (2, 16)


def build_optimizer(optimizer, variables) -> None:
  """Makes the optimizer's own variables now.

  A function compiled by XLA may not make variables, and a checkpoint can only
  restore those that exist.

  Args:
    optimizer: of Keras (either generation) or of tf.compat.v1.
    variables: what it will optimise.
  """
  if hasattr(optimizer, "build"):
    optimizer.build(variables)
  elif hasattr(optimizer, "_create_all_weights"):  # Keras' legacy optimizers
    optimizer._create_all_weights(variables)
  elif hasattr(optimizer, "_create_slots"):  # tf.compat.v1.train
    with tf.init_scope():
      optimizer._create_slots(variables)
