"""The paper's tabular experiment and its theorems, exact where it sampled."""

from tf_mmdrl.tabular.chain import Chain
from tf_mmdrl.tabular.dynamic_programming import (
  bellman,
  fixed_point,
  mmd_infinity,
)
from tf_mmdrl.tabular.evaluation import evaluate
from tf_mmdrl.tabular.process import RewardProcess

__all__ = [
  "Chain",
  "RewardProcess",
  "bellman",
  "evaluate",
  "fixed_point",
  "mmd_infinity",
]
