"""Reads HLO text: what a compiled function computes, in which dtype, how much.

Loops count once, for how often they go round is not known. Of a conditional's
branches the one with the least work counts: the others are for rare cases.
"""

import functools
import math
import re
from typing import Dict, List, NamedTuple, Tuple

# Moves, names or makes numbers; computes none.
_FREE = {
  "bitcast",
  "broadcast",
  "call",
  "concatenate",
  "conditional",
  "constant",
  "copy",
  "dynamic-slice",
  "dynamic-update-slice",
  "gather",
  "get-tuple-element",
  "iota",
  "pad",
  "parameter",
  "reshape",
  "reverse",
  "scatter",
  "select",
  "slice",
  "transpose",
  "tuple",
  "while",
}
_HOST = {"infeed", "outfeed", "recv", "recv-done", "send", "send-done"}
_SHAPE = re.compile(r"([a-z]+\d*)\[([\d,]*)\]")
_HEAD = re.compile(r"^(ENTRY )?%(\S+) \(.*\{$")
_LINE = re.compile(r"^\s+(?:ROOT )?%(\S+) = (.*)$")
_CALLED = re.compile(
  r"(to_apply|body|condition|calls|true_computation|false_computation"
  r"|branch_computations)=\{?((?:%[^\s,}]+(?:, )?)+)"
)


class Array(NamedTuple):
  """The type of a tensor."""

  dtype: str
  shape: Tuple[int, ...]

  @property
  def size(self) -> int:
    """How many elements."""
    return math.prod(self.shape)


class Instruction(NamedTuple):
  """One line of a computation.

  Attributes:
    opcode: what it does.
    results: the types it gives, several if it is a tuple.
    operands: the types it takes.
    attributes: the rest of the line.
  """

  opcode: str
  results: List[Array]
  operands: List[Array]
  attributes: str

  def computes_in(self, dtype: str) -> bool:
    """Whether it computes with numbers of this dtype."""
    types = {array.dtype for array in (*self.results, *self.operands)}
    return dtype in types and self.opcode not in _FREE

  @property
  def work(self) -> int:
    """Elements it goes through; for a product, multiplications."""
    largest = max(array.size for array in (*self.results, *self.operands))
    summed = re.search(r"lhs_contracting_dims=\{([\d,]+)\}", self.attributes)
    if self.opcode != "dot" or not summed:
      return largest
    left = self.operands[0].shape
    dims = [left[int(axis)] for axis in summed[1].split(",")]
    return self.results[0].size * math.prod(dims)

  def called(self) -> Dict[str, List[str]]:
    """Attribute -> the computations that it names."""
    return {
      kind: re.findall(r"%([^\s,}]+)", names)
      for kind, names in _CALLED.findall(self.attributes)
    }


class Work(NamedTuple):
  """How much is computed in a dtype."""

  operations: int = 0
  elements: int = 0


class Module:
  """A whole module.

  Attributes:
    computations: name -> instructions.
    entry: the name of the computation that is called.
  """

  def __init__(self, text: str):
    """Parses what XLA prints."""
    self.computations: Dict[str, List[Instruction]] = {}
    self.entry = ""
    for line in text.splitlines():
      head = _HEAD.match(line)
      if head:
        inside = self.computations.setdefault(head[2], [])
        self.entry = head[2] if head[1] else self.entry
      elif found := _LINE.match(line):
        inside.append(_instruction(found[2]))
    self.work = functools.cache(self._work)

  def instructions(self) -> List[Instruction]:
    """All of them, of all branches."""
    return [one for part in self.computations.values() for one in part]

  def on_host(self) -> List[str]:
    """What a GPU leaves to the host or to a library of its own."""
    return [
      f"{one.opcode} {one.attributes}"
      for one in self.instructions()
      if one.opcode == "custom-call" or one.opcode in _HOST
    ]

  def _work(self, dtype: str, name: str = "") -> Work:
    """What a computation, the whole if none is named, does in a dtype."""
    parts = []
    for one in self.computations[name or self.entry]:
      if one.computes_in(dtype):
        parts.append(Work(1, one.work))
      called = one.called()
      if one.opcode in ("while", "call"):
        names = [name for group in called.values() for name in group]
        parts += [self.work(dtype, name) for name in names]
      elif one.opcode == "conditional":
        branches = [name for group in called.values() for name in group]
        least = min(
          (self.work(dtype, name) for name in branches),
          key=lambda work: work.elements,
        )
        parts.append(least)
    return Work(*map(sum, zip(*parts))) if parts else Work()


def _instruction(text: str) -> Instruction:
  """What stands behind `%name = `."""
  text = re.sub(r"/\*.*?\*/", "", text)
  types, rest = _balanced(text) if text[0] == "(" else text.split(" ", 1)
  opcode, rest = rest.strip().split("(", 1)
  operands, attributes = _balanced("(" + rest)
  return Instruction(opcode, _arrays(types), _arrays(operands), attributes)


def _arrays(text: str) -> List[Array]:
  return [
    Array(dtype, tuple(int(size) for size in shape.split(",") if size))
    for dtype, shape in _SHAPE.findall(text)
  ]


def _balanced(text: str) -> Tuple[str, str]:
  """Splits behind the parenthesis that closes the first."""
  depth = 0
  for place, letter in enumerate(text):
    depth += (letter == "(") - (letter == ")")
    if depth == 0:
      return text[: place + 1], text[place + 1 :]
  raise ValueError(f"a parenthesis is not closed in {text!r}")
