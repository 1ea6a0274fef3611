"""Who may ask: tokens, TLS, and addresses that others reach."""

import contextlib
import http.client
import json
import shutil
import socket
import ssl
import subprocess
import time

import pytest
import serving_fixtures

from tf_mmdrl.cli import main, server_access
from tf_mmdrl.core import UserError
from tf_mmdrl.serving.limits import Limits

_TOKEN = "0123456789abcdef"
_STATUS = "/v1/models/policy"


@pytest.fixture(scope="module")
def guarded(run):
  with serving_fixtures.serving(run / "export", token=_TOKEN) as running:
    yield running


@pytest.mark.parametrize(
  "given",
  [
    None,
    "",
    "Bearer",
    "Bearer ",
    f"Bearer {_TOKEN[:-1]}",
    f"Bearer {_TOKEN}x",
    f"Basic {_TOKEN}",
    _TOKEN,
    "Bearer \xff",
  ],
)
def test_without_the_token_nothing_is_told(guarded, given):
  headers = {} if given is None else {"Authorization": given}
  for method, path in (
    ("GET", _STATUS),
    ("GET", "/metrics"),
    ("GET", "/nowhere"),
    ("POST", f"{_STATUS}:predict"),
  ):
    status, answer = guarded.request(method, path, headers=headers)
    assert status == 401 and "Bearer TOKEN" in answer["error"]
    assert _TOKEN not in answer["error"]


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER "])
def test_with_the_token_everything_is(guarded, scheme):
  headers = {"Authorization": f"{scheme} {_TOKEN}"}
  assert guarded.request("GET", _STATUS, headers=headers)[0] == 200
  zeros = [[[[0] * 4] * 10] * 10]
  body = json.dumps({"instances": zeros})
  path = f"{_STATUS}:predict"
  assert guarded.request("POST", path, body, headers)[0] == 200


def test_health_needs_no_token(guarded):
  assert guarded.request("GET", "/healthz") == (200, b"ok\n")


@pytest.mark.parametrize(
  "content",
  [b"", b"short\n", b"with a space 123456", b"\xff" * 20, b"a\nb" * 9],
)
def test_bad_tokens_are_told(tmp_path, capsys, content):
  path = tmp_path / "token"
  path.write_bytes(content)
  assert main.main(["serve", str(tmp_path), "--token-file", str(path)]) == 2
  error = capsys.readouterr().err
  assert str(path) in error and error.count("\n") == 1


def test_a_token_is_read_without_its_end_of_line(tmp_path):
  path = tmp_path / "token"
  path.write_text(f"{_TOKEN}\n")
  path.chmod(0o600)
  assert server_access.read_token(path, pytest.fail) == _TOKEN


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o444])
def test_a_secret_that_others_may_read_is_told(tmp_path, mode):
  _make_certificate(tmp_path)
  (tmp_path / "token").write_text(_TOKEN)
  said = []
  for name, read in (
    ("token", server_access.read_token),
    ("both.pem", lambda path, warn: server_access.tls(path, None, warn)),
  ):
    (tmp_path / name).chmod(mode)
    assert read(tmp_path / name, said.append)
    assert (
      f"may read the {'token' if name == 'token' else 'private'}" in (said[-1])
    )
    assert said[-1].endswith(f"run chmod 600 {tmp_path / name}")
  assert len(said) == 2 and not any(_TOKEN in line for line in said)


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_secret_that_others_may_write_is_refused(tmp_path, mode):
  _make_certificate(tmp_path)
  for name in ("token", "key.pem"):
    (tmp_path / name).touch()
    (tmp_path / name).chmod(mode)
  with pytest.raises(UserError, match="may write the token.*chmod 600"):
    server_access.read_token(tmp_path / "token", pytest.fail)
  certificate = tmp_path / "certificate.pem"
  with pytest.raises(UserError, match="may write the private key.*chmod 600"):
    server_access.tls(certificate, tmp_path / "key.pem", pytest.fail)


@pytest.mark.parametrize(
  "host, local",
  [
    ("127.0.0.1", True),
    ("127.1.2.3", True),
    ("localhost", True),
    ("::1", True),
    ("0.0.0.0", False),
    ("::", False),
    ("", False),
    ("192.0.2.1", False),
    ("nowhere.invalid", False),
  ],
)
def test_only_this_machine_is_local(host, local):
  assert server_access.is_local(host) == local


@pytest.mark.parametrize("host", ["0.0.0.0", "", "::"])
def test_letting_others_in_must_be_asked_for(tmp_path, capsys, host):
  assert main.main(["serve", str(tmp_path), "--host", host]) == 2
  error = capsys.readouterr().err
  assert "--token-file" in error and "--insecure" in error
  assert error.count("\n") == 1


@pytest.mark.parametrize(
  "flags, warning",
  [
    (["--insecure"], "everybody who reaches this machine can ask"),
    (["--token-file", "token"], "the token can be read on its way"),
    (["--certificate", "both.pem"], "without --token-file everybody can ask"),
    (["--certificate", "both.pem", "--token-file", "token"], ""),
  ],
)
def test_what_is_left_open_is_said(
  tmp_path, capsys, monkeypatch, flags, warning
):
  """And the command then goes on, to find that there is no policy."""
  monkeypatch.chdir(tmp_path)
  (tmp_path / "token").write_text(_TOKEN)
  (tmp_path / "token").chmod(0o600)
  _make_certificate(tmp_path)
  assert main.main(["serve", ".", "--host", "0.0.0.0", *flags]) == 2
  said = capsys.readouterr()
  assert "there is no exported policy" in said.err
  assert said.out.count("warning") == bool(warning) and warning in said.out


def _make_certificate(directory):
  """`both.pem`, and its parts `certificate.pem` and `key.pem`."""
  if shutil.which("openssl") is None:
    pytest.skip("there is no openssl to make a certificate with")
  files = ["-out", directory / "certificate.pem", "-keyout"]
  subprocess.run(
    ["openssl", "req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"]
    + ["-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost"]
    + ["-addext", "subjectAltName=IP:127.0.0.1"]
    + [*files, directory / "key.pem"],
    check=True,
    capture_output=True,
  )
  parts = [
    (directory / name).read_text() for name in ("certificate.pem", "key.pem")
  ]
  (directory / "both.pem").write_text("".join(parts))
  (directory / "both.pem").chmod(0o600)


def test_tls_answers_and_plain_http_does_not(run, tmp_path, caplog):
  _make_certificate(tmp_path)
  certificate = tmp_path / "certificate.pem"
  context = server_access.tls(certificate, tmp_path / "key.pem", pytest.fail)
  assert server_access.tls(tmp_path / "both.pem", None, pytest.fail)
  client = ssl.create_default_context(cafile=str(certificate))
  with serving_fixtures.serving(run / "export", tls=context) as server:
    for _ in range(2):
      connection = http.client.HTTPSConnection(
        "127.0.0.1", server.port, timeout=20, context=client
      )
      with contextlib.closing(connection):
        connection.request("GET", "/healthz")
        assert connection.getresponse().read() == b"ok\n"
      with (  # plain text, where a handshake is wanted
        contextlib.suppress(ConnectionError),
        socket.create_connection(("127.0.0.1", server.port), 20) as plain,
      ):
        plain.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"HTTP" not in plain.recv(4096)
    assert server.log == ["version 320 is served"]
  assert not [record for record in caplog.records if record.exc_info]


def _is_open(plain):
  """Whether the server still waits for this connection's handshake."""
  plain.settimeout(0.5)
  try:
    return plain.recv(1) != b""
  except TimeoutError:
    return True
  except ConnectionError:
    return False


def test_connections_that_never_shake_hands_are_counted(run, tmp_path):
  _make_certificate(tmp_path)
  context = server_access.tls(tmp_path / "both.pem", None, pytest.fail)
  client = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem"))
  limits = Limits(connections=3, seconds=3.0)
  with (
    serving_fixtures.serving(
      run / "export", tls=context, limits=limits
    ) as server,
    contextlib.ExitStack() as silent,
  ):
    address = ("127.0.0.1", server.port)
    opened = [
      silent.enter_context(socket.create_connection(address, 20))
      for _ in range(8)
    ]
    assert sum(map(_is_open, opened)) == 3
    # Once their time is over there is room again, and made ones leave it.
    deadline = time.monotonic() + 30
    for _ in range(5):
      answered = False
      while not answered and time.monotonic() < deadline:
        with (
          contextlib.suppress(OSError),
          contextlib.closing(
            http.client.HTTPSConnection(*address, timeout=5, context=client)
          ) as connection,
        ):
          connection.request("GET", "/healthz")
          answered = connection.getresponse().read() == b"ok\n"
      assert answered


def test_old_tls_is_refused(tmp_path):
  _make_certificate(tmp_path)
  context = server_access.tls(tmp_path / "both.pem", None, pytest.fail)
  assert context.minimum_version == ssl.TLSVersion.TLSv1_2


def test_bad_certificates_are_told(tmp_path):
  (tmp_path / "empty.pem").touch()
  for name in ("empty.pem", "nowhere.pem"):
    with pytest.raises(UserError, match=f"cannot use the certificate.*{name}"):
      server_access.tls(tmp_path / name, None, lambda text: None)


def test_a_key_without_its_certificate_is_told(tmp_path, capsys):
  assert main.main(["serve", str(tmp_path), "--key", "k.pem"]) == 2
  assert "--key needs --certificate" in capsys.readouterr().err
