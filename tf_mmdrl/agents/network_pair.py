"""The online network, and the target network that follows it."""

import dataclasses
from typing import Optional, Tuple

import tensorflow as tf
from tf_agents.networks import network
from tf_agents.utils import common

from tf_mmdrl.agents import checks, replicas
from tf_mmdrl.core import specs
from tf_mmdrl.networks.units import with_unit


@dataclasses.dataclass(frozen=True, eq=False)
class NetworkPair:
  """Two networks of the same layers; each has a `unit`.

  Attributes:
    online: what learns.
    target: what gives the targets.
    tau: the share of the online weights that goes into the target network at
      an update of it.
    period: train steps between two updates of it.
  """

  online: network.Network
  target: network.Network
  tau: float
  period: int

  @property
  def both(self) -> Tuple[network.Network, network.Network]:
    """The online network and the target network."""
    return self.online, self.target

  def copy_to_target(self, tau: float = 1.0) -> None:
    """Moves the target network's weights towards the online network's."""
    common.soft_variables_update(
      self.online.variables,
      self.target.variables,
      tau,
      tau_non_trainable=1.0,
    )

  def update_target(
    self, step: tf.Tensor, was_updated: tf.Tensor, in_place: bool = False
  ) -> None:
    """Moves it by `tau` if the period divides the number of updates.

    Args:
      step: [] updates so far.
      was_updated: [] whether there was one just now.
      in_place: whether XLA compiles this; see `replicas.when`.
    """
    replicas.when(
      was_updated & (step % self.period == 0),
      lambda: self.copy_to_target(self.tau),
      in_place,
    )


def make(
  online: network.Network,
  target: Optional[network.Network],
  observation_spec,
  action_spec,
  *,
  tau: float,
  period: int,
  agent: str,
  dimensions: Optional[int] = None,
) -> NetworkPair:
  """Builds both networks, and raises unless they suit each other.

  Args:
    online: observation -> particles `[B, A, N]`.
    target: a network of the same make, or None for a copy.
    observation_spec: the spec of the network's part of the observation.
    action_spec: the spec of A discrete actions.
    tau: as in `NetworkPair`.
    period: as in `NetworkPair`.
    agent: the class that the user typed, for errors.
    dimensions: D, if rewards are vectors.

  Returns:
    The networks, each with a unit.
  """
  num_actions = specs.num_actions(action_spec)
  online = _build(online, observation_spec, num_actions, dimensions, agent)
  if target is not None:
    target = _build(target, observation_spec, num_actions, dimensions, agent)
    checks.check_target(online, target, agent)
  target = common.maybe_copy_target_network_with_checks(
    online, target, "TargetNetwork", input_spec=observation_spec
  )
  return NetworkPair(online, target, tau, period)


def _build(
  net: network.Network,
  observation_spec,
  num_actions: int,
  dimensions: Optional[int],
  agent: str,
) -> network.Network:
  net = with_unit(net, dimensions)
  net.create_variables(observation_spec)
  checks.check_dimensions(net, dimensions, agent)
  checks.check_output(net, num_actions)
  return net
