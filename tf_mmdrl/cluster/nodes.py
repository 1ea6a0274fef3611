"""Machines of a cluster: Ray's own commands, with safe choices.

- Who has no token is not listened to; the token's file is its owner's alone.
- There is no dashboard, and nothing is reported to anyone.
- `stop` ends what `start` or `join` began here, and no other Ray.
"""

import contextlib
import errno
import json
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from tf_mmdrl.cluster import connection, ray_processes
from tf_mmdrl.core import errors, notices, whole_files

_MEGABYTE = 2**20
_PATIENCE = 300  # seconds that Ray may take to start
# Ports of a machine after the cluster's own; docs/cluster.md lists who listens.
_NEXT_PORTS = (
  "--node-manager-port",
  "--object-manager-port",
  "--runtime-env-agent-port",
)
_WORKER_PORTS = (10002, 19999)


class Node(NamedTuple):
  """This machine's part of a cluster.

  Attributes:
    address: HOST:PORT of the machine that the cluster was begun on.
    host: this machine's address.
  """

  address: str
  host: str

  @property
  def port(self) -> int:
    """The cluster's."""
    return int(self.address.rpartition(":")[2])


def start(
  host: str, port: int, cpus: Optional[int], gpus: int, store: int
) -> Node:
  """Begins a cluster on this machine, and makes a token if there is none.

  Args:
    host: address of this machine at which others reach it.
    port: at which they do.
    cpus: that it offers; None: all.
    gpus: that it offers.
    store: megabytes for what travels.
  """
  connection.require_ray_there()
  _refuse_second()
  _require_ports(host, [port, *_next_ports(port)], "pass another --port")
  make_token()
  node = Node(f"{host}:{port}", host)
  head = ["--head", "--port", str(port), "--include-dashboard", "false"]
  _ray_start(node, [*head, *_offers(cpus, gpus, store)])
  return node


def join(
  address: str, host: Optional[str], cpus: Optional[int], gpus: int, store: int
) -> Node:
  """Adds this machine to a cluster; see `start`."""
  connection.check_address(address)
  connection.require_ray_there()
  connection.require_token()
  _refuse_second()
  node = Node(address, host or _host_towards(address))
  _require_ports(
    node.host,
    _next_ports(node.port),
    "end what has it, or start the cluster with another --port",
  )
  _ray_start(node, ["--address", address, *_offers(cpus, gpus, store)])
  return node


def here() -> Optional[Node]:
  """What `start` or `join` began on this machine, if it still runs."""
  node = connection.node_here()
  return Node(**node) if node and _processes() else None


def status() -> List[Dict[str, Any]]:
  """The machines of the cluster that this one is part of.

  Returns:
    For each its address, whether it is alive, and its resources.
  """
  node = here()
  if node is None:
    raise errors.UserError(
      "this machine is part of no cluster; run mmdrl cluster start, or"
      " mmdrl cluster join ADDRESS"
    )
  ray = connection.require_ray()
  with connection.cluster(node.address):
    return [
      {
        "host": found["NodeManagerAddress"],
        "alive": found["Alive"],
        "cpus": found["Resources"].get("CPU", 0),
        "gpus": found["Resources"].get("GPU", 0),
      }
      for found in ray.nodes()
    ]


def stop(patience: float = 15.0) -> int:
  """Ends what `start` or `join` began here; how many processes there were."""
  found = _processes()
  end = time.monotonic() + patience
  for number in (signal.SIGTERM, signal.SIGKILL):
    for process in _processes():
      with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)
    while _processes() and time.monotonic() < end:
      time.sleep(0.2)
  shutil.rmtree(connection.cluster_place(), ignore_errors=True)
  return len(found)


def make_token() -> pathlib.Path:
  """A new token in its file, 0600, unless there is one already."""
  path = connection.token_path()
  if not os.environ.get("RAY_AUTH_TOKEN") and not os.path.lexists(path):
    try:
      path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
      _write_token(path)
    except OSError as error:
      raise errors.UserError(
        f"the token cannot be written to {str(path)!r}: {error.strerror}; set"
        f" {connection.TOKEN_PATH} to where it may be"
      ) from None
  connection.require_token()
  return path


def _write_token(path: pathlib.Path) -> None:
  """All of it or nothing, and never where others can read it."""
  temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
  file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
  try:
    with os.fdopen(file, "w") as writer:
      writer.write(secrets.token_hex(32))
    with contextlib.suppress(FileExistsError):  # another start made one
      os.link(temporary, path)
  finally:
    temporary.unlink()


def _offers(cpus: Optional[int], gpus: int, store: int) -> List[str]:
  given = [] if cpus is None else ["--num-cpus", str(cpus)]
  bytes_ = str(store * _MEGABYTE)
  return [*given, "--num-gpus", str(gpus), "--object-store-memory", bytes_]


def _refuse_second() -> None:
  node = here()
  if node is not None:
    raise errors.UserError(
      f"this machine is part of the cluster at {node.address} already; run"
      " mmdrl cluster stop first"
    )


def _next_ports(port: int) -> List[int]:
  return [port + 1 + index for index, _ in enumerate(_NEXT_PORTS)]


def _require_ports(host: str, ports: Sequence[int], instead: str) -> None:
  """Raises unless this machine has the address, and these ports are free.

  Ray would try for minutes, and then say something else.
  """
  if not 0 < min(ports) <= max(ports) < 1 << 16:
    raise errors.UserError(
      f"the ports {min(ports)} to {max(ports)} are wanted, and ports are 1 to"
      f" 65535; {instead}"
    )
  for port in ports:
    try:
      kind = socket.SOCK_STREAM
      family, _, _, _, place = socket.getaddrinfo(host, port, type=kind)[0]
      with socket.socket(family, kind) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(place)
    except OSError as error:
      name = isinstance(error, socket.gaierror)
      if name or error.errno == errno.EADDRNOTAVAIL:
        raise errors.UserError(
          f"{host!r} is no address of this machine; pass --host with one that"
          " ip addr shows, at which the others reach it"
        ) from None
      raise errors.UserError(
        f"port {port} cannot be had at {host}: {error.strerror}; {instead}"
      ) from None


def _ray_start(node: Node, words: List[str]) -> None:
  try:
    for attempt in range(1, connection.START_ATTEMPTS + 1):
      said = _try_to_start(node, words)
      if said is None:
        break
      if attempt == connection.START_ATTEMPTS or not connection.is_slow(said):
        raise errors.UserError(connection.reason(node.address, said))
      notices.note(connection.SLOW)
    content = json.dumps(node._asdict()).encode()
    whole_files.write(connection.cluster_place() / "node.json", content)
  except BaseException:  # Ctrl-C, too, leaves nothing behind
    stop()
    raise


def _try_to_start(node: Node, words: List[str]) -> Optional[str]:
  """What Ray says if it does not start; None if it does."""
  place = _make_place()
  ports = dict(zip(_NEXT_PORTS, _next_ports(node.port)))
  ports.update(zip(("--min-worker-port", "--max-worker-port"), _WORKER_PORTS))
  command = [
    *(sys.executable, "-m", "tf_mmdrl.cluster.ray_command", "start", *words),
    *("--node-ip-address", node.host, "--temp-dir", str(place)),
    *("--disable-usage-stats", "--include-log-monitor", "false"),
    *(str(part) for pair in ports.items() for part in pair),
  ]
  around = dict(os.environ)
  if connection.is_loopback(node.host):  # it would take another one
    around[connection.LOOPBACK] = "0"
  try:
    done = subprocess.run(
      command, capture_output=True, text=True, timeout=_PATIENCE, env=around
    )
  except subprocess.TimeoutExpired:
    return f"Ray was not up after {_PATIENCE} s"
  lines = (done.stdout + done.stderr).strip().splitlines()
  return " ".join(_telling(lines)) if done.returncode else None


def _make_place() -> pathlib.Path:
  """The directory of Ray's files, empty; nobody else could have put some in."""
  stop()  # what a start that was killed has left
  place = connection.cluster_place()
  try:
    place.mkdir(mode=0o700, parents=True)
  except OSError as error:
    raise errors.UserError(
      f"{str(place)!r} cannot be made anew: {error.strerror}; another user may"
      " have made it, and has to remove it"
    ) from None
  return place


def _telling(lines: List[str]) -> List[str]:
  """The lines of Ray's that name an error, or its last ones."""
  marks = ("Error", "mismatch", "timed out")
  named = [line for line in lines if any(mark in line for mark in marks)]
  return named[-2:] or lines[-2:]


def _host_towards(address: str) -> str:
  """This machine's address, as the cluster sees it."""
  host, _, port = address.rpartition(":")
  with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
    try:
      probe.connect((host, int(port)))  # sends nothing
      return probe.getsockname()[0]
    except OSError as error:
      raise errors.UserError(
        f"{address} cannot be reached from here: {error.strerror}; pass --host"
        " with this machine's address"
      ) from None


def _processes() -> List[int]:
  """Processes of Ray that serve this cluster, by the place of their files."""
  return ray_processes.found(connection.cluster_place())
