"""Off-policy evaluation: what policies would return, from one data set.

For every policy: a fit (`fitting`), the estimates that need none
(`importance`), their statistics with intervals (`laws`, `refits`), and what a
reader should be warned of (`cautions`). Where rewards are vectors one fit has
the joint distribution, and every part of the rewards has estimates of its own.
"""

import dataclasses
import hashlib
import pathlib
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

import numpy as np

from tf_mmdrl.core import algorithms, errors, notices, progress
from tf_mmdrl.offline import (
  blocks,
  cautions,
  dataset,
  fitting,
  importance,
  laws,
  neighbours,
  refits,
)
from tf_mmdrl.offline.dataset import DataSet
from tf_mmdrl.offline.evaluated import Evaluated, correlation_of
from tf_mmdrl.offline.laws import Estimate, Interval
from tf_mmdrl.offline.overview import Data
from tf_mmdrl.offline.target_policies import TargetPolicy
from tf_mmdrl.train import config as configs

_ASKED = 256  # states in which policies are compared


class Options(NamedTuple):
  """How to evaluate.

  Attributes:
    config: of the agent that is fitted; its gamma is the return's.
    fit: how long to fit.
    estimators: which; all that the data allows if empty.
    thresholds: c of P(G < c).
    budget: bytes of memory for transitions.
    clip: what importance weights are cut at.
    repetitions: of the bootstrap over episodes.
    refits: fits to bootstrapped episodes, for the fitted law's intervals.
  """

  config: configs.Config
  fit: fitting.Settings = fitting.Settings()
  estimators: Sequence[str] = ()
  thresholds: Sequence[float] = ()
  budget: int = 2**30
  clip: float = 10.0
  repetitions: int = 500
  refits: int = 0


def base_config(agent: str, gamma: float, is_picture: bool, seed: int):
  """Settings for fits of a few thousand transitions, or of pictures."""
  algorithm = algorithms.get(agent)
  config = configs.Config().replace(
    agent=dict(gamma=gamma, n_step=1),
    network=dict(num_particles=32 if is_picture else 50),
    optimizer=dict(learning_rate=3e-4 if is_picture else 1e-3, epsilon=1e-5),
    # One step is one update here.
    schedule=dict(
      steps_per_update=1,
      batch_size=64 if is_picture else 128,
      target_period=100 if is_picture else 20,
    ),
    system=dict(seed=seed),
  )
  own = [field.name for field in dataclasses.fields(algorithm.settings)]
  chosen = [f"agent.name={agent}", *algorithm.assignments()]
  if "kernel" in own:
    chosen.append("agent.kernel=unrectified:1")  # as the residual is measured
  return configs.change(config, chosen)


def evaluate(
  policy: TargetPolicy,
  data: Data,
  options: Options,
  directory: pathlib.Path,
  identity: Dict[str, Any],
) -> List[Evaluated]:
  """Evaluates a policy; goes on where a call with the same arguments stopped.

  Args:
    policy: whose return is asked for.
    data: the logged episodes.
    options: how.
    directory: of the checkpoints of this policy's fit.
    identity: what must be the same to go on, as JSON values.

  Returns:
    What is known; of each part of the rewards, if these are vectors.
  """
  episodes, gamma = data.episodes, options.config.agent.gamma
  policy.require_fit(episodes.description, f"the data set {episodes.path}")
  wanted = _wanted(options.estimators, episodes, gamma)
  source = _source(policy, data, options)
  fit = _fit(policy, data, options, source, directory, identity)
  views = [_View(policy, data, options, fit, part) for part in _parts(data)]
  again: List[refits.Found] = []
  if importance.FITTED in wanted:
    again = refits.again(
      fit,
      lambda weights: _source(policy, data, options, weights),
      lambda: [view.fitted() for view in views],
      laws.draws(len(episodes), options.refits, options.config.system.seed + 1),
      directory,
      options.thresholds,
    )
  correlation = _correlation(policy, data, fit) if data.dimensions else None
  found = []
  for number, view in enumerate(views):
    estimates = view.estimates(wanted)
    sizes = [each.effective_size for each in estimates.values()]
    size = next((size for size in sizes if size is not None), None)
    found.append(
      Evaluated(
        policy.name,
        estimates,
        view.statistics(estimates, [each[number] for each in again]),
        size,
        cautions.of(policy, data, fit, source, size),
        fit.history,
        part=view.part,
        correlation=correlation,
      )
    )
  return found


def _parts(data: Data) -> Sequence[Optional[int]]:
  return range(data.dimensions) if data.dimensions else [None]


class _View:
  """One policy and one part of the rewards, or all if they are numbers.

  Attributes:
    part: its number, or None.
  """

  def __init__(
    self,
    policy: TargetPolicy,
    data: Data,
    options: Options,
    fit: fitting.Fit,
    part: Optional[int],
  ):
    """Chooses the grid of returns; `fit` is asked whenever one is needed."""
    self.part = part
    self._policy, self._options, self._fit = policy, options, fit
    self._data = data if part is None else data.part(part)
    self._grid = self._make_grid()

  def fitted(self) -> Estimate:
    """What the fit says now."""
    return importance.fitted(
      self._data.episodes, self._policy.probabilities, self._returns, self._grid
    )

  def estimates(self, wanted: Sequence[str]) -> Dict[str, Estimate]:
    """All estimates that are wanted, by name."""
    episodes, policy = self._data.episodes, self._policy.probabilities
    gamma, grid = self._options.config.agent.gamma, self._grid
    found = {}
    if importance.FITTED in wanted:
      found[importance.FITTED] = self.fitted()
    if importance.NEIGHBOURS in wanted:
      found[importance.NEIGHBOURS] = importance.by_neighbours(
        episodes, policy, self._data.scale, gamma, grid
      )
    if not set(wanted) & set(importance.WEIGHTED):
      return found
    paths = importance.paths(episodes, policy, gamma)
    made = importance.estimates(paths, grid, self._options.clip)
    if importance.ROBUST in wanted:
      robust = importance.doubly_robust(
        episodes, policy, self._returns, paths, gamma, grid
      )
      made.insert(0, robust)
    found.update({each.name: each for each in made if each.name in wanted})
    return found

  def statistics(
    self, estimates: Dict[str, Estimate], again: Sequence[Dict[str, float]]
  ) -> Dict[str, Dict[str, Interval]]:
    """Statistics with their intervals; `again` has those of other fits."""
    options = self._options
    counts = laws.draws(
      len(self._data.episodes), options.repetitions, options.config.system.seed
    )
    found = {}
    for name, each in estimates.items():
      if name in importance.MODELS:  # other first states are not all
        point = refits.statistics(each, options.thresholds)
        fits = again if name == importance.FITTED else ()
        found[name] = refits.intervals(point, fits)
      else:
        found[name] = laws.intervals(each, counts, options.thresholds)
    return found

  def _returns(self, observations: np.ndarray) -> tuple:
    values, weights = self._fit.returns(self._data.scale(observations))
    return (values if self.part is None else values[..., self.part]), weights

  def _make_grid(self) -> np.ndarray:
    """Returns that the data and the fit hold possible."""
    values, _ = self._returns(self._data.first)
    low, high = np.quantile(values, [0.001, 0.999])
    least, most = self._data.bounds
    return laws.make_grid(
      float(min(low, least)),
      float(max(high, most)),
      len(self._data.returns),
      self._options.thresholds,
    )


def _correlation(
  policy: TargetPolicy, data: Data, fit: fitting.Fit
) -> List[List[float]]:
  """[D, D] of the fitted joint returns from the first states."""
  values, weights = fit.returns(data.scale(data.first))
  chances = blocks.ask(policy.probabilities, data.first)
  mixed = (chances[..., None] * weights / len(values)).ravel()
  return correlation_of(values.reshape([len(mixed), -1]), mixed)


def _wanted(names: Sequence[str], episodes: DataSet, gamma: float) -> List[str]:
  """The estimators that were asked for, or all that the data allows."""
  for name in names:
    if name not in importance.NAMES:
      raise errors.unknown_name("estimator", name, importance.NAMES)
  weighted = [name for name in names if name in importance.WEIGHTED]
  if weighted and not episodes.has_behaviour:
    raise dataset.broken(
      episodes.path,
      f"{weighted[0]} needs the behaviour policy's probabilities, which it does"
      " not have; leave it out of --estimators, or log them"
      " (docs/offline.md)",
    )
  if names:
    return list(names)
  is_small = episodes.num_steps <= neighbours.MOST and gamma < 1
  is_small = is_small and len(episodes.description.observation_shape) == 1
  is_small = is_small and not episodes.description.reward_size
  models = importance.MODELS if is_small else importance.MODELS[:1]
  return [*models, *(importance.WEIGHTED if episodes.has_behaviour else ())]


def _source(
  policy, data: Data, options: Options, weights=None
) -> blocks.Source:
  return blocks.Source(
    data.episodes,
    policy.probabilities,
    data.scale,
    budget=options.budget,
    seed=options.config.system.seed,
    weights=weights,
  )


def _fit(policy, data, options, source, directory, identity) -> fitting.Fit:
  gamma = options.config.agent.gamma
  fit = fitting.Fit(
    options.config,
    data.episodes.description,
    source,
    options.fit,
    horizon=int(data.episodes.lengths.max()),
    bounds=fitting.possible_returns(
      data.rewards, gamma, ends=data.num_terminated > 0
    ),
    directory=directory,
    identity={
      **identity,
      **_identity(policy, data),
      "data": [str(data.episodes.path), len(data.returns)],
      "returns": [float(data.returns.sum()), float(data.returns.std())],
    },
  )
  if fit.restore(notices.warn):
    notices.note(
      f"goes on with the fit of {policy.name} at {fit.updates:,} updates"
    )
  with progress.Progress(1.0, f"fit {policy.name}") as shown:
    fit.run(lambda look: shown.update(look.updates / options.fit.most))
  return fit


def _identity(policy: TargetPolicy, data: Data) -> Dict[str, Any]:
  """What tells a policy from another one of the same name."""
  chances = blocks.ask(policy.probabilities, data.seen[:_ASKED])
  digest = hashlib.sha256(np.round(chances, 6).tobytes()).hexdigest()
  return {
    "policy": policy.name,
    "version": policy.exported.number if policy.exported else None,
    "epsilon": policy.epsilon,
    "score": policy.score,
    "probabilities": digest,
  }
