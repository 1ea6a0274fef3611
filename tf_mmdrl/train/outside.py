"""What environments share with others, as a run looks at it.

Generators that others share, as NumPy's own is, are looked at before and after
all that is played, and what modules and classes keep at each checkpoint. None
of it is in a saved state.
"""

import contextlib
from typing import Any, Dict, Iterable, Iterator, Optional, Set

from tf_mmdrl import environments
from tf_mmdrl.environments.snapshot import sharing
from tf_mmdrl.train import proofs


class Outside:
  """Looks at what environments share, and remembers what they depend on.

  Attributes:
    generators: that they may share, by name.
    depends_on: the names of what has changed when they were played.
  """

  def __init__(self, environment: environments.Environment, *, looks: bool):
    """Has not seen anything change.

    Args:
      environment: batched.
      looks: whether generators are looked at.
    """
    self._environment = environment
    self._texts: Dict[str, str] = {}
    self.generators = sharing.generators(environment) if looks else {}
    self.depends_on: Set[str] = set()

  @property
  def why(self) -> Optional[str]:
    """Why a state cannot be relied on, as far as was seen; None if it can."""
    if not self.depends_on:
      return None
    names = ", ".join(sorted(self.depends_on))
    return f"it depends on {names}, which others share"

  @property
  def undrawn(self) -> Dict[str, Any]:
    """The generators that nothing here has drawn from."""
    found = self.generators.items()
    return {n: value for n, value in found if n not in self.depends_on}

  @contextlib.contextmanager
  def noticing(self) -> Iterator[None]:
    """While entered, who draws from generators that others share is noticed."""
    before = sharing.states(self.generators)
    try:
      yield
    finally:
      after = sharing.states(self.generators)
      self.depends_on.update(n for n in after if after[n] != before[n])

  def probe(self) -> Dict[str, str]:
    """Plays a probe for the first time; the texts of what is shared then."""
    first = sharing.texts(self._environment)
    self.probe_again()
    # Much is made when it is first wanted, and does not change any more.
    texts = sharing.texts(self._environment)
    new = sharing.changed(first, texts)
    self.depends_on.update(sharing.parts_of(self._environment, new))
    return texts

  def probe_again(self) -> None:
    """Plays a probe."""
    with self.noticing():
      proofs.probe(self._environment)

  def look(self) -> None:
    """Looks at what modules and classes keep, to be compared from now on."""
    self._texts = sharing.texts(self._environment)

  def notice_since(self, before: Dict[str, str]) -> None:
    """As `look`, and notices what has changed since others were seen."""
    self.look()
    self.depends_on.update(sharing.changed(before, self._texts))

  def notice(self) -> Dict[str, str]:
    """Notices what has changed since the last look.

    Returns:
      Digests of what there is now, to be kept with a state.
    """
    texts = sharing.texts(self._environment)
    self.depends_on.update(sharing.changed(self._texts, texts))
    return self._lasting(texts)

  def others(self, kept: Dict[str, str]) -> Optional[str]:
    """What is another than those that were kept with a state, in words."""
    return proofs.others(kept, self._lasting(self._texts))

  def named(self, names: Iterable[str]) -> Dict[str, str]:
    """Digests of what is shared under some names."""
    return sharing.named_digests(self._environment, names)

  def _lasting(self, texts: Dict[str, str]) -> Dict[str, str]:
    return sharing.lasting(self._environment, texts, self.depends_on)
