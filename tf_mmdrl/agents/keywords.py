"""The names a TF-Agents script already uses, as an agent here reads them.

Most keywords of DqnAgent and CategoricalDqnAgent mean the same here. The
network goes by several names, and a few keywords have no meaning here: they get
an error that says what replaces them.
"""

from typing import Any, Dict, Mapping, NamedTuple, Optional, Set

from tf_agents.agents import tf_agent
from tf_agents.networks import network

from tf_mmdrl.agents import checks
from tf_mmdrl.core import arguments
from tf_mmdrl.core.arguments import KeywordError

# Other names of the two networks.
ALIASES: Dict[str, str] = {
  "q_network": "return_network",
  "categorical_q_network": "return_network",
  "particle_network": "return_network",
  "target_q_network": "target_return_network",
  "target_categorical_q_network": "target_return_network",
  "target_particle_network": "target_return_network",
}

_BOUND = (
  "returns need no bounds here, because the agent finds their unit itself;"
  " leave it out (C51's grid belongs to its head, in units of return:"
  " heads.categorical(51, v_min, v_max))"
)
_NETWORK = "it belongs to the network; use {network}"

# What to do about keywords that have no meaning here. "{network}" becomes what
# makes a network for the agent.
REPLACED: Dict[str, str] = {
  "td_errors_loss_fn": "the loss is the algorithm's own; leave it out",
  "min_q_value": _BOUND,
  "max_q_value": _BOUND,
  "v_min": _BOUND,
  "v_max": _BOUND,
  "num_atoms": _NETWORK,
  "num_particles": _NETWORK,
  "num_quantiles": _NETWORK,
  "conv_layer_params": _NETWORK,
  "fc_layer_params": _NETWORK,
  "learning_rate": (
    "it belongs to the optimizer; use"
    " optimizer=tf.keras.optimizers.Adam(learning_rate)"
  ),
  "batch_size": (
    "it belongs to the replay buffer; use"
    " buffer.as_dataset(sample_batch_size=batch_size)"
  ),
}


class Networks(NamedTuple):
  """The online network, and the target's or None for a copy."""

  online: network.Network
  target: Optional[network.Network]


def networks(
  agent_class: type,
  return_network: Optional[network.Network],
  target_return_network: Optional[network.Network],
  others: Mapping[str, Any],
) -> Networks:
  """The networks an agent was given, by whichever name.

  Args:
    agent_class: the class the user typed; errors name it.
    return_network: what came under that name or by position, or None.
    target_return_network: the same for the target network.
    others: all keywords that the agent's class does not spell out.

  Returns:
    The networks.
  """
  for name in others:
    if name not in ALIASES:
      raise _no_such_keyword(agent_class, name)
  given = {
    "return_network": return_network,
    "target_return_network": target_return_network,
    **others,
  }
  online = _only(agent_class, given, "return_network")
  target = _only(agent_class, given, "target_return_network")
  if online is None:
    raise KeywordError(
      f"{agent_class.__name__} needs a network, got none; pass return_network="
      f"{_example(agent_class)}"
    )
  for net in (online, target):
    if net is not None:
      checks.check_kind(net, agent_class.__name__, _example(agent_class))
  return Networks(online, target)


def check_optimizer(agent_class: type, optimizer: Any) -> None:
  """Raises unless there is an optimizer."""
  if optimizer is None:
    raise KeywordError(
      f"{agent_class.__name__} needs an optimizer, got none; pass"
      " optimizer=tf.keras.optimizers.Adam(1e-3)"
    )


def accepted(agent_class: type) -> Set[str]:
  """All keywords that an agent takes, with the other names of networks."""
  return set(ALIASES) | arguments.accepted(agent_class, tf_agent.TFAgent)


def _only(agent_class, given, name) -> Optional[network.Network]:
  """The one network that came under a name or another name of it."""
  found = {
    key: net
    for key, net in given.items()
    if net is not None and ALIASES.get(key, key) == name
  }
  if len(found) > 1:
    raise KeywordError(
      f"{agent_class.__name__} takes one {name}, got {len(found)}:"
      f" {' and '.join(found)} are names of the same network; give one of them"
    )
  return next(iter(found.values()), None)


def _no_such_keyword(agent_class: type, name: str) -> KeywordError:
  example = _example(agent_class)
  replaced = {k: v.format(network=example) for k, v in REPLACED.items()}
  return arguments.no_such_keyword(
    agent_class, name, replaced, accepted(agent_class)
  )


def _example(agent_class: type) -> str:
  return agent_class.network_example  # type: ignore[attr-defined]
