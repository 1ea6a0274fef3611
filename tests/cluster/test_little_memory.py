"""Ray where /dev/shm is small, as in containers, or full."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).parents[2]
_CODE = """
import sys
import numpy as np
from tf_mmdrl.cluster import connection

with connection.local(1, object_store=150):
  import ray

  if sys.argv[1] == "full":
    try:
      with open("/dev/shm/filler", "wb") as file:
        while True:
          file.write(bytes(1_000_000))
    except OSError:
      print("is full", flush=True)

  @ray.remote(num_cpus=1)
  def more(values):
    return values + 1

  for size in (20_000_000, 40_000_000, 20_000_000):
    there = ray.put(np.zeros(size, np.uint8))
    assert ray.get(more.remote(there), timeout=120).sum() == size
  print("all came back")
"""

pytestmark = [
  pytest.mark.slow,
  pytest.mark.skipif(
    os.getuid() != 0 or not shutil.which("unshare"),
    reason="only root mounts a memory of its own",
  ),
]


@pytest.mark.parametrize("how, size", [("small", "64m"), ("full", "200m")])
def test_chunks_travel_all_the_same(how, size):
  mount = f"mount -t tmpfs -o size={size} none /dev/shm"
  done = subprocess.run(
    ["unshare", "-m", "sh", "-c", f'{mount} && exec "$@"', "sh"]
    + [sys.executable, "-c", _CODE, how],
    stdout=subprocess.PIPE,
    stderr=subprocess.STDOUT,
    text=True,
    cwd=_ROOT,
    timeout=900,
  )
  assert done.returncode == 0 and "all came back" in done.stdout, done.stdout
  assert ("is full" in done.stdout) == (how == "full")
