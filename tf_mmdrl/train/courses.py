"""Digests of what environments returned; equal games have equal digests."""

import hashlib
import zlib

import numpy as np
from tf_agents.trajectories import time_step as ts


def add(course: int, time_step: ts.TimeStep) -> int:
  """A checksum of a course and one more step of it."""
  for part in (time_step.step_type, time_step.reward):
    course = zlib.crc32(np.asarray(part).tobytes(), course)
  return course


def digest(time_step: ts.TimeStep) -> str:
  """The SHA-256 of all that a time step holds."""
  seen = hashlib.sha256()
  for part in time_step:
    seen.update(np.ascontiguousarray(part).tobytes())
  return seen.hexdigest()


def add_all(course: int, time_step: ts.TimeStep) -> int:
  """As `add`, of all that the step holds."""
  for part in time_step:
    course = zlib.crc32(np.ascontiguousarray(part).tobytes(), course)
  return course
