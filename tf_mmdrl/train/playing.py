"""Plays games with a policy that a run exported: for scores, or to be watched.

`mmdrl evaluate`, `mmdrl play` and `mmdrl watch` all come here.
"""

import pathlib
from typing import Callable, Dict, Iterable, NamedTuple, Optional, Union

import tensorflow as tf
from tf_agents.specs import tensor_spec

from tf_mmdrl import environments, serving
from tf_mmdrl.core import errors, notices, specs
from tf_mmdrl.core.return_distribution import (
  JointReturnDistribution,
  ReturnDistribution,
)
from tf_mmdrl.evaluation.evaluator import Evaluation, Evaluator
from tf_mmdrl.policies import score_names
from tf_mmdrl.policies.player import Act, by_scores
from tf_mmdrl.policies.scores import Mean, Score
from tf_mmdrl.serving import directories, models
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import factories, logged_specs
from tf_mmdrl.train.run_directory import RunDirectory


class ExportedPolicy(NamedTuple):
  """A policy that was exported, ready to play.

  Attributes:
    number: the number of the version, which is the step of the run.
    config: the config of the run that exported it; None if that is not known.
    score: what the run's own evaluation found at this step; None if there was
      none.
    observation_spec: the spec of one observation.
    num_actions: the number of actions, A.
    returns: observations [B, ...] -> return distributions [B, A, N].
    expected: observations [B, ...] -> expected returns [B, A]; of joint
      distributions what the run's actions maximise.
  """

  number: int
  config: Optional[configs.Config]
  score: Optional[float]
  observation_spec: tf.TensorSpec
  num_actions: int
  returns: Callable[[tf.Tensor], ReturnDistribution]
  expected: Callable[[tf.Tensor], tf.Tensor]

  @property
  def is_joint(self) -> bool:
    """Whether returns are vectors."""
    spec = self.observation_spec
    seen = self.returns(tf.zeros([1, *spec.shape], spec.dtype))
    return isinstance(seen, JointReturnDistribution)


def open_policy(
  path: pathlib.Path,
  version: Optional[int] = None,
  imports: Iterable[str] = (),
) -> ExportedPolicy:
  """A policy of a run, or of a directory of versions from `mmdrl export`.

  A run is always opened as one, whatever else is in its directory: of a run
  nothing is executed, while a SavedModel is a program.

  Args:
    path: the path of the run or of the versions.
    version: the number of the version; the newest if None.
    imports: modules of a run's settings that may be imported.

  Returns:
    The policy.
  """
  directory = RunDirectory(path, imports)
  if directory.config_file.exists() or not serving.versions(path):
    return open_run(directory, version)
  return open_export(path, version)


def open_run(
  directory: RunDirectory, version: Optional[int] = None
) -> ExportedPolicy:
  """A policy of a run: its weights are read, nothing of its file is run."""
  config = directory.config()
  version = directories.find_of_run(directory.path, version)
  environment = logged_specs.read(directory.path)
  if environment is None:
    environment = factories.environment(config)
    environment.close()
  observation, action = tensor_spec.from_spec(
    (environment.observation_spec(), environment.action_spec())
  )
  network = factories.network(
    config, observation, action, factories.dimensions(environment)
  )
  network.create_variables()
  loaded = serving.load(network, directory.export, version)
  _tell_unchecked(loaded)

  def returns(observations: tf.Tensor) -> ReturnDistribution:
    output, _ = network(observations)
    return ReturnDistribution.of(output)

  return ExportedPolicy(
    loaded.number,
    config,
    serving.metadata(directory.export, loaded.number).get("score"),
    tf.TensorSpec(observation.shape, observation.dtype),
    network.num_actions,
    returns,
    lambda observations: _scored(config, Mean(), returns, observations),
  )


def open_export(
  path: pathlib.Path, version: Optional[int] = None
) -> ExportedPolicy:
  """A SavedModel of a directory of versions; the run need not be there."""
  model = models.open_model(path, version)
  _tell_unchecked(model)
  for name in ("action", "particles"):
    if name not in model.signatures:
      raise errors.unknown_name("signature", name, model.signatures)
  recorded = model.metadata.get("config")
  batch = model.signatures["action"].inputs["observation"]

  def ask(name: str, observations: tf.Tensor) -> Dict[str, tf.Tensor]:
    # Through the loaded object, which keeps the variables alive.
    return model.loaded.signatures[name](observation=observations)

  def returns(observations: tf.Tensor) -> ReturnDistribution:
    found = ask("particles", observations)
    values, log_weights = found["values"], tf.math.log(found["weights"])
    if values.shape.rank == 4:
      return JointReturnDistribution(values, log_weights)
    return ReturnDistribution(values, log_weights)

  return ExportedPolicy(
    model.number,
    None if recorded is None else configs.from_json(recorded),
    model.metadata.get("score"),
    tf.TensorSpec(batch.shape[1:], batch.dtype),
    model.signatures["action"].outputs["q_values"].shape[-1],
    returns,
    lambda observations: ask("action", observations)["q_values"],
  )


def evaluate(
  policy: ExportedPolicy,
  config: configs.Config,
  progress: Callable[[float], None] = lambda share: None,
) -> Evaluation:
  """Plays whole games.

  With the run's own configuration these are the games that the run evaluated
  this step by, so the scores are equal if the export is.

  Args:
    policy: who plays.
    config: what to play, and how.
    progress: told the share of the games that is done.

  Returns:
    The games.
  """
  environment = factories.environment(config, evaluation=True)
  try:
    return evaluator(policy, config, environment).evaluate(
      policy.number, progress=progress
    )
  finally:
    environment.close()


def evaluator(
  policy: ExportedPolicy,
  config: configs.Config,
  environment: environments.Environment,
  first_action: Optional[tf.Variable] = None,
) -> Evaluator:
  """Has a policy play in an environment, which must fit it.

  Args:
    policy: who plays.
    config: what to play, and how.
    environment: where.
    first_action: [] with which every game begins, instead of the policy's.

  Returns:
    The evaluator.
  """
  _require_fit(policy, environment, config.environment.name)
  act = _act(policy, config)
  if first_action is not None:
    act = _beginning_with(first_action, act)
  return Evaluator(
    environment,
    act,
    config.evaluation,
    factories.seeds(config).evaluation,
    config.own_settings.worth,
  )


def for_episodes(config: configs.Config, episodes: str) -> configs.Config:
  """A configuration by which exactly so many games are played.

  Each environment plays as many games as the others, so there are as many
  environments as share the games evenly.
  """
  config = configs.change(
    config, [f"evaluation.episodes={episodes}", "evaluation.steps=0"]
  )
  group = config.evaluation
  shares = [n for n in range(1, group.num_envs + 1) if not group.episodes % n]
  return config.replace(evaluation=dict(num_envs=max(shares)))


def _tell_unchecked(loaded: Union[serving.Policy, models.Model]) -> None:
  if not loaded.checked:
    notices.warn(serving.unchecked(loaded.number))


def _act(policy: ExportedPolicy, config: configs.Config) -> Act:
  score = score_names.parse_steady(config.evaluation.score)
  if isinstance(score, Mean):
    return by_scores(policy.expected, policy.num_actions)

  def scores(observations: tf.Tensor) -> tf.Tensor:
    return _scored(config, score, policy.returns, observations)

  return by_scores(scores, policy.num_actions)


def _beginning_with(first_action: tf.Variable, act: Act) -> Act:
  def begin(observation, is_first, kept, epsilon, seed):
    actions, kept = act(observation, is_first, kept, epsilon, seed)
    first = tf.cast(first_action, actions.dtype)
    return tf.where(is_first, first, actions), kept

  return begin


def _scored(
  config: configs.Config,
  score: Score,
  returns: Callable[[tf.Tensor], ReturnDistribution],
  observations: tf.Tensor,
) -> tf.Tensor:
  """[B, A] a score of returns, or of their utility if they are joint."""
  score = config.own_settings.score(score)
  return score(score.see(returns(observations), observations), tf.constant(0.0))


def _require_fit(
  policy: ExportedPolicy, environment: environments.Environment, name: str
) -> None:
  """Raises if the policy was made for other observations or actions."""
  wanted, came = policy.observation_spec, environment.observation_spec()
  if wanted.shape != came.shape or wanted.dtype != came.dtype:
    raise errors.UserError(
      f"the policy wants observations {wanted.dtype.name}"
      f" {wanted.shape.as_list()}, but {name} gives {came.dtype.name}"
      f" {list(came.shape)}; pass the --env it was made for"
    )
  number = specs.num_actions(environment.action_spec())
  if policy.num_actions != number:
    raise errors.UserError(
      f"the policy knows {policy.num_actions} actions, but {name} has {number};"
      " pass the --env it was made for"
    )
