"""Damages every kind of file of a run, and looks which command notices."""

import hashlib
import pathlib
import re
import shutil
import tempfile
from typing import Any, Dict, Iterator, List, Sequence, Tuple

import attacked
from attacked import Outcome
from damaged_exports import DAMAGES
from pieces import Found, Known
from served import Row

# Links are for exports, which are fetched from elsewhere.
_WAYS = ("truncated", "emptied", "a bit flipped", "removed")
_PER_RUN = {"lock", ".lock"}  # who writes; they hold nothing


def kinds(run: pathlib.Path) -> List[pathlib.Path]:
  """The files to damage, without all but the first and last of many alike."""
  alike: Dict[Tuple[pathlib.Path, str], List[pathlib.Path]] = {}
  for file in sorted(run.rglob("*")):
    if file.is_file():
      name = file.relative_to(run)
      # Of replay/steps-000000000016-26e5e4ac71ec.arrays its first word.
      kind = re.sub(r"-\d{12}-[0-9a-f]{12}|\d{5,}.*\.v2$", "", name.name)
      alike.setdefault((name.parent, kind), []).append(name)
  return [
    name for names in alike.values() for name in sorted({names[0], names[-1]})
  ]


def verdict(command: str, done: Outcome, whole: Outcome) -> str:
  """What a command made of a damage.

  Args:
    command: its name.
    done: how it ended with the damage.
    whole: how it ended without.

  Returns:
    "traceback", "said", "same" if it did all that it does without the damage,
    or "silent".
  """
  if done.traceback:
    return "traceback"
  if done.refused:
    return "said"
  if done.code != 0:
    return "silent"
  if set(done.said) - set(whole.said):
    return "said"
  if done.shown == whole.shown:
    return "same"
  # `inspect` lists what is wrong with each checkpoint.
  listed = re.search(r"^checkpoint \d+: (?!whole$)", done.shown, re.MULTILINE)
  return "said" if command == "inspect" and listed else "silent"


class _Place:
  """A run that is copied to the same place for each damage."""

  def __init__(self, folder: pathlib.Path):
    self.good = folder / "good"
    self.run = folder / "run"
    self.report = folder / "report"
    self._folder = folder
    # Little is to be played again from the checkpoint before the newest.
    self._train = attacked.train(
      self.run,
      env="CartPole-v1",
      replay__prioritized=True,
      system__checkpoint_period=attacked.STEPS - 16,
    )
    done = attacked.run(self._train, folder / "train")
    if done.code != 0:
      raise RuntimeError(f"the run to damage failed: {done}")
    shutil.copytree(self.run, self.good)
    self.newest = str(attacked.newest(self.run))
    self._known: Dict[str, Dict[str, Outcome]] = {}
    self.files = digests(self.good)
    self.fingerprint = attacked.wanted_fingerprint(self.run, folder / "wanted")

  def renew(self) -> None:
    """Puts the whole run where commands look for it."""
    for path in (self.run, self.report):
      shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(self.good, self.run)

  def fingerprint_now(self) -> str:
    return attacked.fingerprint(self.run, self._folder / "fingerprint")

  def commands(self, version: str) -> Dict[str, Outcome]:
    """What each command does; those that only read are run side by side."""
    words = {
      "inspect": ["inspect", str(self.run), "--all"],
      "report": ["report", str(self.run), "-o", str(self.report)],
      "evaluate": ["evaluate", str(self.run), "--version", version],
    }
    reading = {
      name: attacked.Command(line, self._folder / name)
      for name, line in words.items()
    }
    found = {name: command.end() for name, command in reading.items()}
    found["report"] = self._with_tables(found["report"])
    found["train"] = attacked.run(self._train, self._folder / "train")
    return found

  def whole(self, version: str) -> Dict[str, Outcome]:
    """What each does without a damage."""
    if version not in self._known:
      self.renew()
      self._known[version] = self.commands(version)
    return self._known[version]

  def _with_tables(self, done: Outcome) -> Outcome:
    tables = sorted(self.report.rglob("*.csv"))
    texts = [table.read_text() for table in tables]
    return done._replace(shown=done.shown + "".join(texts))


def digests(path: pathlib.Path) -> Dict[str, str]:
  """Of every file of a run, but those that say who writes."""
  return {
    str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest()
    for file in sorted(path.rglob("*"))
    if file.is_file() and file.name not in _PER_RUN
  }


def _lost(place: _Place, damaged: pathlib.Path, done: Outcome) -> bool:
  """Whether `train` ended otherwise, or spoilt what it refused to go on with.

  A refused run is whole again as soon as the file is put back: nothing else of
  it may have changed.
  """
  if done.code == 0:
    return place.fingerprint_now() != place.fingerprint
  left = digests(place.run)
  return any(
    left.get(name) != digest
    for name, digest in place.files.items()
    if name != str(damaged)
  )


def _damages(place: _Place) -> Iterator[Tuple[pathlib.Path, str]]:
  for name in kinds(place.good):
    empty = not (place.good / name).stat().st_size
    for way in _WAYS:
      if not empty or way == "removed":
        yield name, way


def spread(items: Sequence[Any], number: int) -> List[Any]:
  """That many of them, evenly; all, if they are fewer."""
  step = max(1.0, len(items) / number)
  return [items[int(i * step)] for i in range(min(number, len(items)))]


def attack(number: int, known: Known) -> Found:
  """Does that many damages, evenly of all that there are, or all."""
  with tempfile.TemporaryDirectory() as folder:
    place = _Place(pathlib.Path(folder))
    damages = list(_damages(place))
    for index, (name, way) in enumerate(wanted := spread(damages, number)):
      key = f"{name} {way}"
      if key not in known:
        yield key, _attack(place, name, way)
        said = known[key]["verdicts"]
        attacked.progress("damage", index, len(wanted), f"{key} {said}")


def _attack(place: _Place, name: pathlib.Path, way: str) -> Dict[str, Any]:
  """What came of one damage."""
  in_export = name.parts[0] == "export" and len(name.parts) > 2
  version = name.parts[1] if in_export else place.newest
  whole = place.whole(version)
  place.renew()
  DAMAGES[way](place.run / name)
  found = place.commands(version)
  verdicts = {c: verdict(c, found[c], whole[c]) for c in found}
  lost = _lost(place, name, found["train"])
  if lost or {"silent", "traceback"} & set(verdicts.values()):
    attacked.complain(f"{name} {way}: {verdicts}, lost: {lost}")
    for command, done in found.items():
      attacked.complain(command, done)
  return {"file": str(name), "verdicts": list(verdicts.values()), "lost": lost}


def row(known: Known) -> Row:
  """The table's line of all damages."""
  counts = [result["verdicts"] for result in known.values()]
  said = sum("said" in verdicts for verdicts in counts)
  files = {result["file"] for result in known.values()}
  return Row(
    f"damages of {len(files)} files of a run",
    len(counts),
    sum(result["lost"] for result in known.values()),
    sum("silent" in verdicts for verdicts in counts),
    sum(verdicts.count("traceback") for verdicts in counts),
    f"{said} said by a command that needs the file, {len(counts) - said} in"
    " files that none needs",
  )
