"""Ray as this project uses it: quiet, closed to strangers, gone at the end.

Ray is asked for nothing that leaves the machines: no usage statistics, no
dashboard. On one machine it listens on the loopback address alone, with a token
that nobody else knows. A cluster needs a token in any case: whoever may call it
can run code on all of its machines.
"""

import contextlib
import functools
import json
import logging
import os
import pathlib
import secrets
import stat
import sys
from typing import Any, Dict, Iterator, Optional, Tuple

from tf_mmdrl.cluster import own_place, ray_processes
from tf_mmdrl.core import errors, notices, optional

_MEGABYTE = 2**20
_PLACE = pathlib.Path("/tmp")  # short: the names of Ray's sockets must be
_NAME = "mmdrl-ray-"
START_ATTEMPTS = 3
SLOW = "Ray has not started within 30 s on this busy machine; once more"
_TOKEN = 4096  # characters of a token, at most
TOKEN_PATH = "RAY_AUTH_TOKEN_PATH"
# "0" is what Ray itself takes where it runs on one machine only.
LOOPBACK = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
_REJOIN = (
  "run mmdrl cluster stop here, then start or join again, and the same command"
  " goes on"
)
DEFAULT_TOKEN = pathlib.Path("~/.ray/auth_token")
_INIT: Dict[str, Any] = dict(
  log_to_driver=False, logging_level=logging.CRITICAL, configure_logging=True
)


_RAY: Dict[str, str] = dict(use="actors and clusters", extra="cluster")


def require_ray() -> Any:
  """Ray's module, or the line that installs it."""
  return optional.require("ray", **_RAY)


def require_ray_there() -> None:
  """The same without its module, which takes a second to load."""
  optional.require_there("ray", **_RAY)


@contextlib.contextmanager
def local(num_cpus: int, *, object_store: int = 300) -> Iterator[None]:
  """Ray on this machine alone, as long as the context lasts.

  Args:
    num_cpus: how many actors, of one CPU each, it has room for.
    object_store: megabytes of memory for what travels.
  """
  with (
    _set("RAY_AUTH_TOKEN", _own_token()),
    _set(LOOPBACK, "0"),
    own_place.lent(_NAME, _PLACE) as place,
  ):
    try:
      ray = require_ray()
      _stay_local(ray, True)
      _start_here(
        ray,
        num_cpus=num_cpus,
        include_dashboard=False,
        object_store_memory=object_store * _MEGABYTE,
        _temp_dir=str(place),
        **_INIT,
      )
      _silence(ray)
      with ray_processes.watched(place, "the same command goes on"):
        yield
    finally:
      _shut_down()


@contextlib.contextmanager
def cluster(address: str) -> Iterator[None]:
  """A cluster that `mmdrl cluster start` began, and this machine is part of.

  Args:
    address: HOST:PORT of the machine that it was begun on.
  """
  require(address)
  ray = require_ray()
  host = _host(address)
  _stay_local(ray, is_loopback(host))
  try:
    try:
      with notices.silence():  # Ray says what `reason` says, many times
        ray.init(address=address, _node_ip_address=host, **_INIT)
    except Exception as error:  # Ray has no class of its own for most of them
      raise errors.UserError(reason(address, error)) from error
    _silence(ray)
    with ray_processes.watched(cluster_place(), _REJOIN):
      yield
  finally:
    _shut_down()


def _start_here(ray: Any, **settings: Any) -> None:
  for attempt in range(1, START_ATTEMPTS + 1):
    try:
      ray.init(**settings)
      return
    except Exception as error:  # Ray has no class of its own for these
      _shut_down()
      if attempt == START_ATTEMPTS or not is_slow(error):
        raise errors.UserError(
          f"Ray does not start on this machine: {_one_line(error)}"
        ) from error
      notices.note(SLOW)


def is_slow(error: Any) -> bool:
  """Whether Ray gave up starting: after 30 s, which cannot be changed."""
  return "timed out during startup" in str(error)


def require(address: Optional[str]) -> None:
  """Raises if Ray is not installed, or a cluster cannot be asked for.

  Args:
    address: of the cluster; None: Ray on this machine alone.
  """
  if address is not None:
    check_address(address)
  require_ray_there()
  if address is not None:
    require_token()


def connected(address: Optional[str], num_cpus: int) -> Any:
  """`cluster`, or `local` if there is no address."""
  return local(num_cpus) if address is None else cluster(address)


def require_token() -> None:
  """Raises if there is no token, or one that others can read."""
  if os.environ.get("RAY_AUTH_TOKEN"):
    return
  path = token_path()
  try:
    status, text = _read_token(path)
  except OSError:
    raise errors.UserError(
      f"a cluster needs its token, and there is none in {str(path)!r}; copy the"
      " file from the machine where mmdrl cluster start made it, or set"
      f" {TOKEN_PATH} to where it is"
    ) from None
  if not text:
    raise errors.UserError(f"the token in {str(path)!r} is empty; copy it anew")
  if not (text.isascii() and text.isprintable()) or len(text) > _TOKEN:
    raise errors.UserError(f"{str(path)!r} holds no token; copy it anew")
  if status.st_uid not in (0, os.getuid()):
    raise errors.UserError(
      f"the token in {str(path)!r} is another user's; whoever made it can run"
      " code here: copy it to a file of your own"
    )
  if status.st_mode & 0o077:
    raise errors.UserError(
      f"others can read the token in {str(path)!r}, and whoever has it can run"
      f" code on the cluster; run chmod 600 {path}"
    )
  os.environ[TOKEN_PATH] = str(path)


def _read_token(path: pathlib.Path) -> Tuple[os.stat_result, str]:
  """A file's status and what it holds; waits for nobody, whatever it is."""
  file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
  try:
    status = os.fstat(file)
    is_file = stat.S_ISREG(status.st_mode)
    data = os.read(file, 2 * _TOKEN) if is_file else b"\0"
  finally:
    os.close(file)
  return status, data.decode(errors="replace").strip()


def node_here() -> Dict[str, str]:
  """What this machine was started or joined with; empty if it was not."""
  place = cluster_place()
  try:
    # Who else made it could name any machine in it.
    if place.lstat().st_uid != os.getuid():
      return {}
    node = json.loads((place / "node.json").read_text())
    return {name: str(node[name]) for name in ("address", "host")}
  except (OSError, ValueError, KeyError, TypeError):
    return {}


def _host(address: str) -> str:
  """This machine's address, as it was started or joined with."""
  node = node_here()
  if node.get("address") != address:
    raise errors.UserError(
      f"this machine is no part of the cluster at {address}; run"
      f" mmdrl cluster join {address} first"
    )
  return node["host"]


def is_loopback(host: str) -> bool:
  """Whether an address is of this machine alone."""
  return host in ("localhost", "::1") or host.startswith("127.")


def cluster_place() -> pathlib.Path:
  """Where Ray keeps the files of this machine's part of a cluster."""
  return _PLACE / f"mmdrl-cluster-{os.getuid()}"


def token_path() -> pathlib.Path:
  """Where the token of clusters is."""
  given = os.environ.get(TOKEN_PATH)
  return pathlib.Path(given) if given else DEFAULT_TOKEN.expanduser()


def check_address(address: str) -> None:
  """Raises unless it is HOST:PORT."""
  host, colon, port = address.rpartition(":")
  if not (host and colon and port.isdigit()):
    raise errors.UserError(
      f"a cluster's address is HOST:PORT, got {address!r}; mmdrl cluster start"
      " prints it"
    )


def reason(address: str, error: Any) -> str:
  """One line of what Ray says in many."""
  text = _one_line(error)
  if is_slow(text):
    return f"Ray does not start on this machine: {text}"
  lower = " ".join([text, *_causes(error)]).lower()
  if "version mismatch" in lower:
    return (
      f"the cluster at {address} has other versions than this machine: {text};"
      " install the same ones on all machines"
    )
  if "authentication" in lower or "token" in lower:
    return (
      f"the cluster at {address} does not know this token; copy the file of the"
      f" machine that it was started on to {str(token_path())!r}"
    )
  if "raylet" in lower or "node_ip" in lower or "no node" in lower:
    return (
      f"this machine is no part of the cluster at {address}; run"
      f" mmdrl cluster join {address} first"
    )
  return (
    f"no cluster answers at {address} to this machine's token: {text[:160]};"
    " look whether it runs, with mmdrl cluster status there, whether its ports"
    f" can be reached, and whether its token is in {str(token_path())!r}"
  )


def _one_line(error: Any) -> str:
  return " ".join(str(error).split())


def _causes(error: Any) -> Iterator[str]:
  """What led to an error, which Ray does not say with it."""
  while isinstance(error, BaseException):
    error = error.__cause__ or error.__context__
    yield f"{type(error).__name__} {error}"


@functools.cache
def _own_token() -> str:
  """A token that nobody else knows; Ray reads one only, once in a process."""
  return secrets.token_hex(32)


@contextlib.contextmanager
def _set(name: str, value: str) -> Iterator[None]:
  """Sets a variable of the environment for a while."""
  before = os.environ.get(name)
  os.environ[name] = value
  try:
    yield
  finally:
    del os.environ[name]
    if before is not None:
      os.environ[name] = before


def _stay_local(ray: Any, local_only: bool) -> None:
  """Keeps Ray on 127.0.0.1 or not, also if it was imported before.

  On Linux it takes the machine's address otherwise, even if it is told the
  loopback one, and listens to everybody.
  """
  private = getattr(ray, "_private", None)
  constants: Any = getattr(private, "ray_constants", None)
  if hasattr(constants, "ENABLE_RAY_CLUSTER"):
    constants.ENABLE_RAY_CLUSTER = not local_only


def _silence(ray: Any) -> None:
  """Keeps Ray from writing a paragraph for each process that is lost.

  The learner itself says whom it lost. Ray has no setting for this.
  """
  worker: Any = getattr(getattr(ray, "_private", None), "worker", None)
  if hasattr(worker, "print_to_stdstream"):
    worker.print_to_stdstream = lambda *_, **__: None


def _shut_down() -> None:
  ray = sys.modules.get("ray")
  if ray is not None and ray.is_initialized():
    ray.shutdown()
