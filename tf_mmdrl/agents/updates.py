"""What an update leaves behind: checks and summaries of it."""

from typing import Dict, NamedTuple, Optional

import tensorflow as tf
from tf_agents.agents import tf_agent
from tf_agents.utils import common, eager_utils

from tf_mmdrl.core.return_distribution import ReturnDistribution

# What must be finite, by the names that errors give it.
KINDS = (
  "observations",
  "rewards",
  "predicted particles",
  "target particles",
  "losses",
)
Bad = Dict[str, tf.Tensor]


class Update(NamedTuple):
  """What an update leaves to report.

  Attributes:
    loss_info: the loss, and `DqnLossInfo(td_loss, td_error)`, each [B].
    auxiliary_loss: the loss of weights that the main loss has no gradient in,
      or 0.
    predicted: distributions of the actions taken, in natural rewards.
    target: their Bellman targets.
    bad: for each of `KINDS`, int64: how many of its values were not finite.
    beyond_reach: [] share of it that the loss does not see, where it was looked
      at.
    gradients: the gradients of the trainable weights, after clipping.
    finite: whether all in `bad` was, so that it may be applied.
  """

  loss_info: tf_agent.LossInfo
  auxiliary_loss: tf.Tensor
  predicted: ReturnDistribution
  target: ReturnDistribution
  bad: Bad
  beyond_reach: tf.Tensor
  gradients: list
  finite: tf.Tensor


def num_bad(tensors) -> tf.Tensor:
  """How many numbers of a nest of tensors are NaN or infinite, int64."""
  return tf.add_n(
    [
      tf.math.count_nonzero(~tf.math.is_finite(tensor))
      if tensor.dtype.is_floating
      else tf.zeros([], tf.int64)
      for tensor in tf.nest.flatten(tensors)
    ]
  )


def is_finite(bad: Bad) -> tf.Tensor:
  """[] whether no number was NaN or infinite."""
  return tf.add_n(list(bad.values())) == 0


def stop_unless_finite(bad: Bad, step: tf.Tensor) -> Optional[tf.Operation]:
  """Raises InvalidArgumentError, naming what was not finite.

  Args:
    bad: what was not finite in an update; see `Update`.
    step: the train step before it.

  Returns:
    In a graph, the operation that raises.
  """
  counts = [part for item in bad.items() for part in item]
  return tf.debugging.Assert(
    is_finite(bad),
    [
      "An update needs finite numbers; the weights were left as they were at"
      " train step",
      step,
      ". Not finite, by kind:",
      *counts,
      ". Check what the environment gives, or lower the learning rate.",
    ],
    summarize=len(counts),
  )


def summarize(
  update: Update,
  weights,
  step,
  *,
  unit: tf.Tensor,
  beyond_reach: tf.Tensor,
  distributions: bool,
  gradients: bool,
) -> None:
  """Writes TensorBoard summaries, where there is a writer.

  Args:
    update: the update.
    weights: the trainable weights.
    step: the train step.
    unit: [] or [D] natural rewards of one unit of return.
    beyond_reach: share of the targets that the loss does not see.
    distributions: whether to write histograms of particles and losses.
    gradients: whether to write those of weights and gradients.
  """
  common.summarize_scalar_dict(
    {
      "loss": update.loss_info.loss,
      "expected_return": tf.reduce_mean(update.predicted.mean()),
      "expected_target": tf.reduce_mean(update.target.mean()),
      **_by_dimension("unit", unit),
      "beyond_reach": beyond_reach,
      "gradient_norm": tf.linalg.global_norm(update.gradients),
    },
    step=step,
    name_scope="Losses/",
  )
  if distributions:
    histograms = {
      "particles": update.predicted.values,
      "target_particles": update.target.values,
      **update.loss_info.extra._asdict(),
    }
    for name, tensor in histograms.items():
      common.generate_tensor_summaries(name, tensor, step)
  if gradients:
    pairs = list(zip(update.gradients, weights))
    eager_utils.add_variables_summaries(pairs, step)
    eager_utils.add_gradients_summaries(pairs, step)


def _by_dimension(name: str, value: tf.Tensor) -> Dict[str, tf.Tensor]:
  """A number by its name, or those of D returns as name_0, name_1, ..."""
  if not value.shape.rank:
    return {name: value}
  return {f"{name}_{i}": part for i, part in enumerate(tf.unstack(value))}
