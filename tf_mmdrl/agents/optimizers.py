"""Weights, by the optimizer that moves them."""

from typing import List, NamedTuple, Optional, Sequence

import tensorflow as tf
from tf_agents.networks import network
from tf_agents.typing import types

from tf_mmdrl.agents.auxiliary import Auxiliary


class Group(NamedTuple):
  """Weights and the optimizer that moves them."""

  optimizer: types.Optimizer
  weights: Sequence[tf.Variable]


def groups(
  net: network.Network,
  optimizer: types.Optimizer,
  auxiliary: Optional[Auxiliary],
) -> List[Group]:
  """All weights that learn.

  Args:
    net: the online network.
    optimizer: of all its weights that are not the auxiliary's.
    auxiliary: what else learns, or None.

  Returns:
    The network's group, and the auxiliary's if there is one.
  """
  trained = net.trainable_weights
  if auxiliary is None:
    return [Group(optimizer, trained)]
  others = auxiliary.weights(net)
  theirs = {id(weight) for weight in others}
  return [
    Group(optimizer, [w for w in trained if id(w) not in theirs]),
    Group(auxiliary.optimizer, others),
  ]


def weights(grouped: Sequence[Group]) -> List[tf.Variable]:
  """The weights of all groups, in order."""
  return [weight for group in grouped for weight in group.weights]


def variables(optimizer: types.Optimizer) -> List[tf.Variable]:
  """What an optimizer keeps."""
  own = optimizer.variables  # a method in older optimizers
  return list(own() if callable(own) else own)


def apply_gradients(grouped: Sequence[Group], gradients: Sequence) -> None:
  """Lets each optimizer move its weights.

  Args:
    grouped: the weights.
    gradients: of `weights(grouped)`.
  """
  gradients = list(gradients)
  for optimizer, moved in grouped:
    own, gradients = gradients[: len(moved)], gradients[len(moved) :]
    optimizer.apply_gradients(zip(own, moved))


def build(optimizer: types.Optimizer, moved: Sequence[tf.Variable]) -> None:
  """Makes the optimizer's own variables now.

  A function compiled by XLA may not make variables, and a checkpoint can only
  restore those that exist.

  Args:
    optimizer: of Keras (either generation) or of tf.compat.v1.
    moved: the weights that it will move.
  """
  if hasattr(optimizer, "build"):
    optimizer.build(moved)
  elif hasattr(optimizer, "_create_all_weights"):  # Keras' legacy optimizers
    optimizer._create_all_weights(moved)
  elif hasattr(optimizer, "_create_slots"):  # tf.compat.v1.train
    with tf.init_scope():
      optimizer._create_slots(moved)
