"""Effects in a graph: at some updates only, and once for all replicas."""

from typing import Callable

import tensorflow as tf


def when(condition: tf.Tensor, function: Callable[[], object]) -> None:
  """Calls a function for its effects if the condition holds."""

  def call():
    function()
    return True

  tf.cond(condition, call, lambda: False)


def in_one_place(function: Callable[..., object], *values: tf.Tensor) -> None:
  """Calls a function once, with the means of the replicas' values."""
  if not tf.distribute.has_strategy():
    function(*values)
    return
  context = tf.distribute.get_replica_context()
  mean = tf.distribute.ReduceOp.MEAN
  # The reduced values are the same on all replicas; the first's will do.
  values = tuple(context.all_reduce(mean, value) for value in values)

  def call(strategy, *values):
    function(*(strategy.experimental_local_results(v)[0] for v in values))

  context.merge_call(call, args=values)
