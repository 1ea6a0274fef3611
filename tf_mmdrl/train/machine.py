"""The machine and the versions that a run is trained with."""

import os
import pathlib
import platform
import shlex
import subprocess
from typing import Any, Dict, List, Optional, Set

import tensorflow as tf

from tf_mmdrl.train import versions

# What TensorFlow, XLA and oneDNN read from the environment that changes bits.
_VARIABLES = (
  "TF_ENABLE_ONEDNN_OPTS",
  "ONEDNN_MAX_CPU_ISA",
  "DNNL_MAX_CPU_ISA",
  "ONEDNN_DEFAULT_FPMATH_MODE",
  "TF_XLA_FLAGS",
  "XLA_FLAGS",
  "NVIDIA_TF32_OVERRIDE",
)
# What of a machine decides the last bits; versions all do.
_DECISIVE = ("cpu", "devices", "threads", "operations_at_a_time", "variables")
_CPUINFO = pathlib.Path("/proc/cpuinfo")


def describe() -> Dict[str, Any]:
  """What a run is computed with, as JSON values.

  Returns:
    The system; the CPU's model; the cores it has, and the CPUs that the system
    makes of them; the kinds of device that TensorFlow uses; how many threads it
    computes one operation with, and how many operations at a time; which
    variables of the process's environment change how it computes. What the
    system does not tell is None.
  """
  text = _CPUINFO.read_text() if _CPUINFO.exists() else ""
  return {
    "system": platform.platform(),
    "cpu": _model(text) or platform.processor() or None,
    "cores": _cores(text),
    "cpus": os.cpu_count(),
    "devices": _devices(),
    "threads": _threads(
      tf.config.threading.get_intra_op_parallelism_threads(),
      "TF_NUM_INTRAOP_THREADS",
    ),
    "operations_at_a_time": _threads(
      tf.config.threading.get_inter_op_parallelism_threads(),
      "TF_NUM_INTEROP_THREADS",
    ),
    "variables": _variables(),
  }


def surroundings() -> Dict[str, Any]:
  """`versions`, `git_commit` and `machine`, as JSON values."""
  return {
    "versions": versions.found(),
    "git_commit": _commit(),
    "machine": describe(),
  }


def _commit() -> Optional[str]:
  """The commit of this library's sources, if they are a checkout."""
  try:
    here = pathlib.Path(__file__).parent
    command = ["git", "-C", str(here), "rev-parse", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=5)
  except (OSError, subprocess.TimeoutExpired):
    return None
  return done.stdout.strip() or None


def changes_of_bits(before: Dict[str, Any], now: Dict[str, Any]) -> List[str]:
  """What differs, of what decides the last bits of a run's numbers.

  Args:
    before: `versions` and `machine` of a run, as `surroundings` gives
      them; an older version's has fewer.
    now: those of this process.

  Returns:
    Each as `name: before -> now`.
  """
  machine = {
    name: value
    for name, value in before.get("machine", {}).items()
    if name in _DECISIVE
  }
  return [
    *versions.changes(before.get("versions", {}), now["versions"]),
    *versions.changes(machine, now["machine"]),
  ]


def _devices() -> str:
  """The kinds of device that TensorFlow uses: "CPU", or its GPUs' names."""
  names = [
    tf.config.experimental.get_device_details(gpu).get("device_name", "GPU")
    for gpu in tf.config.list_physical_devices("GPU")
  ]
  return ", ".join(sorted(set(names))) or "CPU"


def _variables() -> str:
  """Those that are set, as a shell would be given them."""
  given = {name: os.environ.get(name, "") for name in _VARIABLES}
  texts = [
    f"{name}={shlex.quote(text)}" for name, text in given.items() if text
  ]
  return " ".join(texts) or "none"


def _model(cpuinfo: str) -> Optional[str]:
  for line in cpuinfo.splitlines():
    name, _, value = line.partition(":")
    if name.strip() == "model name":
      return value.strip()
  return None


def _cores(cpuinfo: str) -> Optional[int]:
  """How many cores the system's CPUs are of, if it says so."""
  cores: Set[tuple] = set()
  for block in cpuinfo.split("\n\n"):
    fields: Dict[str, str] = {}
    for line in block.splitlines():
      name, _, value = line.partition(":")
      fields[name.strip()] = value.strip()
    if "core id" in fields:
      cores.add((fields.get("physical id"), fields["core id"]))
  return len(cores) or None


def _threads(wanted: int, variable: str) -> int:
  """TensorFlow's, for one operation or for several.

  It does not tell what it takes by default: the environment's number, as
  sweeps set it, or one for each CPU that this process may use.
  """
  given = os.environ.get(variable, "")
  if wanted or given.isdigit() and int(given):
    return wanted or int(given)
  if hasattr(os, "sched_getaffinity"):
    return len(os.sched_getaffinity(0))
  return os.cpu_count() or 1
