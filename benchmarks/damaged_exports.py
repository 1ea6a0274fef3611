"""Damages every file of an export in every way, and looks who notices."""

import contextlib
import io
import json
import pathlib
import shutil
import tempfile
import time
from typing import Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from served import Row, Served, serving

from tf_mmdrl.cli import main as cli

_MANIFEST = "manifest.json"
_LINK = "replaced by a link"


def _change(place: float) -> Callable[[pathlib.Path], None]:
  def change(file: pathlib.Path) -> None:
    content = bytearray(file.read_bytes())
    content[int(place * (len(content) - 1))] ^= 1 << int(70 * place) % 8
    file.write_bytes(content)

  return change


def _cut(file: pathlib.Path) -> None:
  content = file.read_bytes()
  file.write_bytes(content[: len(content) // 2])


def _empty(file: pathlib.Path) -> None:
  file.write_bytes(b"")


def _link(file: pathlib.Path) -> None:
  """To the very same content, under a name that is no version's."""
  target = file.parents[2] / f".linked-{file.parents[1].name}-{file.name}"
  shutil.move(file, target)
  file.symlink_to(target)


DAMAGES: Dict[str, Callable[[pathlib.Path], None]] = {
  "truncated": _cut,
  "emptied": _empty,
  "a bit flipped near the start": _change(0.01),
  "a bit flipped": _change(0.47),
  "a bit flipped near the end": _change(0.99),
  "removed": pathlib.Path.unlink,
  _LINK: _link,
}


class Damaged(NamedTuple):
  """A version with one damaged file.

  Attributes:
    path: where it was made.
    what: was done to it.
    told_only: whether to say that it cannot be checked is all one can do.
  """

  path: pathlib.Path
  what: str
  told_only: bool


def damaged(
  good: pathlib.Path, folder: pathlib.Path, *, old: bool
) -> Iterator[Damaged]:
  """Copies of a version, each with another damage.

  Args:
    good: the version.
    folder: to make them in.
    old: whether to make them as exports were before there were manifests.

  Yields:
    Each of them.
  """
  for file in sorted(good.rglob("*")):
    name = file.relative_to(good)
    if not file.is_file() or (old and name.name == _MANIFEST):
      continue
    for what, damage in DAMAGES.items():
      path = shutil.copytree(good, folder / f"{name.name}-{what}")
      if old:
        _forget_the_manifest(path)
      damage(path / name)
      # Without checksums only a link, or what TensorFlow cannot read, shows.
      yield Damaged(path, f"{name}: {what}", old and what != _LINK)


def _forget_the_manifest(path: pathlib.Path) -> None:
  (path / _MANIFEST).unlink()
  metadata = path / "assets" / "metadata.json"
  content = json.loads(metadata.read_text())
  del content["format"]
  metadata.write_text(json.dumps(content))


def _until(
  server: Served,
  condition: Callable[[Dict[int, Tuple[str, str]]], bool],
  seconds: float = 20.0,
) -> Dict[int, Tuple[str, str]]:
  """The states of the versions as soon as they are as wanted, or at the end."""
  end = time.monotonic() + seconds
  states: Dict[int, Tuple[str, str]] = {}
  while time.monotonic() < end and server.alive():
    states = server.states()
    if condition(states):
      break
    time.sleep(0.02)
  return states


def while_it_runs(
  server: Served, directory: pathlib.Path, good: bytes
) -> List[Row]:
  """Each damaged version appears as the newest, and goes again.

  Args:
    server: of the directory.
    directory: of the versions; 1 is whole.
    good: a request.

  Returns:
    A row of versions with manifests, and one of versions without.
  """
  return [_appearing(server, directory, good, old=old) for old in (False, True)]


def _appearing(
  server: Served, directory: pathlib.Path, good: bytes, *, old: bool
) -> Row:
  wanted = server.raw(good)
  tried = lost = silent = unchecked = 0
  with tempfile.TemporaryDirectory(dir=directory.parent) as folder:
    made = damaged(directory / "1", pathlib.Path(folder), old=old)
    for number, version in enumerate(made, 2 + 1000 * old):
      version.path.rename(directory / str(number))
      states = _until(server, lambda states, n=number: n in states)
      state = states.get(number)
      loaded = state is not None and state[0] == "AVAILABLE"
      if loaded and version.told_only and _told(server, number):
        unchecked += 1
      elif not _refused(state):
        silent += 1
        print(f"silent: {version.what}: {state}")
      answer = server.raw(good)
      # One that could not be checked may answer otherwise, or not be able to.
      lost += answer.status != 200 if loaded else answer != wanted
      tried += 1
      shutil.rmtree(directory / str(number))
      lost += set(_until(server, lambda states: set(states) == {1})) != {1}
  note = f"{unchecked} loaded, each with a line that it cannot be checked"
  return Row(
    "the same without a manifest" if old else "damaged exports appear",
    tried,
    lost,
    silent,
    server.tracebacks(),
    note if old else "",
  )


def _told(server: Served, number: int) -> bool:
  return f"version {number} has no manifest" in server.log.read_text()


def _refused(state: Optional[Tuple[str, str]]) -> bool:
  """Whether a version is in the status, does not answer, and why."""
  return state is not None and state[0] == "END" and bool(state[1])


def at_its_start(directory: pathlib.Path, good: bytes) -> Row:
  """All damaged versions are there, and one good one that is older."""
  with tempfile.TemporaryDirectory(dir=directory.parent) as folder:
    place = pathlib.Path(folder, "policies")
    shutil.copytree(directory / "1", place / "1")
    number = 1
    made = damaged(directory / "1", pathlib.Path(folder), old=False)
    for number, version in enumerate(made, 2):
      version.path.rename(place / str(number))
    with serving(place) as server:
      states = server.states()
      answered = server.raw(good).status == 200
      return Row(
        "damaged exports at the server's start",
        number - 1,
        (not answered) + (states.pop(1, None) != ("AVAILABLE", "")),
        number - 1 - sum(map(_refused, states.values())),
        server.tracebacks(),
      )


def played(directory: pathlib.Path) -> Row:
  """`mmdrl play` with each damaged version: one line, and the code 2."""
  tried = silent = tracebacks = 0
  with tempfile.TemporaryDirectory(dir=directory.parent) as folder:
    place = pathlib.Path(folder, "policies")
    for version in damaged(directory / "1", pathlib.Path(folder), old=False):
      place.mkdir()
      version.path.rename(place / "1")
      said = io.StringIO()
      with contextlib.redirect_stderr(said):
        code = cli.main(["play", str(place)])
      silent += code != 2 or said.getvalue().count("\n") != 1
      tracebacks += "Traceback" in said.getvalue()
      tried += 1
      shutil.rmtree(place)
  return Row("damaged exports, mmdrl play", tried, 0, silent, tracebacks)
