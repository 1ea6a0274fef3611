"""Policies as probabilities of actions: exports, runs and functions."""

import collections.abc
from typing import Any, Callable, Iterable, NamedTuple, Optional

import numpy as np
import tensorflow as tf

from tf_mmdrl.core import choosing, errors, plugins
from tf_mmdrl.offline import policy_places
from tf_mmdrl.offline.dataset import Description
from tf_mmdrl.policies import score_names, scores
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import playing

_TOLERANCE = 1e-4  # of the sum of a function's probabilities


class TargetPolicy(NamedTuple):
  """A policy that is asked for probabilities only.

  Attributes:
    name: what the user typed.
    probabilities: observations [B, ...] -> [B, A] float64.
    config: of the run that it comes from; None if it comes from none.
    exported: the policy itself, if it was exported.
    epsilon: its share of random actions.
    score: what its actions maximise; None if it was not exported.
  """

  name: str
  probabilities: Callable[[np.ndarray], np.ndarray]
  config: Optional[configs.Config] = None
  exported: Optional[playing.ExportedPolicy] = None
  epsilon: float = 0.0
  score: Optional[str] = None

  def require_fit(self, description: Description, data: str) -> None:
    """Raises if the policy was made for other observations or actions."""
    if self.exported is None:
      return
    wanted = self.exported.observation_spec
    came = (tuple(wanted.shape), wanted.dtype.as_numpy_dtype)
    there = (description.observation_shape, description.observation_dtype.type)
    if came != there:
      raise errors.UserError(
        f"the policy {self.name!r} wants observations {wanted.dtype.name}"
        f" {list(came[0])}, but {data} has"
        f" {description.observation_dtype.name} {list(there[0])}; pass data of"
        " the environment that it was made for"
      )
    if self.exported.num_actions != description.num_actions:
      raise errors.UserError(
        f"the policy {self.name!r} knows {self.exported.num_actions} actions,"
        f" but {data} has {description.num_actions}; pass data of the"
        " environment that it was made for"
      )


def open_policy(
  text: str,
  num_actions: Optional[int] = None,
  *,
  version: Optional[int] = None,
  epsilon: Optional[float] = None,
  score: Optional[str] = None,
  imports: Iterable[str] = (),
) -> TargetPolicy:
  """A policy by what the user typed.

  Args:
    text: the directory of a run or of exports, `PATH@VERSION` for one version,
      `zoo:NAME`, `package.module:FUNCTION`, or "random".
    num_actions: A, if it is known already.
    version: of the export; the newest if None.
    epsilon: the share of random actions; the run's own in its evaluations if
      None.
    score: what actions maximise; the run's own if None.
    imports: modules of a run's settings that may be imported.

  Returns:
    The policy.
  """
  if epsilon is not None and not 0 <= epsilon <= 1:
    raise errors.UserError(f"--epsilon must lie in [0, 1], got {epsilon}")
  if text == policy_places.RANDOM and num_actions is not None:
    return uniform(num_actions)
  place = policy_places.find(text, version)
  if place.directory is None:
    epsilon = epsilon or 0.0
    function = _of_function(text, num_actions, epsilon)
    return TargetPolicy(text, function, epsilon=epsilon)
  exported = playing.open_policy(place.directory, place.version, imports)
  config = exported.config
  if epsilon is None:
    epsilon = config.evaluation.epsilon if config else 0.0
  if score is None:
    score = config.evaluation.score if config else "mean"
  return TargetPolicy(
    text,
    of_export(exported, score, epsilon),
    config,
    exported,
    epsilon,
    score,
  )


def of_export(
  exported: playing.ExportedPolicy, score: str, epsilon: float
) -> Callable[[np.ndarray], np.ndarray]:
  """The probabilities with which an exported policy acts."""
  chosen_by = score_names.parse(score)
  is_mean = isinstance(chosen_by, scores.Mean)
  steady = chosen_by.draws is scores.Draws.NONE
  if not steady and not isinstance(chosen_by, scores.Boltzmann):
    raise errors.UserError(
      f"the probabilities of actions by {score!r} are not known; pass a score"
      " such as mean, cvar:0.25 or boltzmann:0.1"
    )

  @tf.function(
    input_signature=[
      tf.TensorSpec(
        [None, *exported.observation_spec.shape],
        exported.observation_spec.dtype,
      )
    ],
    autograph=False,
  )
  def probabilities(observations):
    if is_mean:
      return choosing.probabilities(
        exported.expected(observations), None, tf.constant(epsilon)
      )
    returns = exported.returns(observations)
    if steady:
      found = chosen_by(returns, tf.constant(0.0))
      return choosing.probabilities(found, None, tf.constant(epsilon))
    soft = tf.nn.softmax(chosen_by.logits(returns))
    return choosing.probabilities(soft, None, tf.constant(epsilon), soft)

  return lambda observations: _exact(
    probabilities(tf.convert_to_tensor(observations)).numpy()
  )


def uniform(num_actions: int) -> TargetPolicy:
  """Random play."""
  return TargetPolicy(
    policy_places.RANDOM,
    lambda observations: np.full(
      [len(observations), num_actions], 1 / num_actions
    ),
  )


def draw(probabilities: np.ndarray, uniform: np.ndarray) -> np.ndarray:
  """[B] actions, each with its probability.

  Args:
    probabilities: [B, A].
    uniform: [B] in [0, 1).

  Returns:
    int64.
  """
  cumulative = np.cumsum(probabilities, axis=1)
  below = cumulative <= uniform[:, None] * cumulative[:, -1:]
  return below.sum(axis=1)


def _exact(probabilities: np.ndarray) -> np.ndarray:
  """In float64, summing to 1."""
  probabilities = probabilities.astype(np.float64)
  return probabilities / probabilities.sum(axis=1, keepdims=True)


def _of_function(place: str, num_actions: Optional[int], epsilon: float):
  kind: Any = collections.abc.Callable
  function = plugins.load("policy", place, kind)

  def probabilities(observations: np.ndarray) -> np.ndarray:
    found = np.asarray(function(observations), np.float64)
    wanted = (len(observations), num_actions or found.shape[-1])
    if found.shape != wanted:
      raise errors.UserError(
        f"the policy {place!r} must give probabilities [B, A] = {wanted}, got"
        f" the shape {found.shape}; if a .csv or .npz does not say how many"
        " actions there are, pass --actions"
      )
    if not (found >= 0).all() or np.abs(found.sum(1) - 1).max() > _TOLERANCE:
      raise errors.UserError(
        f"the policy {place!r} must give probabilities that sum to 1, got"
        f" {found[np.argmax(np.abs(found.sum(1) - 1))]}"
      )
    return _exact((1 - epsilon) * found + epsilon / found.shape[1])

  return probabilities
