"""The newest versions of a directory, loaded while older ones still answer."""

import asyncio
import pathlib
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from tf_mmdrl.core import errors
from tf_mmdrl.serving import directories, manifests
from tf_mmdrl.serving.batching import Batcher
from tf_mmdrl.serving.models import Model, Signature, open_model

_Identity = Tuple[Any, ...]


class Served(NamedTuple):
  """A version that answers.

  Attributes:
    model: it.
    batchers: one for each of its signatures.
  """

  model: Model
  batchers: Dict[str, Batcher]


class _Entry(NamedTuple):
  """What is known of a version: which it was, and how loading it went."""

  identity: _Identity
  served: Optional[Served]
  failure: str = ""


class Store:
  """Holds what is served.

  A request keeps the version that it found; so an old one goes when the last of
  its requests has been answered, and none is dropped.
  """

  def __init__(
    self,
    directory: pathlib.Path,
    *,
    count: int,
    make_batcher: Callable[[Signature], Batcher],
  ):
    """Loads nothing yet.

    Args:
      directory: the directory of the versions.
      count: how many of the newest to serve.
      make_batcher: makes the batcher of a signature of a new version.
    """
    self._directory = directory
    self._count = count
    self._make_batcher = make_batcher
    self._known: Dict[int, _Entry] = {}
    self._served: List[int] = []

  @property
  def numbers(self) -> List[int]:
    """The versions served, oldest first."""
    return self._served

  @property
  def failures(self) -> Dict[int, str]:
    """Versions that could not be loaded as they are now, and why."""
    return {
      number: entry.failure
      for number, entry in self._known.items()
      if entry.failure
    }

  def get(self, number: Optional[int] = None) -> Served:
    """A version, the newest if None; KeyError if it is not served."""
    if number is None:
      number = self._served[-1]
    elif number not in self._served:
      raise KeyError(number)
    served = self._known[number].served
    assert served is not None
    return served

  async def refresh(self) -> List[int]:
    """Loads what is new, and lets go of what is too old.

    A version that cannot be loaded is passed over, until it changes.

    Returns:
      The versions that were loaded.
    """
    found: List[int] = []
    new: List[int] = []
    there = directories.versions(self._directory)
    for number in reversed(there):
      if await self._look(number):
        new.append(number)
      if self._known[number].served is not None:
        found.insert(0, number)
      if len(found) == self._count:
        break
    if found:  # else: go on with what is in memory
      self._served = found
      oldest = found[0]
      for number in list(self._known):
        if number not in there or number < oldest:
          del self._known[number]
    return new

  async def _look(self, number: int) -> bool:
    """Whether a version was new and could be loaded."""
    identity = self._identity(number)
    known = self._known.get(number)
    if known and known.identity == identity:
      return False
    loop = asyncio.get_running_loop()
    try:
      model = await loop.run_in_executor(
        None, open_model, self._directory, number
      )
      if self._identity(number) != identity:
        raise errors.UserError("it changed while it was read")
    except errors.UserError as error:
      # One that was replaced by a broken one goes on as it was.
      served = known.served if known else None
      reason = getattr(error, "reason", str(error))
      self._known[number] = _Entry(identity, served, reason)
      return False
    batchers = {
      name: self._make_batcher(signature)
      for name, signature in model.signatures.items()
    }
    self._known[number] = _Entry(identity, Served(model, batchers))
    return True

  def _identity(self, number: int) -> _Identity:
    """Changes when a version is published again, or its files change."""
    return manifests.identity(self._directory / str(number))
