"""Which way to compile an update."""

from typing import NamedTuple, Optional

import tensorflow as tf
from tf_agents.networks import network

from tf_mmdrl.ops import convolution


class Plan(NamedTuple):
  """What of an update XLA compiles.

  Attributes:
    whole: all of it as one piece, and all updates of a round as one.
    networks: all up to the gradients.
    pieces: the loss and the optimizer, many small operations each.
  """

  whole: bool = False
  networks: bool = False
  pieces: bool = False


def resolve(jit_compile: Optional[bool], net: network.Network) -> Plan:
  """What to compile with XLA; what is fastest here if not said.

  Measured on a CPU (docs/training.md, Speed): a small network's update takes
  half the time as one piece, because most of it was overhead. A large one's
  does not: XLA would copy all weights for what changes them now and then, and
  its convolutions are slow inside of loops. They are fastest as a graph where
  oneDNN computes them, and by XLA where it does not; the loss and the optimizer
  are by XLA, which fuses them into few passes over memory. On a GPU, not
  measured, XLA fuses what would be many small kernels.

  Args:
    jit_compile: the user's wish, for all of it, or None.
    net: the network that learns, with its variables.

  Returns:
    The plan.
  """
  if jit_compile is False:
    return Plan()
  # Outside XLA, TensorFlow's bfloat16 products end some CPUs' processes with an
  # illegal instruction.
  half = tf.keras.mixed_precision.global_policy().compute_dtype == "bfloat16"
  on_gpu = bool(tf.config.list_physical_devices("GPU"))
  networks = bool(jit_compile) or half or on_gpu
  # A network of a user's own is neither: it may do what XLA cannot.
  is_small, is_large = (
    getattr(net, name, False) for name in ("is_small", "is_large")
  )
  # Replicas exchange gradients, which XLA may not do.
  in_one_place = not tf.distribute.has_strategy()
  if is_small and in_one_place and (networks or _is_new()):
    # What is looked at between rounds is not worth compiling.
    return Plan(whole=True, networks=half)
  networks |= is_large and _is_new() and not convolution.has_onednn()
  return Plan(networks=networks, pieces=True)


def _is_new() -> bool:
  """Whether TensorFlow is newer than 2.15, whose XLA is slower than a graph."""
  return tuple(map(int, tf.__version__.split(".")[:2])) > (2, 15)
