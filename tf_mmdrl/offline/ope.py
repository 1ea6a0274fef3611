"""Off-policy evaluation: what policies would return, from one data set.

For every policy: a fit (`fitting`), the estimates that need none
(`importance`), their statistics with intervals (`laws`), and what a reader
should be warned of.
"""

import dataclasses
import hashlib
import json
import pathlib
from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from tf_mmdrl.core import algorithms, errors, notices, progress, whole_files
from tf_mmdrl.offline import (
  blocks,
  dataset,
  fitting,
  importance,
  laws,
  neighbours,
)
from tf_mmdrl.offline.dataset import DataSet
from tf_mmdrl.offline.laws import Estimate, Interval
from tf_mmdrl.offline.target_policies import TargetPolicy
from tf_mmdrl.train import config as configs

_FEW = 20.0  # effective episodes, below which weights say little
_REFITS = "refits.json"
_STUDENT = (12.7062, 4.3027, 3.1824, 2.7764)  # for 1 to 4 degrees of freedom


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


class Evaluated(NamedTuple):
  """What is known of a policy.

  Attributes:
    name: of the policy.
    estimates: by name of the estimator.
    statistics: estimator -> statistic -> number and interval.
    effective_size: of the importance weights; None if there are none.
    warnings: what a reader should know.
    history: looks at the residual of the fit.
    truth: [M] returns that the policy got in the environment, if played.
  """

  name: str
  estimates: Dict[str, Estimate]
  statistics: Dict[str, Dict[str, Interval]]
  effective_size: Optional[float]
  warnings: List[str]
  history: List[fitting.Look]
  truth: Optional[np.ndarray] = None


class Data(NamedTuple):
  """A data set, and what one pass over it found.

  Attributes:
    episodes: the data set.
    summary: of all episodes.
    scale: of observations.
    returns: [E] discounted returns as they were logged.
    bounds: the lowest and highest partial return.
  """

  episodes: DataSet
  summary: dataset.Summary
  scale: blocks.Scale
  returns: np.ndarray
  bounds: Tuple[float, float]


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


def open_data(episodes: DataSet, gamma: float) -> Data:
  """Reads all of a data set, so that what is bad in it shows at once."""
  if episodes.description.reward_size:
    raise dataset.broken(
      episodes.path,
      f"its rewards are vectors of {episodes.description.reward_size}; plain"
      " numbers are wanted",
    )
  summary = dataset.summarize(episodes)
  returns, low, high = [], 0.0, 0.0
  for episode in episodes.read(range(len(episodes))):
    partial = importance.partial_returns(episode.rewards, gamma)
    returns.append(partial[-1])
    low, high = min(low, partial.min()), max(high, partial.max())
  scale = blocks.scale_of(episodes)
  return Data(episodes, summary, scale, np.array(returns), (low, high))


def evaluate(
  policy: TargetPolicy,
  data: Data,
  options: Options,
  directory: pathlib.Path,
  identity: Dict[str, Any],
) -> Evaluated:
  """Evaluates a policy; goes on where a call with the same arguments stopped.

  Args:
    policy: whose return is asked for.
    data: the logged episodes.
    options: how.
    directory: of the checkpoints of this policy's fit.
    identity: what must be the same to go on, as JSON values.

  Returns:
    What is known.
  """
  episodes, gamma = data.episodes, options.config.agent.gamma
  policy.require_fit(episodes.description, f"the data set {episodes.path}")
  wanted = _wanted(options.estimators, episodes, gamma)
  source = _source(policy, data, options)
  fit = _fit(policy, data, options, source, directory, identity)

  def returns(observations):
    return fit.returns(data.scale(observations))

  grid = _grid(data, returns, options.thresholds)
  estimates = {}
  if importance.FITTED in wanted:
    estimates[importance.FITTED] = importance.fitted(
      episodes, policy.probabilities, returns, grid
    )
  if importance.NEIGHBOURS in wanted:
    estimates[importance.NEIGHBOURS] = importance.by_neighbours(
      episodes, policy.probabilities, data.scale, gamma, grid
    )
  if set(wanted) & set(importance.WEIGHTED):
    paths = importance.paths(episodes, policy.probabilities, gamma)
    made = importance.estimates(paths, grid, options.clip)
    if importance.ROBUST in wanted:
      made.insert(
        0,
        importance.doubly_robust(
          episodes, policy.probabilities, returns, paths, gamma, grid
        ),
      )
    estimates.update({each.name: each for each in made if each.name in wanted})
  seed = options.config.system.seed
  counts = laws.draws(len(episodes), options.repetitions, seed)
  statistics = {
    name: laws.intervals(each, counts, options.thresholds)
    for name, each in estimates.items()
  }
  if importance.FITTED in estimates:
    statistics[importance.FITTED] = _refitted(
      fit, policy, data, options, grid, directory
    )
  if importance.NEIGHBOURS in estimates:  # other first states are not all
    statistics[importance.NEIGHBOURS] = {
      name: Interval(value.point)
      for name, value in statistics[importance.NEIGHBOURS].items()
    }
  sizes = [each.effective_size for each in estimates.values()]
  size = next((size for size in sizes if size is not None), None)
  warnings = _warnings(policy, data, options, fit, source, size)
  return Evaluated(
    policy.name, estimates, statistics, size, warnings, fit.history
  )


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
  fit = fitting.Fit(
    options.config,
    data.episodes.description,
    source,
    options.fit,
    horizon=int(data.episodes.lengths.max()),
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
  chances = blocks.ask(policy.probabilities, _some(data, 256))
  digest = hashlib.sha256(np.round(chances, 6).tobytes()).hexdigest()
  return {
    "policy": policy.name,
    "version": policy.exported.number if policy.exported else None,
    "epsilon": policy.epsilon,
    "score": policy.score,
    "probabilities": digest,
  }


def _grid(data: Data, returns, thresholds: Sequence[float]) -> np.ndarray:
  """Returns that the data and the fit hold possible."""
  first = [
    episode.observations[0]
    for episode in data.episodes.read(range(min(len(data.returns), 2000)))
  ]
  values, _ = returns(np.stack(first))
  low, high = np.quantile(values, [0.001, 0.999])
  low, high = min(low, data.bounds[0]), max(high, data.bounds[1])
  return laws.make_grid(float(low), float(high), len(data.returns), thresholds)


def _refitted(
  fit, policy, data: Data, options: Options, grid, directory
) -> Dict[str, Interval]:
  """The fitted law's statistics; with intervals, if it is fitted again."""
  base = fit.variables()

  def statistics(counts=None):
    estimate = importance.fitted(
      data.episodes,
      policy.probabilities,
      lambda seen: fit.returns(data.scale(seen)),
      grid,
    )
    found = laws.statistics(estimate.law(counts), options.thresholds)
    return {name: float(value) for name, value in found.items()}

  point = statistics()
  path, again = directory / _REFITS, []
  # Through JSON, as it is read.
  same = {"identity": fit.identity, "thresholds": list(options.thresholds)}
  same = json.loads(json.dumps(same))
  if path.exists():
    before = whole_files.read_json(path)
    if all(before.get(key) == value for key, value in same.items()):
      again = before["statistics"]
  seed = options.config.system.seed
  draws = laws.draws(len(data.returns), max(options.refits, 1), seed + 1)
  periods = max(1, len(fit.history) // 4)
  for number in range(len(again), options.refits):
    fit.assign(base)
    weights = draws[number]
    fit.refit(_source(policy, data, options, weights), periods)
    again.append(statistics(weights))
    whole_files.write_json(path, {**same, "statistics": again})
  fit.assign(base)
  if options.refits < 2:
    return {name: Interval(value) for name, value in point.items()}
  found = {}
  for name, value in point.items():
    # Few refits have no reliable quantiles; their spread they have.
    half = _student(options.refits - 1) * np.std(
      [each[name] for each in again[: options.refits]], ddof=1
    )
    found[name] = Interval(value, float(value - half), float(value + half))
  return found


def _student(freedom: int) -> float:
  """The 97.5 % quantile of Student's distribution (Cornish and Fisher)."""
  if freedom <= len(_STUDENT):
    return _STUDENT[freedom - 1]
  z = 1.959964
  return float(
    z
    + (z**3 + z) / (4 * freedom)
    + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3)
  )


def _warnings(policy, data: Data, options, fit, source, size) -> List[str]:
  told = []
  taken = data.summary.action_counts > 0
  chances = blocks.ask(policy.probabilities, _some(data))
  missing = chances[:, ~taken].sum(axis=1).mean() if not taken.all() else 0.0
  if missing > 0:
    never = ", ".join(map(str, np.flatnonzero(~taken)))
    told.append(
      f"The data never takes action {never}, which the policy takes in"
      f" {missing:.1%} of the data's states: what follows is not known."
    )
  if size is None:
    told.append(
      "The data has no behaviour probabilities, so there are no"
      " importance-weighted estimates."
      if not data.episodes.has_behaviour
      else "No importance-weighted estimates were asked for."
    )
  elif not size >= _FEW:
    told.append(
      f"The importance weights are worth {size:.1f} of {len(data.returns):,}"
      " episodes: estimates by whole episodes' weights say little."
    )
  if not fit.has_settled:
    told.append(
      f"The residual had not stopped falling after {fit.updates:,} updates;"
      " allow more with --updates."
    )
  after = [look for look in fit.history if look.updates >= fit.least]
  if len(after) > 1 and after[-1].residual > 1.05 * after[0].residual:
    told.append(
      f"The residual on held-out transitions rose, from"
      f" {after[0].residual:.4g} to {after[-1].residual:.4g}: the fit does not"
      " generalise; lower optimizer.learning_rate, or log more episodes."
    )
  if not source.is_held_out:
    told.append(
      f"With {len(data.returns)} episodes none is held out: the residual is"
      " that of the transitions that are learnt from."
    )
  cut = len(data.returns) - data.summary.num_terminated
  if cut and size is not None:
    told.append(
      f"{cut:,} of {len(data.returns):,} episodes were cut off; importance"
      " weights take their returns as they are, the fitted and the doubly"
      " robust law go on from their last states."
    )
  return told


def _some(data: Data, count: int = 2000) -> np.ndarray:
  """Observations of a few episodes."""
  seen: List[np.ndarray] = []
  for episode in data.episodes.read(range(len(data.returns))):
    seen.append(episode.observations)
    if sum(map(len, seen)) >= count:
      break
  return np.concatenate(seen)[:count]


def ranked(
  found: Sequence[Evaluated], estimator: str, statistic: str
) -> List[Evaluated]:
  """Policies by a statistic of an estimator, the best first."""
  laws.check_statistic(statistic)

  def place(each):  # what is not known comes last
    point = each.statistics[estimator][statistic].point
    return np.isnan(point), -point

  return sorted(found, key=place)


def to_json(found: Evaluated) -> Dict[str, Any]:
  """All numbers of an evaluation; those that are not known are null."""
  content: Dict[str, Any] = {
    "policy": found.name,
    "effective_sample_size": found.effective_size,
    "warnings": found.warnings,
    "statistics": {
      name: {key: list(value) for key, value in each.items()}
      for name, each in found.statistics.items()
    },
    "residuals": [list(look) for look in found.history],
    "laws": {
      name: {
        "returns": each.grid.tolist(),
        "probabilities": each.law().proper().probabilities.tolist(),
      }
      for name, each in found.estimates.items()
    },
  }
  if found.truth is not None:
    content["truth"] = {
      "returns": found.truth.tolist(),
      "distances": {
        name: dict(
          zip(("w1", "energy"), laws.distances(each.law(), found.truth))
        )
        for name, each in found.estimates.items()
      },
    }
  return _plain(content)


def _plain(content: Any) -> Any:
  """As JSON has it, which knows neither tuples nor NaN nor infinity."""
  if isinstance(content, dict):
    return {key: _plain(value) for key, value in content.items()}
  if isinstance(content, (list, tuple)):
    return [_plain(value) for value in content]
  if isinstance(content, float) and not np.isfinite(content):
    return None
  return content
