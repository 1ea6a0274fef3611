"""Weights & Biases and MLflow, each in a process of its own.

Neither installs beside TF-Agents' pins (docs/dependencies.md), and a tool
that fails or waits for its server must not hold up a run. So each runs by the
Python that MMDRL_LOG_PYTHON names, or by this one if it has the tool.
"""

import json
import os
import pathlib
import selectors
import subprocess
import sys
from typing import Any, Dict, Mapping, Optional, Sequence

from tf_mmdrl.core import errors, notices, whole_files

TOOLS = ("wandb", "mlflow")
PYTHON = "MMDRL_LOG_PYTHON"
_PROGRAM = pathlib.Path(__file__).with_name("logger_process.py")
_SECONDS = 90.0  # to begin, and to end: both may wait for a server
_FIND = (
  "import importlib.util, sys;"
  " sys.exit(importlib.util.find_spec(sys.argv[1]) is None)"
)


def require(tools: Sequence[str]) -> None:
  """Raises, at once, if there is no Python that has these.

  Args:
    tools: of TOOLS.
  """
  for tool in tools:
    python = _python()
    try:
      found = subprocess.run(
        [python, "-c", _FIND, tool], check=False, capture_output=True
      )
    except OSError as error:
      raise errors.UserError(
        f"{PYTHON}={python!r} cannot be run: {error.strerror}"
      ) from None
    if found.returncode:
      raise errors.UserError(
        f"--log {tool} needs {tool}, which {python} does not have; it does not"
        " install beside TF-Agents, so give it an environment of its own: run"
        f" python3 -m venv ~/{tool}-env && ~/{tool}-env/bin/pip install {tool}"
        f" && export {PYTHON}=~/{tool}-env/bin/python"
      )


class OutsideLogger:
  """One of the tools, to which rows are sent; it never holds up the run."""

  def __init__(
    self,
    tool: str,
    directory: pathlib.Path,
    settings: Mapping[str, Any],
  ):
    """Starts it, or lets it go on with the run that it knows.

    Args:
      tool: of TOOLS.
      directory: of the run.
      settings: of the run, by name.
    """
    self._tool = tool
    self._said = directory / f"{tool}.log"
    known = directory / f"{tool}_run_id"
    self._process: Optional[subprocess.Popen] = subprocess.Popen(
      [_python(), str(_PROGRAM)],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=self._said.open("ab"),
      # So that Ctrl-C, which asks the run to stop, does not end it before.
      start_new_session=True,
    )
    begin = {
      "tool": tool,
      "name": directory.name,
      "id": known.read_text().strip() if known.exists() else None,
      "directory": str(directory),
      "settings": dict(settings),
    }
    answer = self._begin(begin)
    if "error" in answer:
      self._stop()
      raise errors.UserError(
        f"{tool} cannot log this run: {answer['error']}; {str(self._said)!r}"
        " has all that it said"
      )
    whole_files.write(known, f"{answer['id']}\n".encode())
    assert self._process is not None and self._process.stdin is not None
    os.set_blocking(self._process.stdin.fileno(), False)

  def log(self, step: int, values: Mapping[str, float]) -> None:
    """Sends a row.

    Args:
      step: of the run.
      values: numbers by name.
    """
    self._send({"step": step, "values": dict(values)})

  def close(self, *, is_finished: bool) -> None:
    """Waits, for a while, until all has been passed on.

    Args:
      is_finished: whether the run is over, rather than stopped.
    """
    self._send({"state": "finished" if is_finished else "stopped"})
    if self._process is None:
      return
    assert self._process.stdin is not None
    self._process.stdin.close()
    try:
      failed = self._process.wait(_SECONDS)
    except subprocess.TimeoutExpired:
      self._give_up(f"had not ended after {_SECONDS:.0f} s")
      return
    if failed:
      self._give_up("failed")
    self._stop()

  def _begin(self, begin: Dict[str, Any]) -> Dict[str, Any]:
    """What the process answers to the first line."""
    assert self._process is not None
    assert self._process.stdin is not None and self._process.stdout is not None
    try:
      self._process.stdin.write(json.dumps(begin).encode() + b"\n")
      self._process.stdin.flush()
    except OSError:
      return {"error": "it ended at once"}
    with selectors.DefaultSelector() as selector:
      selector.register(self._process.stdout, selectors.EVENT_READ)
      if not selector.select(_SECONDS):
        return {"error": f"no answer within {_SECONDS:.0f} s"}
    line = self._process.stdout.readline()
    return json.loads(line) if line else {"error": "it ended at once"}

  def _send(self, content: Dict[str, Any]) -> None:
    """A line, whole or not at all: a pipe takes so few bytes in one piece."""
    if self._process is None:
      return
    assert self._process.stdin is not None
    try:
      line = json.dumps(content).encode() + b"\n"
      if os.write(self._process.stdin.fileno(), line) < len(line):
        raise BlockingIOError
    except BlockingIOError:
      self._give_up("does not take any more rows")
    except OSError:
      self._give_up("ended")

  def _give_up(self, what: str) -> None:
    notices.warn(
      f"{self._tool} {what}, so it logs no more of this run, which goes on;"
      f" {str(self._said)!r} has what it said"
    )
    self._stop()

  def _stop(self) -> None:
    """Leaves no process and no pipe behind."""
    process, self._process = self._process, None
    if process is None:
      return
    if process.poll() is None:
      process.kill()
      process.wait()
    for pipe in (process.stdin, process.stdout):
      if pipe is not None:
        pipe.close()


def _python() -> str:
  return os.environ.get(PYTHON) or sys.executable
