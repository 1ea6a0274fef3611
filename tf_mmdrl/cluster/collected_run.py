"""Brings home what a run writes on a machine that does not share a path."""

import pathlib
import time
from typing import Any, Dict

import ray

from tf_mmdrl.cluster import run_copy
from tf_mmdrl.core import errors, full_disk

PERIOD = 5.0  # seconds until files are fetched again
_PATIENCE = 60.0  # seconds for one answer


class Collected:
  """The copy at home of a run whose host has it in a directory of its own."""

  def __init__(self, directory: pathlib.Path, log: pathlib.Path):
    directory.parent.mkdir(parents=True, exist_ok=True)
    self._copy = run_copy.HomeCopy(directory)
    self._log, self._said = log, 0
    self._fetched = 0.0

  def send(self, host: Any) -> None:
    """Puts what is at home where the run goes on."""
    for names in run_copy.pieces(self._copy.holds()):
      self._get(host.write.remote(self._copy.read(names)))
    self._copy.begin(self._get(host.listing.remote()))
    self._said = 0

  def fetch(self, host: Any, *, at_once: bool = True) -> None:
    """Brings home what is new.

    Args:
      host: of the run.
      at_once: whether also if that was done a moment ago.
    """
    if not at_once and time.monotonic() - self._fetched < PERIOD:
      return
    before = self._get(host.listing.remote())
    contents: Dict[str, bytes] = {}
    for names in run_copy.pieces(self._copy.wanted(before)):
      contents.update(self._get(host.read.remote(names)))
    after = self._get(host.listing.remote())
    text = self._get(host.said.remote(self._said))
    try:
      self._copy.receive(before, contents, after)
      with self._log.open("ab") as file:
        file.write(text)
    except OSError as error:
      raise errors.UserError(
        f"a run cannot be fetched to {str(self._log.parent)!r}:"
        f" {full_disk.reason(error)}; its last checkpoint there is whole. Make"
        " room and run the same command again"
      ) from error
    self._said += len(text)
    self._fetched = time.monotonic()

  def clear(self, host: Any) -> None:
    """Removes what is not needed there any more."""
    self._get(host.clear.remote())

  def _get(self, reference: Any) -> Any:
    return ray.get(reference, timeout=_PATIENCE)
