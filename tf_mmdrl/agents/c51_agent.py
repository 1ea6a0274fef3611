"""C51: Bellemare, Dabney and Munos, "A Distributional Perspective on
Reinforcement Learning", 2017; Algorithm 1. With the options `double`, n-step,
dueling and noisy networks and prioritised replay it is Rainbow: Hessel et al.,
"Rainbow: Combining Improvements in Deep Reinforcement Learning", 2018.
"""

import tensorflow as tf

from tf_mmdrl.agents import base
from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.ops import categorical


class C51Agent(base.ReturnDistributionAgent):
  """Learns the weights of fixed, evenly spaced returns.

  Head: `heads.categorical`. The arguments are those of the base class.
  """

  network_example = "ReturnNetwork(..., heads.categorical(51))"
  _UNITS_OF_A_RETURN = 1.5  # at most 4, well within the usual atoms of +-10
  _BEYOND_WHAT = "the targets' probability lies beyond the atoms"

  def _loss_per_example(
    self, predicted: ReturnDistribution, target: ReturnDistribution
  ) -> tf.Tensor:
    if predicted.log_weights is None:
      raise errors.UserError(
        "C51 needs a head that gives weights of fixed returns, got particles"
        " of equal weight; use ReturnNetwork(..., heads.categorical(51))"
      )
    projected = categorical.project(
      target.values, target.weights(), tf.stop_gradient(predicted.values)
    )
    return categorical.cross_entropy(predicted.log_weights, projected)

  @property
  def _has_a_reach(self) -> bool:
    return True

  def _beyond_reach(
    self, predicted: ReturnDistribution, target: ReturnDistribution
  ) -> tf.Tensor:
    low, high = predicted.values[:, :1], predicted.values[:, -1:]
    outside = (target.values < low) | (target.values > high)
    return tf.reduce_sum(tf.where(outside, target.weights(), 0.0), axis=1)
