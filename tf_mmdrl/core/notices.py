"""Lines to the person at the terminal, on standard error."""

import sys


def warn(text: str) -> None:
  """Shows a warning."""
  print(f"mmdrl: warning: {text}", file=sys.stderr)


def note(text: str) -> None:
  """Says what is going on."""
  print(f"mmdrl: {text}", file=sys.stderr)
