"""Losses: small frozen callables, (predicted, target, step) -> [B]."""

from tf_mmdrl.losses.mmd_loss import MMDLoss

__all__ = ["MMDLoss"]
