"""The machine that a run is trained on."""

import os
import pathlib
import platform
from typing import Any, Dict, Optional, Set

import tensorflow as tf

_CPUINFO = pathlib.Path("/proc/cpuinfo")


def describe() -> Dict[str, Any]:
  """`system`, `cpu`, `cores`, `cpus` and `threads`, as JSON values.

  Returns:
    The CPU's model; the cores it has, and the CPUs that the system makes of
    them; how many threads TensorFlow computes one operation with. What the
    system does not tell is None.
  """
  text = _CPUINFO.read_text() if _CPUINFO.exists() else ""
  return {
    "system": platform.platform(),
    "cpu": _model(text) or platform.processor() or None,
    "cores": _cores(text),
    "cpus": os.cpu_count(),
    "threads": _threads(),
  }


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


def _threads() -> int:
  """TensorFlow's for one operation.

  It does not tell what it takes by default: the environment's number, as
  sweeps set it, or one for each CPU that this process may use.
  """
  wanted = tf.config.threading.get_intra_op_parallelism_threads()
  given = os.environ.get("TF_NUM_INTRAOP_THREADS", "")
  if wanted or given.isdigit() and int(given):
    return wanted or int(given)
  if hasattr(os, "sched_getaffinity"):
    return len(os.sched_getaffinity(0))
  return os.cpu_count() or 1
