"""What a machine has and lacks for training."""

import os
import pathlib
import shutil
from typing import (
  Any,
  Dict,
  Iterator,
  List,
  Mapping,
  NamedTuple,
  Optional,
  Tuple,
)

import tensorflow as tf
from tf_agents.specs import tensor_spec
from tf_agents.trajectories import policy_step, trajectory

from tf_mmdrl.core import optional
from tf_mmdrl.environments import Environment
from tf_mmdrl.train import factories
from tf_mmdrl.train.config import Config

_MEMINFO = pathlib.Path("/proc/meminfo")
_GROUP = pathlib.Path("/proc/self/cgroup")
_GROUPS = pathlib.Path("/sys/fs/cgroup")
_DRIVER = pathlib.Path("/proc/driver/nvidia/version")
# What an update raises where there is too little memory, or no kernel.
FAILURES = (tf.errors.OpError, MemoryError, NotImplementedError)
_LENGTH = 1920  # steps of each environment that the measure of replay is from


class Extra(NamedTuple):
  """Packages that some uses need.

  Attributes:
    use: what they are for.
    modules: what is imported of them.
  """

  use: str
  modules: Tuple[str, ...]

  @property
  def missing(self) -> List[str]:
    """The modules that are not installed."""
    return [name for name in self.modules if not optional.is_there(name)]


# The extras of setup.py that users choose among.
EXTRAS: Dict[str, Extra] = {
  "minatar": Extra("MinAtar's games, as in preset quickstart", ("minatar",)),
  "box2d": Extra("Gymnasium's LunarLander and its like", ("Box2D",)),
  "plots": Extra(
    "figures and videos", ("matplotlib", "imageio", "imageio_ffmpeg")
  ),
  "report": Extra("mmdrl report", ("matplotlib", "rliable", "pandas")),
  "serve": Extra("mmdrl serve", ("aiohttp", "orjson")),
  "onnx": Extra("exports as ONNX", ("tf2onnx",)),
  "cluster": Extra("actors and sweeps on other machines", ("ray",)),
  "tune": Extra("mmdrl tune", ("optuna",)),
  "mo": Extra("environments with vector rewards", ("mo_gymnasium",)),
  "offline": Extra("mmdrl record and ope", ("h5py", "minari")),
  "docs": Extra("make docs", ("material", "mkdocstrings")),
}


def no_gpu_because(
  environ: Mapping[str, str], *, has_driver: bool, has_cuda: bool
) -> Tuple[str, str]:
  """Why TensorFlow sees no GPU, and what to do about it.

  Args:
    environ: the environment's variables.
    has_driver: whether NVIDIA's driver is loaded.
    has_cuda: whether this TensorFlow was built for CUDA.

  Returns:
    The reason, and the advice if there is a GPU to be used, or "".
  """
  hidden = environ.get("CUDA_VISIBLE_DEVICES")
  if not has_driver:
    return "no NVIDIA driver is loaded", ""
  if hidden is not None and hidden.strip() in ("", "-1"):
    return (
      f"CUDA_VISIBLE_DEVICES={hidden!r} hides it",
      "unset CUDA_VISIBLE_DEVICES to train on the GPU",
    )
  if not has_cuda:
    return (
      "this TensorFlow was built without CUDA",
      "install TensorFlow's own package for Linux to train on the GPU",
    )
  return (
    "TensorFlow did not find the CUDA libraries",
    f"run pip install 'tensorflow[and-cuda]=={tf.__version__}' to train on the"
    " GPU",
  )


def gpu() -> Tuple[str, str]:
  """The GPUs that TensorFlow uses or why there is none, and advice or ""."""
  found = tf.config.list_physical_devices("GPU")
  if found:
    names = [
      tf.config.experimental.get_device_details(one).get("device_name", "GPU")
      for one in found
    ]
    return ", ".join(names), ""
  reason, advice = no_gpu_because(
    os.environ,
    has_driver=_DRIVER.exists(),
    has_cuda=tf.test.is_built_with_cuda(),
  )
  return f"none: {reason}", advice


def xla_problem() -> Optional[str]:
  """What XLA says if it does not compile here."""
  try:
    tf.function(lambda x: x + 1.0, jit_compile=True)(tf.ones([2])).numpy()
  except (tf.errors.OpError, ValueError) as error:
    return (str(error).splitlines() or [type(error).__name__])[0]
  return None


def free_memory() -> Optional[int]:
  """Bytes that a new process could use, where the system tells.

  A container may have less than the machine.
  """
  rooms = list(_rooms_of_groups())
  for line in _read(_MEMINFO).splitlines():
    name, _, value = line.partition(":")
    if name == "MemAvailable":
      rooms.append(int(value.split()[0]) * 1024)
  return min(rooms, default=None)


def _rooms_of_groups() -> Iterator[int]:
  """Bytes that each limit of memory around this process leaves (Linux)."""
  for line in _read(_GROUP).splitlines():
    _, kinds, path = line.split(":", 2)
    if not kinds:  # version 2
      place, limit, used, idle = _GROUPS, "max", "current", "inactive_file"
    elif "memory" in kinds.split(","):
      place, limit, used = (
        _GROUPS / "memory",
        "limit_in_bytes",
        "usage_in_bytes",
      )
      idle = "total_inactive_file"
    else:
      continue
    inner = place / path.lstrip("/")
    # A container sees its own group as the outermost, whatever its path is.
    for group in dict.fromkeys([inner, *inner.parents]):
      if group != place and place not in group.parents:
        break
      bound = _read(group / f"memory.{limit}").strip()
      now = _read(group / f"memory.{used}").strip()
      if bound.isdecimal() and now.isdecimal():
        stat = dict(
          pair.split(" ", 1)
          for pair in _read(group / "memory.stat").splitlines()
        )
        # What the system only keeps of files gives way.
        yield max(0, int(bound) - int(now) + int(stat.get(idle, 0)))


def _read(path: pathlib.Path) -> str:
  try:
    return path.read_text()
  except OSError:
    return ""


def free_disk() -> int:
  """Bytes that are free where runs are written: in this directory."""
  return shutil.disk_usage(pathlib.Path.cwd()).free


def replay_bytes(config: Config, env: Environment) -> int:
  """What a run's full replay takes, in memory and in its checkpoints.

  Args:
    config: the run's.
    env: its environments.

  Returns:
    Bytes, up to 1 %.
  """
  capacity = _LENGTH * config.environment.num_envs
  small = config.replace(replay=dict(capacity=capacity))
  shards = factories.replay_shards(small, env, _step_spec(env)).shards
  each_step = sum(shard.nbytes for shard in shards) / capacity
  return round(each_step * config.replay.capacity)


def _step_spec(env: Environment) -> Any:
  """The spec of a step that is stored."""
  step, action = tensor_spec.from_spec(
    (env.time_step_spec(), env.action_spec())
  )
  return trajectory.from_transition(step, policy_step.PolicyStep(action), step)
