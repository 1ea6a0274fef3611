"""Who may ask a server: its address, its token and its certificate."""

import ipaddress
import os
import pathlib
import socket
import ssl
import stat
from typing import Callable, Optional

from tf_mmdrl.core import errors

_LEAST = 16  # characters of a token; shorter ones can be guessed
_MOST = 2**12  # of what is read for one


def read_token(path: pathlib.Path, warn: Callable[[str], None]) -> str:
  """The token in a file: one line of at least 16 visible ASCII characters.

  Args:
    path: of the file, which nobody but its owner may write.
    warn: told if others of this machine may read it.

  Returns:
    The token.
  """
  try:
    with path.open() as file:
      _require_private(os.fstat(file.fileno()), path, "token", warn)
      token = file.read(_MOST).strip()
  except errors.UserError:
    raise
  except (OSError, ValueError) as error:
    reason = getattr(error, "strerror", None) or "it is no text"
    raise errors.UserError(
      f"cannot read the token in {str(path)!r}: {reason}"
    ) from None
  visible = token.isascii() and token.isprintable() and " " not in token
  if len(token) < _LEAST or not visible:
    raise errors.UserError(
      f"the token in {str(path)!r} must be one line of at least {_LEAST}"
      f" visible ASCII characters, got {len(token)} characters; make one with"
      " openssl rand -hex 32"
    )
  return token


def _require_private(
  status: os.stat_result,
  path: pathlib.Path,
  what: str,
  warn: Callable[[str], None],
) -> None:
  """Refuses a secret that others may choose; tells of one that they may read.

  ssh refuses both. Secrets that containers are given are often files that all
  may read, where there is nobody else, and cannot be changed: so one line.
  """
  if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
    raise errors.UserError(
      f"others than its owner may write the {what} in {str(path)!r}; run chmod"
      f" 600 {path}"
    )
  if status.st_mode & (stat.S_IRGRP | stat.S_IROTH):
    warn(
      f"warning: others than its owner may read the {what} in {str(path)!r};"
      f" run chmod 600 {path}"
    )


def tls(
  certificate: pathlib.Path,
  key: Optional[pathlib.Path],
  warn: Callable[[str], None],
) -> ssl.SSLContext:
  """The server's side of TLS 1.2 and later.

  Args:
    certificate: a PEM file, with the chain.
    key: a PEM file, which nobody but its owner may write; in the certificate's
      if None.
    warn: told if others of this machine may read the key.

  Returns:
    The context.
  """
  context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
  context.minimum_version = ssl.TLSVersion.TLSv1_2
  private = key or certificate
  try:
    _require_private(private.stat(), private, "private key", warn)
    # Without a terminal nobody could type a password.
    context.load_cert_chain(certificate, key, password=lambda: "")
  except errors.UserError:
    raise
  except (OSError, ValueError) as error:
    reason = getattr(error, "reason", None) or error.args[-1]
    raise errors.UserError(
      f"cannot use the certificate {str(certificate)!r} with the key"
      f" {str(private)!r}: {reason}; both must be PEM files, the key"
      " without a password"
    ) from None
  return context


def is_local(host: str) -> bool:
  """Whether only programs on this machine can reach an address."""
  if not host:  # all interfaces
    return False
  try:
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
  except (OSError, UnicodeError):  # listening there will fail, and say so
    return False
  return all(ipaddress.ip_address(entry[4][0]).is_loopback for entry in found)
