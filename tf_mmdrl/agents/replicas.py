"""Effects in a graph: at some updates only, and once for all replicas."""

from typing import Callable

import tensorflow as tf


def when(
  condition: tf.Tensor,
  function: Callable[[], object],
  in_place: bool = False,
) -> None:
  """Calls a function for its effects if the condition holds.

  Args:
    condition: [] whether to call it.
    function: changes variables, or prints.
    in_place: whether to write a loop of one turn at most. XLA lets a loop
      change variables where they are; around a condition it copies all that
      may change, whether it does or not. In a graph the loop is slower.
  """

  def call():
    function()
    return tf.constant(False)  # not again

  if in_place:
    tf.while_loop(
      lambda due: due, lambda _: [call()], [condition], parallel_iterations=1
    )
  else:
    tf.cond(condition, call, lambda: tf.constant(False))


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
