"""Who may ask a server: its address, its token and its certificate."""

import ipaddress
import pathlib
import socket
import ssl
from typing import Optional

from tf_mmdrl.core import errors

_LEAST = 16  # characters of a token; shorter ones can be guessed


def read_token(path: pathlib.Path) -> str:
  """The token in a file: one line of at least 16 visible ASCII characters."""
  try:
    token = path.read_text().strip()
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


def tls(
  certificate: pathlib.Path, key: Optional[pathlib.Path]
) -> ssl.SSLContext:
  """The server's side of TLS 1.2 and later.

  Args:
    certificate: a PEM file, with the chain.
    key: a PEM file; in the certificate's if None.

  Returns:
    The context.
  """
  context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
  context.minimum_version = ssl.TLSVersion.TLSv1_2
  try:
    # Without a terminal nobody could type a password.
    context.load_cert_chain(certificate, key, password=lambda: "")
  except (OSError, ValueError) as error:
    reason = getattr(error, "reason", None) or error.args[-1]
    raise errors.UserError(
      f"cannot use the certificate {str(certificate)!r} with the key"
      f" {str(key or certificate)!r}: {reason}; both must be PEM files, the key"
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
