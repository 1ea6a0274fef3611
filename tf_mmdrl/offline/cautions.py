"""What a reader of an evaluation should be warned of."""

from typing import List, Optional

import numpy as np

from tf_mmdrl.offline import blocks, fitting
from tf_mmdrl.offline.overview import Data
from tf_mmdrl.offline.target_policies import TargetPolicy

_FEW = 20.0  # effective episodes, below which weights say little


def of(
  policy: TargetPolicy,
  data: Data,
  fit: fitting.Fit,
  source: blocks.Source,
  size: Optional[float],
) -> List[str]:
  """All warnings.

  Args:
    policy: whose return is asked for.
    data: the logged episodes.
    fit: to them.
    source: of its transitions.
    size: the effective sample size; None without importance weights.

  Returns:
    Sentences.
  """
  return [
    *_never_taken(policy, data),
    *_weights(data, size),
    *_residual(data, fit, source),
    *_cut_off(data, size),
  ]


def _never_taken(policy: TargetPolicy, data: Data) -> List[str]:
  taken = data.action_counts > 0
  if taken.all():
    return []
  chances = blocks.ask(policy.probabilities, data.seen)
  missing = chances[:, ~taken].sum(axis=1).mean()
  if missing == 0:
    return []
  never = ", ".join(map(str, np.flatnonzero(~taken)))
  return [
    f"The data never takes action {never}, which the policy takes in"
    f" {missing:.1%} of the data's states: what follows is not known."
  ]


def _weights(data: Data, size: Optional[float]) -> List[str]:
  if size is None:
    return [
      "The data has no behaviour probabilities, so there are no"
      " importance-weighted estimates."
      if not data.episodes.has_behaviour
      else "No importance-weighted estimates were asked for."
    ]
  if size >= _FEW:
    return []
  return [
    f"The importance weights are worth {size:.1f} of {len(data.returns):,}"
    " episodes: estimates by whole episodes' weights say little."
  ]


def _residual(data: Data, fit: fitting.Fit, source: blocks.Source) -> List[str]:
  told = []
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
  return told


def _cut_off(data: Data, size: Optional[float]) -> List[str]:
  cut = len(data.returns) - data.num_terminated
  if not cut or size is None:
    return []
  return [
    f"{cut:,} of {len(data.returns):,} episodes were cut off; importance"
    " weights take their returns as they are, the fitted and the doubly"
    " robust distribution go on from their last states."
  ]
