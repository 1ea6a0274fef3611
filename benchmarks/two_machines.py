"""Two machines on one: network, mounts and processes of their own. Needs root.

  python benchmarks/two_machines.py FOLDER [--cut 0,8,60] [--only 'NAME;NAME']

FOLDER is seen by both, and must not be below /tmp, which each has for itself.
A run with two threads tells what is wanted. Then the first machine starts a
cluster and learns, the second one joins it, each with room for one actor, and
the network between them is cut for some seconds in the middle of the run. The
fingerprint must be the same.
"""

import argparse
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time
from typing import Iterator, List, Optional

import attacked
import killed_actors

_NAMES = ("mmdrl-a", "mmdrl-b")
_HOSTS = ("10.77.0.1", "10.77.0.2")
_ALONE = "mount -t tmpfs none /tmp; mount -t tmpfs none /dev/shm; sleep 86400"


def _call(*words: str) -> None:
  subprocess.run(words, check=True, capture_output=True)


class Machine:
  """A network namespace, and in it mounts and processes of its own."""

  def __init__(self, index: int):
    """Makes it; the cable between both must be there."""
    self.name, self.host = _NAMES[index], _HOSTS[index]
    _call("ip", "link", "set", f"{self.name}-v", "netns", self.name)
    self.ip("addr", "add", f"{self.host}/24", "dev", f"{self.name}-v")
    self.ip("link", "set", "lo", "up")
    self.cable("up")
    unshare = ["unshare", "-mpf", "--mount-proc", "sh", "-c", _ALONE]
    self._holder = subprocess.Popen(
      ["ip", "netns", "exec", self.name, *unshare]
    )
    time.sleep(1)
    (self._first, *_) = killed_actors.descendants(self._holder.pid)

  def ip(self, *words: str) -> None:
    """Runs `ip` in it."""
    _call("ip", "-n", self.name, *words)

  def cable(self, state: str) -> None:
    """Plugs it in ("up"), or out ("down")."""
    self.ip("link", "set", f"{self.name}-v", state)

  def start(self, *words: str, log: Optional[pathlib.Path] = None):
    """Starts `mmdrl` in it."""
    enter = ["nsenter", "-t", str(self._first), "-n", "-m", "-p"]
    output = log.open("a") if log else None
    return subprocess.Popen(
      [*enter, sys.executable, "-m", "tf_mmdrl", *words],
      stdout=output,
      stderr=output,
      env={**os.environ, "RAY_AUTH_TOKEN_PATH": str(self.token)},
    )

  token = pathlib.Path()

  def run(self, *words: str) -> None:
    """Runs `mmdrl` in it to the end."""
    if code := self.start(*words).wait():
      raise RuntimeError(f"mmdrl {' '.join(words)} ended with {code}")

  def close(self) -> None:
    """Ends all that is in it."""
    for process in killed_actors.descendants(self._holder.pid)[:1]:
      os.kill(process, 9)  # the first of its processes: all others end with it
    self._holder.wait()


@contextlib.contextmanager
def machines(token: pathlib.Path) -> Iterator[List[Machine]]:
  """Two of them, and a cable; all is gone at the end."""
  made: List[Machine] = []
  Machine.token = token
  try:
    for name in _NAMES:
      _call("ip", "netns", "add", name)
    first, second = (f"{name}-v" for name in _NAMES)
    _call("ip", "link", "add", first, "type", "veth", "peer", "name", second)
    for index in range(2):
      made.append(Machine(index))
    yield made
  finally:
    for machine in made:
      machine.close()
    for name in _NAMES:
      subprocess.run(["ip", "netns", "del", name], capture_output=True)


def _words(name: str, path: pathlib.Path, steps: int) -> List[str]:
  settings = dict(killed_actors.CONFIGURATIONS[name], environment__num_envs=4)
  return attacked.train(path, **settings, schedule__steps=steps)


def compare(name: str, cut: float, steps: int, folder: pathlib.Path) -> bool:
  """Whether two machines, cut for some seconds, end as two threads do."""
  log = folder / "log"
  words = [*_words(name, folder / "threads", steps), "--set", "system.actors=2"]
  attacked.run(words, log)
  wanted = attacked.fingerprint(folder / "threads", log)
  with machines(folder / "token") as (first, second):
    first.run("cluster", "start", "--host", first.host, "--cpus", "1")
    address = f"{first.host}:6379"
    second.run("cluster", "join", address, "--cpus", "1")
    first.run("cluster", "status")
    words = [*_words(name, folder / "two", steps), "--cluster", address]
    start, said = time.monotonic(), folder / "said"
    process = first.start(*words, "--actors", "2", log=said)
    while process.poll() is None and attacked.newest(folder / "two") < 64:
      time.sleep(0.2)
    if cut:
      second.cable("down")
      time.sleep(cut)
      second.cable("up")
    code = process.wait()
    seconds = time.monotonic() - start
  same = attacked.fingerprint(folder / "two", log) == wanted != ""
  print(
    f"{name}, cut {cut:.0f} s: exit {code}, {seconds:.0f} s,"
    f" {'the same' if same else 'ANOTHER'} fingerprint",
    flush=True,
  )
  for line in said.read_text(errors="replace").splitlines():
    if line.startswith("mmdrl:"):
      print(f"  {line}")
  return same


def main():
  """Prints a line for each; 1 if a fingerprint is another."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("folder", type=pathlib.Path)
  parser.add_argument("--cut", default="0,8,60")
  parser.add_argument("--only", default=";".join(killed_actors.CONFIGURATIONS))
  parser.add_argument("--steps", type=int, default=1600)
  args = parser.parse_args()
  good = True
  for name in args.only.split(";"):
    for cut in map(float, args.cut.split(",")):
      folder = args.folder.resolve() / "two_machines"
      shutil.rmtree(folder, ignore_errors=True)
      folder.mkdir(parents=True)
      good = compare(name, cut, args.steps, folder) and good
  return int(not good)


if __name__ == "__main__":
  sys.exit(main())
