"""Two machines on one: network, mounts and processes of their own. Needs root.

  python benchmarks/two_machines.py FOLDER [--cut 0,8,60] [--only 'NAME;NAME']
  python benchmarks/two_machines.py FOLDER --sweep [--collect]

FOLDER and this project are seen by both; each has a /tmp of its own otherwise.
A run with two threads tells what is wanted. Then the first machine starts a
cluster and learns, the second one joins it, each with room for one actor, and
the second one's cable is pulled for some seconds in the middle of the run. If
that is long enough for it to be declared dead, a third machine has joined
before, which takes its actor over. The fingerprint must be the same.

With --sweep four runs with each of two seeds are trained on one machine, then
on two, of which the second one is killed in the middle. The tables must be the
same.
"""

import argparse
import contextlib
import csv
import os
import pathlib
import shutil
import subprocess
import sys
import time
from typing import Callable, Iterator, List, Optional

import attacked
import killed_actors
import processes

# Others may run this at the same time.
_NAMES = [f"mm{os.getpid()}-{letter}" for letter in "abc"]
# The first one has a cable to each other one, and passes on what is for them.
_FIRST = "10.77.0.1"
_HOSTS = (_FIRST, "10.77.1.2", "10.77.2.2")
_DEAD = 30  # seconds out of reach after which Ray gives a machine up
_PROJECT = pathlib.Path(__file__).resolve().parent.parent
# Its arguments are seen as before, also if they are below /tmp.
_ALONE = """
set -e
mount -t tmpfs none /mnt
for kept in "$@"; do
  mkdir -p "/mnt$kept" && mount --bind "$kept" "/mnt$kept"
done
mount -t tmpfs none /tmp
mount -t tmpfs none /dev/shm
for kept in "$@"; do
  mkdir -p "$kept" && mount --bind "/mnt$kept" "$kept"
done
touch /dev/shm/ready
sleep 86400
"""


def _call(*words: str) -> None:
  subprocess.run(words, check=True, capture_output=True)


class Machine:
  """A network namespace, and in it mounts and processes of its own."""

  def __init__(self, index: int):
    """Makes it, and a cable between it and the first one."""
    self.name, self.host = _NAMES[index], _HOSTS[index]
    _call("ip", "netns", "add", self.name)
    self.ip("link", "set", "lo", "up")
    if index:
      self._lay_cable(index)
    else:
      self.ip("addr", "add", f"{_FIRST}/32", "dev", "lo")
      forward = "echo 1 > /proc/sys/net/ipv4/ip_forward"
      _call("ip", "netns", "exec", self.name, "sh", "-c", forward)
    unshare = ["unshare", "-mpf", "--mount-proc", "sh", "-c", _ALONE, "alone"]
    kept = [str(_PROJECT), str(self.folder)]
    self._holder = subprocess.Popen(
      ["ip", "netns", "exec", self.name, *unshare, *kept],
      stderr=subprocess.DEVNULL,
    )
    self._first = self._wait_until_ready()

  def _lay_cable(self, index: int) -> None:
    mine, other = f"{self.name}-v", f"{self.name}-p"
    _call("ip", "link", "add", mine, "type", "veth", "peer", "name", other)
    _call("ip", "link", "set", mine, "netns", self.name)
    _call("ip", "link", "set", other, "netns", _NAMES[0])
    passes = f"10.77.{index}.1"
    _call("ip", "-n", _NAMES[0], "addr", "add", f"{passes}/24", "dev", other)
    _call("ip", "-n", _NAMES[0], "link", "set", other, "up")
    self.ip("addr", "add", f"{self.host}/24", "dev", mine)
    self._passes = passes
    self.cable("up")

  def _wait_until_ready(self) -> int:
    """Its first process, once it has all that is its own."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and self._holder.poll() is None:
      for process in processes.descendants(self._holder.pid)[:1]:
        if pathlib.Path(f"/proc/{process}/root/dev/shm/ready").exists():
          return process
      time.sleep(0.1)
    raise RuntimeError(f"the machine {self.name} did not start")

  def ip(self, *words: str) -> None:
    """Runs `ip` in it."""
    _call("ip", "-n", self.name, *words)

  def cable(self, state: str) -> None:
    """Plugs it in ("up"), or out ("down")."""
    self.ip("link", "set", f"{self.name}-v", state)
    if state == "up":  # pulling it out has removed this
      self.ip("route", "replace", "default", "via", self._passes)

  def start(self, *words: str, log: Optional[pathlib.Path] = None):
    """Starts `mmdrl` in it."""
    enter = ["nsenter", "-t", str(self._first), "-n", "-m", "-p"]
    output = log.open("a") if log else None
    return subprocess.Popen(
      [*enter, sys.executable, "-m", "tf_mmdrl", *words],
      stdout=output,
      stderr=output,
      env={
        **os.environ,
        "PYTHONPATH": str(_PROJECT),
        "RAY_AUTH_TOKEN_PATH": str(self.folder / "token"),
      },
    )

  folder = pathlib.Path()  # that all see, with the token

  @property
  def holder(self) -> int:
    """The process that all others in it descend from."""
    return self._holder.pid

  def run(self, *words: str) -> None:
    """Runs `mmdrl` in it to the end."""
    if code := self.start(*words).wait():
      raise RuntimeError(f"mmdrl {' '.join(words)} ended with {code}")

  def close(self) -> None:
    """Ends all that is in it, as a power cut would."""
    for process in processes.descendants(self._holder.pid)[:1]:
      os.kill(process, 9)  # the first of its processes: all others end with it
    self._holder.wait()


@contextlib.contextmanager
def machines(folder: pathlib.Path, number: int) -> Iterator[List[Machine]]:
  """Some of them, and their cables; all is gone at the end."""
  made: List[Machine] = []
  Machine.folder = folder
  try:
    for index in range(number):
      made.append(Machine(index))
    yield made
  finally:
    for machine in made:
      machine.close()
    for name in _NAMES:
      subprocess.run(["ip", "netns", "del", name], capture_output=True)


def words(name: str, path: pathlib.Path, steps: int) -> List[str]:
  """What follows `mmdrl`: a run of a configuration."""
  settings = dict(killed_actors.CONFIGURATIONS[name], environment__num_envs=4)
  return attacked.train(path, **settings, schedule__steps=steps)


def compare(
  name: str,
  cut: float,
  steps: int,
  folder: pathlib.Path,
  look: Callable[[List[Machine]], None] = lambda machines: None,
) -> bool:
  """Whether two machines, cut for some seconds, end as two threads do.

  Args:
    name: of the configuration.
    cut: seconds.
    steps: of the run.
    folder: for all files, empty.
    look: called with the machines in the midst of the run.
  """
  log = folder / "log"
  here = [*words(name, folder / "threads", steps), "--set", "system.actors=2"]
  _run_whole(here, log)
  wanted = attacked.wanted_fingerprint(folder / "threads", log)
  long = cut > _DEAD
  with machines(folder, 3 if long else 2) as (first, second, *more):
    first.run("cluster", "start", "--host", first.host, "--cpus", "1")
    address = f"{first.host}:6379"
    second.run("cluster", "join", address, "--cpus", "1")
    first.run("cluster", "status")
    there = [*words(name, folder / "two", steps), "--cluster", address]
    start, said = time.monotonic(), folder / "said"
    process = first.start(*there, "--actors", "2", log=said)
    while process.poll() is None and attacked.newest(folder / "two") < 64:
      time.sleep(0.2)
    look([first, second])
    for third in more:
      third.run("cluster", "join", address, "--cpus", "1")
    if cut and process.poll() is None:
      second.cable("down")
      time.sleep(cut)
      second.cable("up")
    code = process.wait()
    seconds = time.monotonic() - start
    first.run("cluster", "status")
  same = attacked.fingerprint(folder / "two", log) == wanted
  print(
    f"{name}, cut {cut:.0f} s: exit {code}, {seconds:.0f} s,"
    f" {'the same' if same else 'ANOTHER'} fingerprint",
    flush=True,
  )
  for line in said.read_text(errors="replace").splitlines():
    if line.startswith("mmdrl:"):
      print(f"  {line}")
  return same and code == 0


def _run_whole(words: List[str], log: pathlib.Path) -> None:
  """Runs `mmdrl` without an attack; what others are compared with."""
  done = attacked.run(words, log)
  if done.code != 0:
    last = (done.errors or done.shown).strip().splitlines()[-1:]
    raise RuntimeError(
      f"mmdrl {' '.join(words)} ended with {done.code}: {' '.join(last)}"
    )


def sweep_words(folder: pathlib.Path, seeds: int, steps: int) -> List[str]:
  """What follows `mmdrl`: four runs with each seed."""
  plan = ["sweep", "--run-dir", str(folder)]
  plan += ["--seeds", ",".join(map(str, range(seeds)))]
  plan += ["--envs", "CartPole-v1,Acrobot-v1", "--agents", "dqn,qrdqn"]
  run = attacked.train(pathlib.Path("unused"), schedule__steps=steps)
  settings = run[run.index("--set") :]
  # DQN learns a mean, and has no particles.
  of_all = "network.num_particles="
  return [
    *plan,
    *(w.replace(of_all, f"qrdqn:{of_all}") for w in settings),
  ]


def _table(folder: pathlib.Path) -> List[List[str]]:
  """The rows of a sweep without how long they took."""
  path = folder / "sweep.csv"
  if not path.exists():
    return []
  with path.open(newline="") as file:
    rows = list(csv.DictReader(file))
  return sorted([v for n, v in row.items() if n != "minutes"] for row in rows)


def sweep(folder: pathlib.Path, collect: bool, seeds: int, steps: int) -> bool:
  """Whether four runs with each seed, of which some lose their machine, end
  with the table of one machine."""
  alone, two, said = folder / "alone", folder / "two", folder / "said"
  _run_whole([*sweep_words(alone, seeds, steps), "--jobs", "2"], folder / "log")
  wanted = _table(alone)
  with machines(folder, 2) as (first, second):
    first.run("cluster", "start", "--host", first.host, "--cpus", "1")
    address = f"{first.host}:6379"
    second.run("cluster", "join", address, "--cpus", "2")
    there = [*sweep_words(two, seeds, steps), "--cluster", address]
    start = time.monotonic()
    process = first.start(*there, *["--collect"] * collect, log=said)
    while process.poll() is None and len(_table(two)) < 2:
      time.sleep(0.2)
    in_the_middle = process.poll() is None
    second.close()
    killed = time.monotonic() - start
    code = process.wait()
    seconds = time.monotonic() - start
  same = _table(two) == wanted
  print(
    f"sweep{' --collect' * collect}, the second machine killed after"
    f" {killed:.0f} s: exit {code}, {seconds:.0f} s, {len(_table(two))} runs,"
    f" {'the same' if same else 'ANOTHER'} table"
  )
  print(said.read_text(errors="replace"))
  whole = len(wanted) == 4 * seeds
  return same and whole and in_the_middle and code == 0


def main():
  """Prints a line for each; 1 if one did not end as it should."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("folder", type=pathlib.Path)
  parser.add_argument("--cut", default="0,8,60")
  parser.add_argument("--only", default=";".join(killed_actors.CONFIGURATIONS))
  parser.add_argument("--steps", type=int, default=1600)
  parser.add_argument("--sweep", action="store_true")
  parser.add_argument("--seeds", type=int, default=2, help="of the sweep")
  parser.add_argument("--collect", action="store_true")
  args = parser.parse_args()
  good = True
  if args.sweep:
    folder = args.folder.resolve() / "two_sweeps"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return int(not sweep(folder, args.collect, args.seeds, args.steps))
  for name in args.only.split(";"):
    for cut in map(float, args.cut.split(",")):
      folder = args.folder.resolve() / "two_machines"
      shutil.rmtree(folder, ignore_errors=True)
      folder.mkdir(parents=True)
      good = compare(name, cut, args.steps, folder) and good
  return int(not good)


if __name__ == "__main__":
  sys.exit(main())
