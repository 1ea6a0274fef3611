"""Runs on a disk that is full from a given write on, then has room again.

The disk is a small one in memory, which only the superuser can mount. A run, or
a report, is watched to learn what it writes; then it is begun anew and the disk
filled at one of these writes. It must say so in a line, leave nothing half
written, and with room again end as if nothing had been.
"""

import contextlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
from typing import Callable, Dict, Iterator, List, Tuple

import attacked
import damaged_runs
from pieces import Found, Known
from served import Row

_SIZE = "64m"
_REPORTS = 5  # every so manieth point is one of a report
_FILLER = "filler"


@contextlib.contextmanager
def small_disk() -> Iterator[pathlib.Path]:
  """A disk of its own."""
  with tempfile.TemporaryDirectory() as folder:
    command = ["mount", "-t", "tmpfs", "-o", f"size={_SIZE}", "none", folder]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
      raise RuntimeError(
        f"a small disk cannot be mounted ({done.stderr.strip()}); run this as"
        " root, or leave the part out with --only"
      )
    try:
      yield pathlib.Path(folder)
    finally:
      subprocess.run(["umount", "-l", folder], check=True)


def fill(disk: pathlib.Path) -> None:
  """Writes until not a byte is left."""
  with (disk / _FILLER).open("ab", buffering=0) as file:
    for size in (2**20, 2**12, 1):
      with contextlib.suppress(OSError):
        while file.write(bytes(size)):
          pass


def on_write(place: pathlib.Path, act: Callable[[str], None]) -> None:
  """Calls `act` with a file's name before each write below a place."""
  inside = [False]

  def hook(event: str, args: Tuple) -> None:
    writes = event in ("os.mkdir", "os.rename")
    if event == "open" and isinstance(args[2], int):
      writes = bool(args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    if not writes or inside[0]:
      return
    path = str(args[0])
    if path.startswith(str(place)):
      inside[0] = True
      try:
        act(os.path.relpath(path, place))
      finally:
        inside[0] = False

  sys.addaudithook(hook)


class _Written:
  """A command that writes to a place on a disk."""

  def __init__(
    self, disk: pathlib.Path, log: pathlib.Path, place: str, words: List[str]
  ):
    self.place = disk / place
    self.words = words
    self._disk, self._log = disk, log

  def writes(self) -> List[str]:
    """What it writes first, for each kind of file; the place is new."""
    listed = self._log.with_suffix(".writes")

    def note(name: str) -> None:
      with listed.open("a") as file:
        file.write(json.dumps(name) + "\n")

    listed.unlink(missing_ok=True)
    done = attacked.run(
      self.words, self._log, prepare=lambda: on_write(self.place, note)
    )
    if done.code != 0:
      raise RuntimeError(f"a command failed without an attack: {done}")
    names = map(json.loads, listed.read_text().splitlines())
    kinds: Dict[str, str] = {}
    for name in names:
      kinds.setdefault(_kind(name), name)
    return list(kinds.values())

  def with_full_disk(self, at: str) -> attacked.Outcome:
    """Runs it; the disk is full from the write of that name on."""

    def fill_there(name: str) -> None:
      if _kind(name) == _kind(at):
        fill(self._disk)

    return attacked.run(
      self.words, self._log, prepare=lambda: on_write(self.place, fill_there)
    )

  def with_room(self) -> attacked.Outcome:
    (self._disk / _FILLER).unlink(missing_ok=True)
    return attacked.run(self.words, self._log)

  def half_written(self) -> List[str]:
    """What is left that has no place in a run or a report."""
    return [
      str(path)
      for path in self.place.rglob("*")
      if path.name.startswith((".tmp", ".gone")) or path.suffix == ".tmp"
    ]


def _kind(name: str) -> str:
  """A file's name without steps, digests and numbers of processes."""
  return re.sub(r"[0-9a-f]{12}|\d+", "", name)


def _attack_run(run: _Written, at: str, wanted: str, log: pathlib.Path):
  """Returns lost, silent, tracebacks."""
  shutil.rmtree(run.place, ignore_errors=True)
  done = run.with_full_disk(at)
  silent = not done.refused and not (done.code == 0 and done.said)
  left = run.half_written()
  after = run.with_room()
  lost = after.code != 0 or attacked.fingerprint(run.place, log) != wanted
  lost = lost or bool(left)
  tracebacks = done.traceback + after.traceback
  if lost or silent or tracebacks:
    attacked.complain(f"full from {at} on, left {left}", done)
    attacked.complain("with room again", after)
  return int(lost), int(silent), tracebacks


def _attack_report(report: _Written, at: str):
  """Returns lost, silent, tracebacks; the report that was there must stay."""
  before = damaged_runs.digests(report.place)
  done = report.with_full_disk(at)
  lost = damaged_runs.digests(report.place) != before
  after = report.with_room()
  lost = lost or after.code != 0
  silent = not done.refused
  tracebacks = done.traceback + after.traceback
  if lost or silent or tracebacks:
    attacked.complain(f"full from {at} of a report on, lost: {lost}", done)
  return int(lost), int(silent), tracebacks


def _attack_new(command: _Written, at: str):
  """Returns lost, silent, tracebacks; of what was new nothing may be left."""
  shutil.rmtree(command.place, ignore_errors=True)
  done = command.with_full_disk(at)
  left = command.place.exists()
  after = command.with_room()
  lost = left or after.code != 0
  silent = not done.refused
  tracebacks = done.traceback + after.traceback
  if lost or silent or tracebacks:
    attacked.complain(f"full from {at} on, left: {left}", done)
    attacked.complain("with room again", after)
  return int(lost), int(silent), tracebacks


def _others(run: pathlib.Path, new: pathlib.Path) -> Dict[str, List[str]]:
  """Commands that write to a folder which they make, or are given empty."""
  return {
    "record": ["record", str(run), "-o", str(new / "data"), "--episodes", "4"],
    "export": ["export", str(run), "-o", str(new)],
    "report": ["report", str(run), "-o", str(new)],
  }


def _attack_video(disk: pathlib.Path, run: pathlib.Path, suffix: str, log):
  """As `_attack_new`; the disk is full before the command begins."""
  path = disk / f"game{suffix}"
  words = ["watch", str(run), "-o", str(path), "--max-steps", "4"]
  fill(disk)
  done = attacked.run(words, log)
  left = path.exists() or any(disk.glob("*.tmp"))
  (disk / _FILLER).unlink()
  after = attacked.run(words, log)
  lost = left or after.code != 0
  silent = not done.refused
  tracebacks = done.traceback + after.traceback
  if lost or silent or tracebacks:
    attacked.complain(f"a video, left: {left}", done)
    attacked.complain("with room again", after)
  path.unlink(missing_ok=True)
  return int(lost), int(silent), tracebacks


def attack(number: int, known: Known) -> Found:
  """Fills the disk at that many writes, a fifth of them of reports.

  Then at a fifth as many of each other command that writes, and for videos.
  """
  with small_disk() as disk, tempfile.TemporaryDirectory() as folder:
    log = pathlib.Path(folder, "log")
    words = attacked.train(
      disk / "run", env="CartPole-v1", replay__prioritized=True
    )
    run = _Written(disk, log, "run", words)
    words = ["report", str(run.place), "-o", str(disk / "report")]
    report = _Written(disk, log, "report", words)
    run_writes = run.writes()
    wanted = attacked.wanted_fingerprint(run.place, log)
    reports = max(1, number // _REPORTS)
    more = number + 3 * reports + 2
    for at in damaged_runs.spread(report.writes(), reports):
      if (key := f"report/{at}") not in known:
        yield key, _attack_report(report, at)
        attacked.progress("full disk", len(known) - 1, more, key)
    for at in damaged_runs.spread(run_writes, number - reports):
      if at not in known:
        yield at, _attack_run(run, at, wanted, log)
        attacked.progress("full disk", len(known) - 1, more, at)
    new = disk / "new"
    for name, words in _others(run.place, new).items():
      done = [key for key in known if key.startswith(f"{name}: ")]
      if len(done) == reports:
        continue
      other = _Written(disk, log, "new", words)
      shutil.rmtree(new, ignore_errors=True)
      for at in damaged_runs.spread(other.writes(), reports):
        if (key := f"{name}: {at}") not in known:
          yield key, _attack_new(other, at)
          attacked.progress("full disk", len(known) - 1, more, key)
    for suffix in (".gif", ".mp4"):
      if (key := f"watch: {suffix}") not in known:
        yield key, _attack_video(disk, run.place, suffix, log)
        attacked.progress("full disk", len(known) - 1, more, key)


def row(known: Known) -> Row:
  """The table's line of all points at which disks were full."""
  lost, silent, tracebacks = map(sum, zip(*known.values()))
  note = "\n  ".join(["full from these writes on:", *known])
  what = "disks that are full"
  return Row(what, len(known), lost, silent, tracebacks, note)
