"""A real `mmdrl serve` as a process, and a client that trusts nothing."""

import contextlib
import json
import os
import pathlib
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from typing import Any, Iterator, List, NamedTuple, Tuple

_MIB = 2**20


class Answer(NamedTuple):
  """What came back.

  Attributes:
    status: of HTTP; 0 if nothing came, or no HTTP.
    body: after the headers.
  """

  status: int
  body: bytes

  @property
  def error(self) -> str:
    """What the server said was wrong; empty if it said nothing of use."""
    try:
      text = json.loads(self.body)["error"]
    except (ValueError, KeyError, TypeError):
      return ""
    return text if "\n" not in text and len(text) < 6000 else ""


class Served:
  """A server on loopback.

  Attributes:
    port: where it listens.
    log: the file that everything it prints goes to.
  """

  def __init__(self, process: subprocess.Popen, log: pathlib.Path, port: int):
    self._process = process
    self.log = log
    self.port = port
    self.tls = "https://" in log.read_text()
    # It trusts anyone: the certificate was made for this moment.
    self._context = ssl._create_unverified_context()

  def connect(self, seconds: float, receive: int = 0) -> socket.socket:
    """A connection, with TLS if that is what the server speaks.

    Args:
      seconds: for each call of it.
      receive: bytes that the system may take before they are read.
    """
    connection = socket.socket()
    if receive:
      connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    connection.settimeout(seconds)
    try:
      connection.connect(("127.0.0.1", self.port))
      if self.tls:
        return self._context.wrap_socket(connection)
    except BaseException:
      connection.close()
      raise
    return connection

  def raw(self, content: bytes, seconds: float = 20.0) -> Answer:
    """Sends bytes on a connection of their own, and reads to its end."""
    received = bytearray()
    with contextlib.suppress(OSError), self.connect(seconds) as connection:
      # A server that refuses answers before it has read everything.
      with contextlib.suppress(OSError):
        connection.sendall(content)
      while chunk := connection.recv(2**18):
        received += chunk
    head, _, body = bytes(received).partition(b"\r\n\r\n")
    found = re.match(rb"HTTP/1\.[01] (\d+) ", head)
    return Answer(int(found[1]) if found else 0, body)

  def get(self, path: str, seconds: float = 20.0) -> Answer:
    """Asks for something."""
    head = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    return self.raw(head.encode(), seconds)

  def states(self) -> "dict[int, Tuple[str, str]]":
    """Version -> its state, and what is wrong with it."""
    content = json.loads(self.get("/v1/models/policy").body)
    return {
      int(row["version"]): (row["state"], row["status"]["error_message"])
      for row in content["model_version_status"]
    }

  def memory(self, field: str = "VmHWM") -> float:
    """The most memory that it ever had, in MiB; with VmRSS what it has."""
    text = pathlib.Path(f"/proc/{self._process.pid}/status").read_text()
    return int(re.search(rf"{field}:\s+(\d+) kB", text)[1]) * 1024 / _MIB

  def waited(self) -> float:
    """Seconds for which its main thread was ready, and other processes ran."""
    task = pathlib.Path(f"/proc/{self._process.pid}/task/{self._process.pid}")
    return int((task / "schedstat").read_text().split()[1]) / 1e9

  def alive(self) -> bool:
    """Whether it still runs."""
    return self._process.poll() is None

  def tracebacks(self) -> int:
    """How many it has printed."""
    return self.log.read_text(errors="replace").count("Traceback")


@contextlib.contextmanager
def serving(directory: pathlib.Path, *flags: str) -> Iterator[Served]:
  """A server of a directory that runs meanwhile."""
  command = [sys.executable, "-m", "tf_mmdrl", "serve", str(directory)]
  with tempfile.NamedTemporaryFile(suffix=".log") as log:
    process = subprocess.Popen(
      [*command, "--port", "0", *flags],
      stdout=log,
      stderr=subprocess.STDOUT,
      env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    path = pathlib.Path(log.name)
    try:
      yield Served(process, path, _port(process, path))
    finally:
      process.terminate()
      process.wait()


def _port(process: subprocess.Popen, log: pathlib.Path) -> int:
  end = time.monotonic() + 600
  while time.monotonic() < end and process.poll() is None:
    if found := re.search(r"serving at \S+:(\d+)/", log.read_text()):
      return int(found[1])
    time.sleep(0.05)
  raise RuntimeError(f"the server did not start: {log.read_text()}")


class Row(NamedTuple):
  """A line of the table.

  Attributes:
    what: was done.
    tried: how often.
    lost: answers, versions or servers that should be there and were not.
    silent: wrong things that were taken without a word.
    tracebacks: that were printed.
    note: what was measured besides.
  """

  what: str
  tried: int
  lost: int
  silent: int
  tracebacks: int
  note: str = ""


def show(rows: List[Row]) -> None:
  """Prints the table."""
  names = ("tried", "lost", "silent", "tracebacks")
  print(f"{'what':42}" + "".join(f"{name:>11}" for name in names))
  for row in rows:
    figures: List[Any] = [getattr(row, name) for name in names]
    print(f"{row.what:42}" + "".join(f"{n:11,}" for n in figures))
    if row.note:
      print(f"  {row.note}")
