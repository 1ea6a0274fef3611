"""What odd environments keep in a module that theirs imports.

`importlib.reload` makes all of it anew, as a new process would.
"""

import array
import contextvars
import ctypes
import enum
import functools
import itertools
import mmap
import random
import types

import numpy as np

NUMBERS = {"number": 0}
GENERATOR = random.Random()
STREAMS = {"nested": [np.random.default_rng()]}
CYCLE = itertools.cycle(range(7))
CHAIN = itertools.chain.from_iterable([[3], range(10**6)])
ARRAY = array.array("l", [0])
BUFFER = (ctypes.c_int * 2)()
PAGE = mmap.mmap(-1, 8)
VIEWED = np.zeros(4)
LISTED: list = []
SPACE = types.SimpleNamespace(number=0)
VARIABLE = contextvars.ContextVar("VARIABLE", default=0)


class Color(enum.Enum):
  """Its members hold more than their values."""

  RED = 1


Color.RED.number = 0  # type: ignore[attr-defined]


class Slotted:
  """Has no dict of attributes."""

  __slots__ = ("number",)

  def __init__(self):
    self.number = 0


SLOTTED = Slotted()


class Descriptor:
  """Counts for its owners."""

  def __init__(self):
    self.number = 0

  def __get__(self, owner, kind=None):
    self.number += 1
    return self.number


class Counting(type):
  """A class of classes that counts."""

  number = 0


def _counter():
  number = 0

  def count():
    nonlocal number
    number += 1
    return number

  return count


count = _counter()


def _numbers():
  yield from itertools.count()


RUNNING = _numbers()


@functools.cache
def drawn(key):
  """Whatever came first."""
  return GENERATOR.random() + key


@functools.lru_cache(maxsize=8)
def squared(key):
  """The same in all processes."""
  return key * key
