"""Which way to compile an update."""

from typing import NamedTuple, Optional

import tensorflow as tf


class Plan(NamedTuple):
  """What of an update XLA compiles.

  Attributes:
    networks: all up to the gradients.
    pieces: the loss and the optimizer, many small operations each.
  """

  networks: bool
  pieces: bool


def resolve(jit_compile: Optional[bool]) -> Plan:
  """What to compile with XLA; what is fastest here if not said.

  Measured on a CPU (docs/training.md, Speed): networks are faster as a graph,
  while XLA fuses the loss and the optimizer into few passes over memory. On a
  GPU, not measured, it fuses what would be many small kernels.

  Args:
    jit_compile: the user's wish, for all of it, or None.

  Returns:
    The plan.
  """
  if jit_compile is not None:
    return Plan(jit_compile, jit_compile)
  # Outside XLA, TensorFlow's bfloat16 products end some CPUs' processes with an
  # illegal instruction.
  half = tf.keras.mixed_precision.global_policy().compute_dtype == "bfloat16"
  return Plan(half or bool(tf.config.list_physical_devices("GPU")), True)
