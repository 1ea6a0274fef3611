"""Makes the agent that a configuration names."""

from typing import Any, Callable, Dict, NamedTuple

import tensorflow as tf

from tf_mmdrl import agents
from tf_mmdrl.agents import base
from tf_mmdrl.core import errors
from tf_mmdrl.networks import heads, implicit_heads
from tf_mmdrl.ops import kernel_names
from tf_mmdrl.train import algorithms
from tf_mmdrl.train.config import Config


class Parts(NamedTuple):
  """What differs between algorithms.

  Attributes:
    head: configuration -> what makes the network's head.
    agent: the class of the agent.
    options: configuration -> its own arguments.
  """

  head: Callable[[Config], heads.MakeHead]
  agent: Callable[..., base.ReturnDistributionAgent]
  options: Callable[[Config], Dict[str, Any]] = lambda config: {}


def _particles(config: Config) -> heads.MakeHead:
  return heads.particles(config.network.num_particles)


def _one_particle(config: Config) -> heads.MakeHead:
  if config.network.num_particles != 1:
    raise errors.UserError(
      f"{config.agent.name!r} learns one number for each action, got"
      f" network.num_particles={config.network.num_particles}; set it to 1"
    )
  return heads.particles(1)


def _weighted(config: Config) -> heads.MakeHead:
  return heads.weighted_particles(config.network.num_particles)


def _categorical(config: Config) -> heads.MakeHead:
  group = config.agent
  return heads.categorical(
    config.network.num_particles, group.v_min, group.v_max
  )


def _implicit(config: Config) -> heads.MakeHead:
  return _drawn(config, stratified=True)


def _drawn(config: Config, *, stratified: bool) -> heads.MakeHead:
  # Policies take as many particles as the target's choice does.
  return implicit_heads.implicit(
    config.agent.choice_particles,
    base=config.agent.base,
    embedding=config.network.embedding,
    stratified=stratified,
  )


def _uniform(config: Config) -> heads.MakeHead:
  if config.agent.base != "uniform":
    raise errors.UserError(
      "IQN's draws are quantile levels, agent.base=uniform, got"
      f" {config.agent.base}; implicit_mmdqn takes both"
    )
  return _drawn(config, stratified=False)


def _fractions(config: Config) -> heads.MakeHead:
  return implicit_heads.fractions(
    config.network.num_particles, embedding=config.network.embedding
  )


def _kernel(config: Config) -> Dict[str, Any]:
  rule = kernel_names.parse_rule(config.agent.kernel, config.num_updates)
  return {"kernel": rule}


def _kappa(config: Config) -> Dict[str, Any]:
  return {"kappa": config.agent.kappa}


def _samples(config: Config) -> Dict[str, Any]:
  samples = agents.Samples(
    config.network.num_particles,
    config.agent.target_particles,
    config.agent.choice_particles,
  )
  return {"samples": samples}


def _fqf(config: Config) -> Dict[str, Any]:
  return {
    **_kappa(config),
    "entropy": config.agent.entropy,
    "fraction_optimizer": tf.keras.optimizers.RMSprop(
      config.agent.fraction_learning_rate, rho=0.95, epsilon=1e-5
    ),
  }


def _adversarial(config: Config) -> Dict[str, Any]:
  if config.agent.kernel.startswith("gaussian_median"):
    raise errors.UserError(
      "adversarial_mmdqn learns the bandwidth, which gaussian_median would take"
      " from what the map gives and so undo; set another agent.kernel"
    )
  return {
    **_kernel(config),
    "kernel_optimizer": tf.keras.optimizers.Adam(
      config.agent.kernel_learning_rate
    ),
    "knots": _numbers(config.agent.knots),
    "bound": config.agent.bound,
  }


def _numbers(text: str):
  try:
    return tuple(float(part) for part in text.split(",") if part.strip())
  except ValueError:
    raise errors.UserError(
      f"agent.knots wants numbers joined by commas, got {text!r}"
    ) from None


_PARTS: Dict[str, Parts] = {
  "dqn": Parts(_one_particle, agents.DQNAgent),
  "double_dqn": Parts(_one_particle, agents.DQNAgent),
  "c51": Parts(_categorical, agents.C51Agent),
  "qrdqn": Parts(_particles, agents.QRDQNAgent, _kappa),
  "iqn": Parts(
    _uniform, agents.IQNAgent, lambda c: {**_kappa(c), **_samples(c)}
  ),
  "fqf": Parts(_fractions, agents.FQFAgent, _fqf),
  "rainbow": Parts(_categorical, agents.C51Agent),
  "mmdqn": Parts(_particles, agents.MMDQNAgent, _kernel),
  "implicit_mmdqn": Parts(
    _implicit,
    agents.ImplicitMMDQNAgent,
    lambda c: {**_kernel(c), **_samples(c)},
  ),
  "weighted_mmdqn": Parts(_weighted, agents.MMDQNAgent, _kernel),
  "adversarial_mmdqn": Parts(
    _particles, agents.AdversarialMMDQNAgent, _adversarial
  ),
  "rainbow_mmdqn": Parts(_particles, agents.MMDQNAgent, _kernel),
}


def parts(name: str) -> Parts:
  """What the algorithm of that name is made of."""
  algorithms.get(name)  # says so if it is unknown
  return _PARTS[name]
