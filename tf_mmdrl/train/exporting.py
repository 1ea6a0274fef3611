"""Exports the policy of a run, with a description of the run beside it."""

import pathlib
from typing import Any, Dict, Iterable

import tensorflow as tf

from tf_mmdrl import serving
from tf_mmdrl.core import errors, run_files
from tf_mmdrl.policies.scores import Mean
from tf_mmdrl.serving import formats as other_formats
from tf_mmdrl.serving import signatures
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import machine
from tf_mmdrl.train.run_state import RunState


def export(
  state: RunState,
  directory: pathlib.Path,
  *,
  formats: Iterable[str] = (),
  policy_saver: bool = False,
) -> pathlib.Path:
  """Publishes the policy of a run's current step.

  Args:
    state: the run.
    directory: the directory of the versions.
    formats: what to write in addition to the SavedModel, "onnx" or "tflite".
    policy_saver: whether to write TF-Agents' own form, too.

  Returns:
    The version's directory.
  """
  agent, extras = state.agent, []
  reading = _reading(state.config)
  for name in formats:
    if name not in other_formats.WRITERS:
      raise errors.unknown_name("format", name, other_formats.WRITERS)
    extras.append(other_formats.WRITERS[name](agent.return_network, reading))
  if policy_saver:
    extras.append(
      other_formats.policy_saver(agent.policy, agent.train_step_counter)
    )
  return serving.publish(
    agent.return_network,
    directory,
    state.step,
    reading=reading,
    metadata=describe(state),
    extras=extras,
  )


def _reading(config: configs.Config) -> signatures.Reading:
  """What the run's policy makes of its network's distributions."""
  own = config.own_settings
  score = own.score(Mean())
  return signatures.Reading(
    lambda z, observation: score(score.see(z, observation), tf.zeros([])),
    lambda z, observation: own.numbers(score.see(z, observation)),
  )


def describe(state: RunState) -> Dict[str, Any]:
  """What a policy is, as JSON values.

  `score` is that of an evaluation at this very step, None if there was none.
  """
  config, around, score = state.config, machine.surroundings(), None
  if state.metrics.last_evaluation == state.step > 0:
    score = run_files.last(state.metrics.rows(), "evaluation_score")
  return {
    "environment": config.environment.name,
    "agent": config.agent.name,
    "step": state.step,
    "updates": state.updates,
    "score": score,
    "config": configs.to_json(config),
    "versions": around["versions"],
    "git_commit": around["git_commit"],
  }
