"""Losses: small frozen callables (predicted, target, step) -> [B]."""

from tf_mmdrl.losses.cross_entropy_loss import CrossEntropyLoss
from tf_mmdrl.losses.huber_loss import HuberLoss
from tf_mmdrl.losses.loss import Loss
from tf_mmdrl.losses.mmd_loss import MMDLoss
from tf_mmdrl.losses.quantile_huber_loss import QuantileHuberLoss

__all__ = [
  "CrossEntropyLoss",
  "HuberLoss",
  "Loss",
  "MMDLoss",
  "QuantileHuberLoss",
]
