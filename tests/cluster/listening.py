"""Which sockets processes listen on, and which docs/cluster.md says they do."""

import ipaddress
import os
import pathlib
import re
import socket
from typing import Dict, Iterator, NamedTuple, Sequence

_PAGE = pathlib.Path(__file__).parents[2] / "docs" / "cluster.md"
_LISTEN = "0A"  # state of a socket in /proc/net/tcp
_DOCUMENTED = 6379  # the --port of the table


class Socket(NamedTuple):
  """A socket that a process listens on."""

  process: str
  address: str
  port: int


class Row(NamedTuple):
  """A row of the table; ports are those with `--port 6379`."""

  process: str
  ports: range
  is_for_all: bool


def table() -> Sequence[Row]:
  """The rows of the page."""
  rows = []
  for line in _PAGE.read_text().partition("**Ports**")[2].splitlines():
    found = re.fullmatch(r"\| (.+?) \| .+? \| ([\d to]+) \| (.+?) \|", line)
    if found:
      first, *last = map(int, found[2].split(" to "))
      ports = range(first, (last or [first])[0] + 1)
      rows.append(Row(found[1], ports, found[3] == "all addresses"))
  assert len(rows) == 5, rows
  return rows


def require_as_documented(
  found: Sequence[Socket], host: str, port: int, *, whole: Sequence[str]
) -> None:
  """Compares sockets with the table.

  Args:
    found: the sockets of a machine.
    host: its `--host`.
    port: the cluster's `--port`.
    whole: processes of the table that must be there.
  """
  seen = set()
  for one in found:
    row = _row(one, port)
    seen.add(row.process)
    if host.startswith("127.") or not row.is_for_all:
      assert one.address == host, one
    else:
      assert one.address in ("::", "0.0.0.0"), one
  assert seen == set(whole), found


def _row(one: Socket, port: int) -> Row:
  rows = table()
  for row in rows[:-1]:
    number = row.ports[0] - _DOCUMENTED + port
    if one.port == number and row.process.partition(",")[0] in one.process:
      return row
  assert one.port in rows[-1].ports, one  # of no process that Ray starts first
  assert "raylet" not in one.process and "gcs" not in one.process, one
  return rows[-1]


def sockets(processes: Sequence[int]) -> Sequence[Socket]:
  """Those that these processes listen on, by TCP."""
  return sorted({one for pid in processes for one in _sockets(pid)})


def _sockets(process: int) -> Iterator[Socket]:
  place = pathlib.Path("/proc", str(process))
  try:
    words = (place / "cmdline").read_bytes().split(b"\0")
    links = [os.readlink(file) for file in (place / "fd").iterdir()]
    listening = _listening(place)
  except OSError:  # it has ended
    return
  name = pathlib.Path(os.fsdecode(words[0])).name
  for link in links:
    number = link.removeprefix("socket:[").removesuffix("]")
    if number in listening:
      yield Socket(name, *listening[number])


def _listening(place: pathlib.Path) -> Dict[str, tuple]:
  """Inode -> address and port, of the network that a process is in."""
  found = {}
  for kind, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
    for line in (place / "net" / kind).read_text().splitlines()[1:]:
      words = line.split()
      if words[3] == _LISTEN:
        address, _, port = words[1].partition(":")
        # Words of four bytes, each as this machine has it in memory.
        raw = bytes.fromhex(address)
        raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
        text = socket.inet_ntop(family, raw)
        mapped = getattr(ipaddress.ip_address(text), "ipv4_mapped", None)
        found[words[9]] = (str(mapped or text), int(port, 16))
  return found
