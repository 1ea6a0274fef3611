"""Trained policies that come with the package."""

from tf_mmdrl.zoo.policies import PREFIX, Entry, entries, find, place

__all__ = ["PREFIX", "Entry", "entries", "find", "place"]
