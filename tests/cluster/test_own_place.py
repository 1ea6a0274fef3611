"""What a killed process leaves in its directory goes with the next one."""

import os
import pathlib
import subprocess
import sys

from tf_mmdrl.cluster import own_place


def test_a_place_goes_with_its_process(tmp_path, monkeypatch):
  monkeypatch.setattr(own_place, "_NEW", 0.0)
  code = (
    "import os, pathlib, sys; from tf_mmdrl.cluster import own_place;"
    "place = own_place.OwnPlace('p-', pathlib.Path(sys.argv[1]));"
    "print(place.path, flush=True); os.kill(os.getpid(), 9)"
  )
  path = os.pathsep.join([str(pathlib.Path.cwd()), *sys.path])
  done = subprocess.run(
    [sys.executable, "-c", code, str(tmp_path)],
    capture_output=True,
    text=True,
    env={**os.environ, "PYTHONPATH": path},
  )
  left = pathlib.Path(done.stdout.strip())
  assert left.is_dir() and left.parent == tmp_path, done.stderr
  first = own_place.OwnPlace("p-", tmp_path)
  second = own_place.OwnPlace("p-", tmp_path)
  assert not left.exists()
  assert first.path.is_dir() and second.path.is_dir()
  assert first.path.stat().st_mode & 0o777 == 0o700
  first.close()
  second.close()
  assert not list(tmp_path.iterdir())
