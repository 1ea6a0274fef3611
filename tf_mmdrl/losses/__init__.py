"""Losses: small frozen callables (predicted, target) -> [B]."""

from tf_mmdrl.losses.mmd_loss import MMDLoss
from tf_mmdrl.losses.quantile_huber_loss import QuantileHuberLoss

__all__ = ["MMDLoss", "QuantileHuberLoss"]
