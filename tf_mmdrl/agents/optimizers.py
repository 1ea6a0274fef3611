"""Weights, grouped by the optimizer that updates them."""

from typing import List, NamedTuple, Optional, Sequence

import tensorflow as tf
from tf_agents.networks import network
from tf_agents.typing import types

from tf_mmdrl.agents.auxiliary import Auxiliary


class Group(NamedTuple):
  """Weights and the optimizer that moves them."""

  optimizer: types.Optimizer
  weights: Sequence[tf.Variable]


class Groups:
  """All weights that learn, and how they move."""

  def __init__(
    self,
    net: network.Network,
    optimizer: types.Optimizer,
    auxiliary: Optional[Auxiliary],
  ):
    """Makes the optimizers' own variables.

    Args:
      net: the online network.
      optimizer: the optimizer of all its weights that are not the auxiliary's.
      auxiliary: what else learns, or None.
    """
    self._net = net
    self._optimizer = optimizer
    self._auxiliary = auxiliary
    for group in self():
      build(*group)

  def __call__(self) -> List[Group]:
    """The network's group, and the auxiliary's if there is one."""
    trained = self._net.trainable_weights
    if self._auxiliary is None:
      return [Group(self._optimizer, trained)]
    others = self._auxiliary.weights(self._net)
    theirs = {id(weight) for weight in others}
    return [
      Group(self._optimizer, [w for w in trained if id(w) not in theirs]),
      Group(self._auxiliary.optimizer, others),
    ]

  def weights(self) -> List[tf.Variable]:
    """The weights of all groups, in order."""
    return [weight for group in self() for weight in group.weights]

  def apply(self, gradients: Sequence) -> None:
    """Lets each optimizer move its weights by their gradients, in order."""
    gradients = list(gradients)
    for optimizer, weights in self():
      own, gradients = gradients[: len(weights)], gradients[len(weights) :]
      optimizer.apply_gradients(zip(own, weights))

  def add_variables(self, variables: Sequence[tf.Variable]) -> list:
    """Variables, then weights that are not among them and optimizers' own."""
    variables = list(variables)
    for group in self():
      known = {id(variable) for variable in variables}
      variables += [v for v in group.weights if id(v) not in known]
      own = group.optimizer.variables  # a method in older optimizers
      variables += own() if callable(own) else own
    return variables


def build(optimizer: types.Optimizer, weights: Sequence[tf.Variable]) -> None:
  """Makes the optimizer's own variables now.

  A function compiled by XLA may not make variables, and a checkpoint can only
  restore those that exist.

  Args:
    optimizer: an optimizer of Keras (either generation) or of tf.compat.v1.
    weights: what it will move.
  """
  if hasattr(optimizer, "build"):
    optimizer.build(weights)
  elif hasattr(optimizer, "_create_all_weights"):  # Keras' legacy optimizers
    optimizer._create_all_weights(weights)
  elif hasattr(optimizer, "_create_slots"):  # tf.compat.v1.train
    with tf.init_scope():
      optimizer._create_slots(weights)
