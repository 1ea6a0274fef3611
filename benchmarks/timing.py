"""Times functions side by side, so that a noisy machine is fair to all."""

import json
import os
import pathlib
import random
import shlex
import sys
import time
from typing import Any, Callable, Dict, Optional

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tf_mmdrl  # noqa: F401  (before TF-Agents: Keras 2)
from tf_mmdrl.train import machine


def interleaved(
  functions: Dict[str, Callable[[], object]],
  *,
  seconds: float = 3.0,
  least: int = 5,
  quantile: float = 0.5,
  clock: Callable[[], float] = time.perf_counter,
) -> Dict[str, float]:
  """The time of each function, called in turn; the median if not said.

  Each is called twice and the second call is timed, in a new order each round:
  right after another function the caches are that one's, and its threads may
  still be busy ending.

  Args:
    functions: what to time; each waits for its own result.
    seconds: roughly how long to go on.
    least: calls of each at least.
    quantile: of its times; low ones leave out what else the machine does.
    clock: `time.process_time` counts what all threads of this process compute,
      which another process' load hardly changes.

  Returns:
    Seconds by name.
  """
  for function in functions.values():
    function()  # traces, compiles, allocates
  times: Dict[str, list] = {name: [] for name in functions}
  stop = time.perf_counter() + seconds
  rounds = 0
  order = random.Random(0)
  while rounds < least or time.perf_counter() < stop:
    for name in order.sample(sorted(functions), len(functions)):
      function = functions[name]
      function()
      start = clock()
      function()
      times[name].append(clock() - start)
    rounds += 1
  return {name: sorted(t)[int(len(t) * quantile)] for name, t in times.items()}


def record(path: Optional[pathlib.Path], rows: Dict[str, Any]) -> None:
  """Writes figures for `docs/results`, with what they were found by.

  Args:
    path: the file; nothing is written if None.
    rows: the figures, as JSON values.
  """
  if path is None:
    return
  words = ["python", *sys.argv]
  content = {
    "command": shlex.join(words),
    "load": os.getloadavg()[0],
    **machine.surroundings(),
    "rows": rows,
  }
  path.write_text(json.dumps(content, indent=1) + "\n")
