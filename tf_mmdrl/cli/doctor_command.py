"""`mmdrl doctor`: what this machine has, lacks, and how fast it is."""

import argparse
import contextlib
import os
import time
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from tf_mmdrl.cli import output, quiet
from tf_mmdrl.core import errors, exit_codes
from tf_mmdrl.train import presets
from tf_mmdrl.train.config import Config

# Kind of network -> the preset that its speed is measured with.
_MEASURED = {"Nature": "atari", "small": "quickstart"}
_LATEST = 10.0  # seconds after which no other network is tested; each compiles


class Room(NamedTuple):
  """What a preset needs.

  Attributes:
    replay: bytes, or None if its environment does not work here.
    env_step: seconds of a step of all environments, if it was measured.
    problem: what its environment said, if it does not work.
  """

  replay: Optional[int] = None
  env_step: Optional[float] = None
  problem: str = ""


EXAMPLE = "mmdrl doctor --no-speed"
PAGE = "docs/training.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl doctor`."""
  parser.add_argument(
    "--no-speed",
    action="store_true",
    help=(
      "leave out the speed test, which takes up to 20 seconds on an idle"
      " machine"
    ),
  )


def run(args: argparse.Namespace) -> int:
  """Prints the report; BROKEN if something that all uses need does not work."""
  with quiet.loading():
    from tf_mmdrl.train import checkup, machine, trainer
  broken, advice = _machine(checkup, machine.surroundings())
  advice += _extras(checkup)
  # Nothing is played with data.
  names = [name for name in presets.PRESETS if name != presets.DATA]
  configs = {name: presets.get(name) for name in names}
  speeds: Dict[str, Any] = {}
  if not args.no_speed:
    trainer.configure_process(configs["atari"])
    speeds, failed = _speeds(configs)
    broken += failed
  rooms = _rooms(configs, with_speed=not args.no_speed)
  advice += _presets(checkup, configs, rooms, speeds)
  problems = {room.problem for room in rooms.values() if room.problem}
  # Packages of extras may be missing; ale-py and Gymnasium may not.
  broken += sorted(text for text in problems if "tf-mmdrl[" not in text)
  print()
  for text in broken:
    print(*output.wrapped(text, "broken: ", "  "), sep="\n")
  for text in dict.fromkeys(advice):
    print(*output.wrapped(text, "to do: ", "  "), sep="\n")
  if not broken and not advice:
    print("nothing is missing")
  return exit_codes.BROKEN if broken else exit_codes.OK


def _machine(
  checkup: Any, found: Dict[str, Any]
) -> Tuple[List[str], List[str]]:
  """Prints what this machine is; returns what is broken, and advice."""
  from tf_mmdrl.ops import convolution

  versions, described = dict(found["versions"]), found["machine"]
  gpu, advice = checkup.gpu()
  xla = checkup.xla_problem()
  memory = checkup.free_memory()
  onednn = "oneDNN" if convolution.has_onednn() else "TensorFlow's own kernels"
  rows = [
    ("tf-mmdrl", versions.pop("tf-mmdrl")),
    ("Python", f"{versions.pop('python')}, {described['system']}"),
    ("packages", ", ".join(" ".join(pair) for pair in versions.items())),
    (
      "CPU",
      f"{described['cpu'] or 'not known'}; cores: {described['cores'] or '?'},"
      f" CPUs: {described['cpus']}, threads of an operation:"
      f" {described['threads']}, load: {_load()}",
    ),
    ("GPU", gpu),
    ("XLA", f"fails: {xla}" if xla else "compiles"),
    ("convolutions", f"by {onednn} outside XLA"),
    (
      "free memory",
      "not known" if memory is None else output.gigabytes(memory),
    ),
    ("free disk", f"{output.gigabytes(checkup.free_disk())} in this directory"),
  ]
  print(*output.two_columns(rows), sep="\n")
  broken = [
    f"{name} is not installed; run pip install tf-mmdrl"
    for name, number in versions.items()
    if number == "not installed" and name not in checkup.EXTRAS
  ]
  if xla:
    broken.append(f"XLA does not compile here: {xla}; set system.xla=off")
  return broken, [advice] if advice else []


def _extras(checkup: Any) -> List[str]:
  """Prints the optional packages; returns advice about those missing."""
  rows, advice = [], []
  for name, extra in checkup.EXTRAS.items():
    state = "missing" if extra.missing else "installed"
    rows.append((f"extra {name}", f"{state:9}  for {extra.use}"))
    if extra.missing:
      advice.append(f"for {extra.use}, pip install 'tf-mmdrl[{name}]'")
  print()
  print(*output.two_columns(rows), sep="\n")
  return advice


def _rooms(configs: Dict[str, Config], *, with_speed: bool) -> Dict[str, Room]:
  """What each preset needs; alike environments are made once."""
  from tf_mmdrl.train import checkup, factories, speed

  rooms: Dict[str, Room] = {}
  known: Dict[Any, Room] = {}
  for name, config in configs.items():
    key = (config.environment, config.replay.capacity)
    if key not in known:
      try:
        with contextlib.closing(factories.environment(config)) as env:
          step = speed.environment(env, 0.3) if with_speed else None
          known[key] = Room(checkup.replay_bytes(config, env), step)
      except errors.UserError as error:  # also where it is played
        known[key] = Room(problem=str(error))
    rooms[name] = known[key]
  return rooms


def _speeds(configs: Dict[str, Config]) -> Tuple[Dict[str, Any], List[str]]:
  """Prints and returns the speed of each kind of network, and what fails."""
  from tf_mmdrl.train import checkup, speed

  print("\nspeed test; up to 20 seconds on an idle machine", flush=True)
  found: Dict[str, Any] = {}
  failed: List[str] = []
  begin = time.perf_counter()
  for kind, preset in _MEASURED.items():
    if found and time.perf_counter() - begin > _LATEST:
      print(f"{kind} network: not measured, the machine is too busy")
      continue
    try:
      found[kind] = speed.network(configs[preset], 2.0)
    except errors.UserError:
      continue  # the environment's, which the presets show
    except checkup.FAILURES as error:
      reason = (str(error).splitlines() or [type(error).__name__])[0]
      failed.append(f"a {kind} network does not train here: {reason}")
      print(f"{kind} network: not measured, it fails")
      continue
    played = configs[preset].environment.num_envs / found[kind].choice
    print(
      f"{kind} network (preset {preset}): update"
      f" {found[kind].update * 1e3:.1f} ms, playing {played:,.0f} steps/s",
      flush=True,
    )
  return found, failed


def _presets(
  checkup: Any,
  configs: Dict[str, Config],
  rooms: Dict[str, Room],
  speeds: Dict[str, Any],
) -> List[str]:
  """Prints what runs need; returns advice where there is too little."""
  advice = []
  rows = [("preset", "steps", "replay", "fits", "steps/s", "at least")]
  for name, config in configs.items():
    room, size, fits = rooms[name], "-", ""
    if room.replay is not None:
      size, lacking = (
        output.gigabytes(room.replay),
        _lacking(checkup, room.replay),
      )
      fits = "no" if lacking else "yes"
      if lacking:
        advice.append(
          f"preset {name} keeps {size} of replay, more than the free {lacking};"
          " make room, or set replay.capacity to fewer than"
          f" {config.replay.capacity:,} steps"
        )
    steps = f"{config.schedule.steps:,}"
    num_envs, rate = config.environment.num_envs, ""
    if room.env_step is not None:
      rate = f"{num_envs / room.env_step:,.0f}"
    estimate = _estimate(configs, config, room, speeds)
    rows.append((name, steps, size, fits, rate, estimate))
  print()
  for one in rows:
    shown = one if speeds else (*one[:4], "", "")
    print("{:12} {:>12} {:>9}  {:4} {:>9} {:>9}".format(*shown).rstrip())
  meaning = "replay: in memory, and on disk in checkpoints"
  if speeds:
    meaning += (
      "; steps/s: of its environments alone, by random actions; at least: the"
      " time of a run, without its evaluations"
    )
  print(*output.wrapped(meaning), sep="\n")
  return advice


def _lacking(checkup: Any, size: int) -> str:
  """Says which of memory and disk has no room for so many bytes."""
  free = {"memory": checkup.free_memory(), "disk": checkup.free_disk()}
  return " and ".join(
    name for name, room in free.items() if room is not None and room < size
  )


def _estimate(
  configs: Dict[str, Config], config: Config, room: Room, speeds: Dict[str, Any]
) -> str:
  """How long a run takes at least, or "" if that was not measured."""
  from tf_mmdrl.environments import family
  from tf_mmdrl.train import speed

  kind = "Nature" if family(config.environment.name) == "atari" else "small"
  if kind not in speeds or room.env_step is None:
    return ""
  measured = configs[_MEASURED[kind]]
  return output.duration(
    speed.run_seconds(
      config, speeds[kind], measured=measured, env_step=room.env_step
    )
  )


def _load() -> str:
  """How many processes wanted a CPU in the last minute."""
  return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "?"
