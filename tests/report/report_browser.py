"""Chromium through chromedriver's own protocol; needs no other package."""

import base64
import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest

_OPTIONS = ["--headless=new", "--no-sandbox", "--disable-gpu"]
_OPTIONS += ["--disable-dev-shm-usage", "--hide-scrollbars"]
# Nothing is to be asked of the network but what a test opens.
_OPTIONS += ["--no-first-run", "--disable-background-networking"]
_OPTIONS += ["--disable-component-update", "--disable-sync", "--disable-quic"]


class Page:
  """An open page."""

  def __init__(self, session):
    self._session = session

  def open(self, path):
    self.open_address(path.as_uri())

  def open_address(self, address):
    _call("POST", f"{self._session}/url", {"url": address})

  def run(self, script, *args):
    body = {"script": script, "args": list(args)}
    return _call("POST", f"{self._session}/execute/sync", body)

  def emulate(self, width, height=900, scheme="light"):
    """A screen of that width, also below what a window can have."""
    metrics = dict(width=width, height=height, deviceScaleFactor=1, mobile=True)
    self._command("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    self._command("Emulation.setEmulatedMedia", {"features": features})

  def complaints(self):
    """What the console has since it was last asked."""
    log = _call("POST", f"{self._session}/se/log", {"type": "browser"})
    return [entry["message"] for entry in log]

  def screenshot(self, path):
    parameters = {"captureBeyondViewport": True}
    picture = self._command("Page.captureScreenshot", parameters)
    path.write_bytes(base64.b64decode(picture["data"]))

  def _command(self, name, parameters):
    body = {"cmd": name, "params": parameters}
    return _call("POST", f"{self._session}/goog/cdp/execute", body)


@contextlib.contextmanager
def chromium():
  """A page of a new browser; the test is skipped where there is none."""
  for name in ("chromium", "chromedriver"):
    if shutil.which(name) is None:
      pytest.skip(
        f"{name} is not installed (Debian: chromium, chromium-driver)"
      )
  with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
  driver = subprocess.Popen(
    ["chromedriver", f"--port={port}"],
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
  )
  try:
    session = _begin(f"http://127.0.0.1:{port}")
    try:
      yield Page(session)
    finally:
      _call("DELETE", session)
  finally:
    driver.terminate()
    driver.wait()


def _begin(address):
  wanted = {
    "goog:chromeOptions": {
      "args": _OPTIONS,
      "binary": shutil.which("chromium"),
    },
    "goog:loggingPrefs": {"browser": "ALL"},
  }
  body = {"capabilities": {"alwaysMatch": wanted}}
  deadline = time.monotonic() + 30
  while True:
    try:
      number = _call("POST", f"{address}/session", body)["sessionId"]
      return f"{address}/session/{number}"
    except urllib.error.HTTPError:
      raise
    except urllib.error.URLError:  # the driver is not listening yet
      if time.monotonic() > deadline:
        raise
      time.sleep(0.1)


def _call(method, url, body=None):
  data = None if body is None else json.dumps(body).encode()
  request = urllib.request.Request(
    url, data, {"Content-Type": "application/json"}, method=method
  )
  with urllib.request.urlopen(request, timeout=60) as answer:
    return json.load(answer)["value"]
