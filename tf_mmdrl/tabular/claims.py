"""What the theory measurements hand back."""

import dataclasses
from typing import Dict, List, Tuple

import numpy as np


@dataclasses.dataclass(frozen=True)
class Claim:
  """One line of theory.csv.

  Attributes:
    claim: which statement of the paper.
    setting: what it was tried on.
    measured: the figure.
    bound: what the paper says it is compared with.
    holds: whether the measurement agrees with the paper.
  """

  claim: str
  setting: str
  measured: float
  bound: float
  holds: bool


# A panel's curves: label -> (x, y).
Curves = Dict[str, Tuple[np.ndarray, np.ndarray]]


@dataclasses.dataclass(frozen=True)
class Result:
  """Measured claims, and what to draw of them.

  Attributes:
    claims: the claims in the order to print.
    curves: panel -> its curves.
  """

  claims: List[Claim]
  curves: Dict[str, Curves]
