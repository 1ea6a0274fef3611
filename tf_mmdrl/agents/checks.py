"""What an agent asks of its options and its network."""

from typing import List, Optional

import tensorflow as tf
from tf_agents.networks import network, q_network

from tf_mmdrl.agents import targets
from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import (
  JointReturnDistribution,
  ReturnDistribution,
)
from tf_mmdrl.losses import Loss


def check_options(
  n_step_update: int, munchausen: Optional[targets.Munchausen], double: bool
) -> None:
  """Raises unless the options go together."""
  if n_step_update < 1:
    raise errors.UserError(
      f"n_step_update must be at least 1, got {n_step_update}"
    )
  if munchausen is not None and (n_step_update > 1 or double):
    raise errors.UserError(
      "munchausen wants n_step_update = 1 (the steps between have no bonus)"
      " and double = False (it averages over actions), got"
      f" {n_step_update} and {double}; in mmdrl train, --set agent.n_step=1"
      " --set agent.double=false"
    )


def check_kind(net, agent: str, example: str) -> None:
  """Raises if there is no network, or one of TF-Agents' that has no particles.

  Args:
    net: what was given as the network.
    agent: the class the user typed.
    example: what makes a network for it.
  """
  if not isinstance(net, network.Network):
    gives = "which is no tf_agents.networks.Network"
  elif hasattr(net, "num_atoms"):  # as CategoricalDqnAgent tells them
    gives = "which gives logits of C51's atoms"
  elif isinstance(net, q_network.QNetwork):
    gives = "which gives one number for each action"
  else:
    return
  raise errors.UserError(
    f"{agent} wants a network that gives return distributions, got"
    f" {type(net).__name__}, {gives}; use {example}"
  )


def check_observation(observation_spec, agent: str) -> None:
  """Raises if a part of the observation is no dense tensor.

  Args:
    observation_spec: the spec of the environment's observations, which may be
      nested.
    agent: the class the user typed.
  """
  for spec in tf.nest.flatten(observation_spec):
    if isinstance(spec, tf.TypeSpec) and not isinstance(spec, tf.TensorSpec):
      raise errors.UserError(
        f"{agent} wants observations that are dense tensors, got {spec};"
        " sparse and ragged ones are not supported: make them dense in the"
        " environment, for example with tf.sparse.to_dense"
      )


def check_network(net: network.Network, agent: str, *, implicit: bool) -> None:
  """Raises if the network has a state, or a head of the wrong kind."""
  if implicit and not getattr(net, "is_implicit", False):
    raise errors.UserError(
      "an implicit head is wanted, which gives as many particles as it is"
      f" asked for, got {type(net).__name__}; use"
      " ReturnNetwork(..., implicit_heads.implicit(32))"
    )
  if net.state_spec:
    raise errors.UserError(
      f"{agent} wants a network without state, got {type(net).__name__} with"
      f" {len(tf.nest.flatten(net.state_spec))} tensors of it; recurrent"
      " networks are not supported: put the last few observations into one"
    )


def check_atoms(
  net: network.Network, agent: str, example: str, *, wanted: bool
) -> None:
  """Raises unless a network's returns are fixed atoms, or are not.

  A network of one's own, whose head is not known, is taken as it is.

  Args:
    net: the network.
    agent: the class the user typed.
    example: what makes a network for it.
    wanted: whether the agent learns weights of fixed returns, as C51 does; the
      others move particles, and fixed ones have no gradient.
  """
  head = getattr(net, "head", None)
  if head is None or hasattr(head, "support") == wanted:
    return
  learns = "weights of fixed returns" if wanted else "where particles lie"
  gives = "particles that move" if wanted else "weights of fixed returns"
  raise errors.UserError(
    f"{agent} learns {learns}, got {type(net).__name__}, whose head gives"
    f" {gives}; use {example}"
  )


def check_target(
  net: network.Network, target: network.Network, agent: str
) -> None:
  """Raises unless a target network can take the weights of the network.

  Args:
    net: the network, built.
    target: what was given for the targets, built.
    agent: the class the user typed.
  """
  for theirs, ours in zip(_traits(target), _traits(net)):
    if theirs != ours:
      raise errors.UserError(
        f"{agent} copies its network's weights to the target network, which"
        f" must be made like it, got {theirs} where the network has {ours};"
        " leave the target network out for a copy"
      )


def _traits(net: network.Network) -> List[str]:
  """What weights mean to a built network, the most telling first."""
  returns = ReturnDistribution.of(net.create_variables())
  implicit = getattr(net, "is_implicit", False)
  weight = "of equal" if returns.log_weights is None else "with a"
  support = getattr(getattr(net, "head", None), "support", None)
  shapes = [tuple(variable.shape) for variable in net.variables]
  return [
    "draws" if implicit else f"N = {returns.shape[-1]} particles",
    f"particles {weight} weight",
    f"atoms from {support[0]} to {support[1]}" if support else "free particles",
    f"{len(shapes)} variables",
    "the shapes " + ", ".join(map(str, shapes)),
  ]


def reward_dimensions(reward_spec: tf.TypeSpec) -> Optional[int]:
  """D, if rewards are vectors [D]; None if they are numbers."""
  shape = tf.TensorShape(reward_spec.shape)
  if shape.rank == 0:
    return None
  if shape.rank != 1 or not shape[0]:
    raise errors.UserError(
      f"rewards must be numbers, or vectors of a known length, got {shape};"
      " flatten them in the environment"
    )
  return shape[0]


def check_dimensions(
  net: network.Network, dimensions: Optional[int], agent: str
) -> None:
  """Raises unless a built network has a return for each part of a reward.

  Args:
    net: the network.
    dimensions: D of the environment's rewards; None if they are numbers.
    agent: the class the user typed.
  """
  returns = ReturnDistribution.of(net.create_variables())
  is_joint = isinstance(returns, JointReturnDistribution)
  number = returns.values.shape[-1]  # D, if joint
  if is_joint and dimensions is None:
    raise errors.UserError(
      f"{agent} learns joint distributions of several returns, but the"
      " environment's reward is one number; use mmdqn, or an environment with"
      " vector rewards"
    )
  if not is_joint and dimensions is not None:
    raise errors.UserError(
      f"{agent} learns the distribution of one return, but the environment's"
      f" rewards are vectors of {dimensions}; use joint_mmdqn, or make one"
      " number of them with a wrapper"
    )
  if is_joint and number != dimensions:
    raise errors.UserError(
      f"the network {net.name!r} gives vectors of {number} returns,"
      f" but the environment's rewards have {dimensions} parts; pass"
      f" dimensions={dimensions} to its head"
    )


def check_output(net: network.Network, num_actions: int) -> None:
  """Raises unless a built network gives particles [B, A, N]."""
  shape = ReturnDistribution.of(net.create_variables()).shape
  if shape.rank < 2 or shape[-2] != num_actions or not shape[-1]:
    raise errors.UserError(
      f"the network {net.name!r} must give particles [B, A, N] with A ="
      f" {num_actions} actions, got {('B', *shape)}; use"
      " networks.ReturnNetwork or end yours with a reshape"
    )


def check_losses(losses: tf.Tensor, loss: Loss) -> None:
  """Raises unless there is one loss for each example."""
  if losses.shape.rank != 1:
    raise errors.UserError(
      f"the loss {type(loss).__name__} must give one number for each example,"
      f" [B], got the shape {losses.shape}; take the mean over all other axes"
    )
