"""Plays games with an exported model, as the run that it came from did."""

from typing import Optional

import tensorflow as tf

from tf_mmdrl.core import errors, specs
from tf_mmdrl.evaluation.evaluator import Evaluation, Evaluator
from tf_mmdrl.policies.player import by_scores
from tf_mmdrl.serving.models import Model
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import factories


def recorded_config(model: Model) -> Optional[configs.Config]:
  """The configuration of the run, if the model has it."""
  content = model.metadata.get("config")
  return None if content is None else configs.from_json(content)


def play(
  model: Model, config: configs.Config, *, level: Optional[float] = None
) -> Evaluation:
  """Evaluates a model.

  With the run's own configuration these are the games that the run judged this
  step by, so the scores are equal if the export is.

  Args:
    model: the exported policy.
    config: what to play, and how.
    level: act by the CVaR of this level instead of the mean.

  Returns:
    The games.
  """
  name = "action" if level is None else "risk"
  if name not in model.signatures:
    raise errors.unknown_name("signature", name, model.signatures)
  function = model.loaded.signatures[name]

  def scores(observation: tf.Tensor) -> tf.Tensor:
    if level is None:
      return function(observation=observation)["q_values"]
    return function(observation=observation, level=tf.constant(level))["cvar"]

  environment = factories.environment(config, evaluation=True)
  num_actions = specs.num_actions(environment.action_spec())
  player = Evaluator(
    environment,
    by_scores(scores, num_actions),
    config.evaluation,
    factories.seeds(config).evaluation,
  )
  try:
    _require_fit(model, environment, config.environment.name)
    return player.evaluate(model.number)
  finally:
    player.close()


def _require_fit(model: Model, environment, name: str) -> None:
  """Raises if the model was made for other observations or actions."""
  wanted = model.signatures["action"].inputs["observation"]
  came = environment.observation_spec()
  if wanted.shape[1:] != came.shape or wanted.dtype != came.dtype:
    raise errors.UserError(
      f"the model wants observations {wanted.dtype.name}"
      f" {wanted.shape.as_list()[1:]}, but {name} gives {came.dtype.name}"
      f" {list(came.shape)}; pass the --env it was made for"
    )
  known = model.signatures["action"].outputs["q_values"].shape[-1]
  number = specs.num_actions(environment.action_spec())
  if known != number:
    raise errors.UserError(
      f"the model knows {known} actions, but {name} has {number}; pass the"
      " --env it was made for"
    )
