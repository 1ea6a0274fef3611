"""Kills a process at every moment at which it touches the disk, one by one."""

import os
import signal
import sys


def killed_at(event, act):
  """Whether a child that does `act` is killed at its n-th look at the disk."""
  child = os.fork()
  if child == 0:
    seen = [0]

    def count(name, args):
      if name.startswith(("os.", "shutil.", "open", "fcntl.")):
        seen[0] += 1
        if seen[0] == event + 1:
          os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)
    try:
      act()
    finally:
      os._exit(0)
  _, status = os.waitpid(child, 0)
  return os.WIFSIGNALED(status)
