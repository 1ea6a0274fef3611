"""Counters in Prometheus' text form."""

import bisect
import collections
from typing import Dict, List, Sequence

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0)
ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Histogram:
  """How many observations lie below each bound."""

  def __init__(self, name: str, help_line: str, bounds: Sequence[float]):
    self._name = name
    self._help = help_line
    self._bounds = bounds
    self._counts = [0] * (len(bounds) + 1)
    self._sum = 0.0

  def observe(self, value: float) -> None:
    """Adds one observation."""
    self._counts[bisect.bisect_left(self._bounds, value)] += 1
    self._sum += value

  def lines(self) -> List[str]:
    """The text, line by line."""
    lines = _head(self._name, self._help, "histogram")
    total = 0
    for bound, count in zip((*self._bounds, "+Inf"), self._counts):
      total += count
      lines.append(f'{self._name}_bucket{{le="{bound}"}} {total}')
    lines.append(f"{self._name}_sum {self._sum}")
    lines.append(f"{self._name}_count {total}")
    return lines


class Metrics:
  """What the server counts.

  Attributes:
    seconds: how long predictions took.
    rows: the sizes of the batches that ran.
    reloads: versions loaded since the start.
  """

  def __init__(self) -> None:
    self.seconds = Histogram(
      "mmdrl_request_seconds", "Time to answer a prediction.", SECONDS
    )
    self.rows = Histogram(
      "mmdrl_batch_rows", "Observations in one run of the model.", ROWS
    )
    self.reloads = 0
    self._answers: Dict[int, int] = collections.Counter()

  def count(self, status: int) -> None:
    """Counts an answer."""
    self._answers[status] += 1

  def text(self, version: int, under_way: int) -> str:
    """All of it, as Prometheus reads it.

    Args:
      version: the newest that is served.
      under_way: predictions that are not answered yet.

    Returns:
      Lines of text.
    """
    name = "mmdrl_requests_total"
    lines = _head(name, "Answers by status.", "counter")
    for status, number in sorted(self._answers.items()):
      lines.append(f'{name}{{code="{status}"}} {number}')
    lines += self.seconds.lines() + self.rows.lines()
    for name, help_line, kind, value in (
      ("mmdrl_reloads_total", "Versions loaded.", "counter", self.reloads),
      ("mmdrl_in_flight", "Predictions under way.", "gauge", under_way),
      ("mmdrl_version", "The newest version served.", "gauge", version),
    ):
      lines += [*_head(name, help_line, kind), f"{name} {value}"]
    return "\n".join(lines) + "\n"


def _head(name: str, help_line: str, kind: str) -> List[str]:
  return [f"# HELP {name} {help_line}", f"# TYPE {name} {kind}"]
