"""What `mmdrl tune` searches: settings, and the values they may have.

optimizer.learning_rate=1e-5..1e-3:log   a range, evenly by its logarithm
agent.n_step=1..5                        whole numbers, if the setting is one
network.dueling=true,false               some values
"""

import dataclasses
import json
from typing import Any, List, Optional, Sequence, Tuple

from tf_mmdrl.core import errors
from tf_mmdrl.train import config as configs
from tf_mmdrl.train.config import Config


@dataclasses.dataclass(frozen=True)
class Search:
  """A setting and its values.

  Attributes:
    name: group.field.
    bounds: the least and the largest value, if it is a range.
    is_log: whether a range is searched evenly by its logarithm.
    is_whole: whether it has whole numbers only.
    choices: the values as text, if it is no range.
  """

  name: str
  bounds: Optional[Tuple[float, float]] = None
  is_log: bool = False
  is_whole: bool = False
  choices: Sequence[str] = ()

  def suggest(self, trial: Any) -> str:
    """An Optuna trial's value, as text that gives the same number again."""
    if self.bounds is None:
      return trial.suggest_categorical(self.name, list(self.choices))
    low, high = self.bounds
    if self.is_whole:
      whole = (int(low), int(high))
      return str(trial.suggest_int(self.name, *whole, log=self.is_log))
    return repr(trial.suggest_float(self.name, low, high, log=self.is_log))


def parse(texts: Sequence[str], config: Config) -> List[Search]:
  """Reads `GROUP.FIELD=LOW..HIGH[:log]` and `GROUP.FIELD=A,B,C`.

  Args:
    texts: one for each setting.
    config: what is searched from, to tell whole numbers and what is allowed.

  Returns:
    The searches, each checked by a configuration with its least and largest, or
    each of its values.
  """
  check(texts)
  return [_parse_one(text, config) for text in texts]


def check(texts: Sequence[str]) -> None:
  """Raises for what is no search of settings, as far as no TensorFlow tells.

  What an algorithm's own settings may be is left to `parse`.
  """
  if not texts:
    raise errors.UserError(
      "a search needs --search GROUP.FIELD=LOW..HIGH[:log] at least once; for"
      " example --search optimizer.learning_rate=1e-5..1e-3:log"
    )
  names = [_parts(text)[0] for text in texts]
  for name in names:
    if names.count(name) > 1:
      raise errors.UserError(f"--search has {name} twice; leave one out")
    if name not in configs.shared_names() and not name.startswith("agent."):
      raise errors.unknown_name("setting", name, configs.shared_names())
  for text in texts:
    name, values = _parts(text)
    ends = _ends(name, values)
    if name in configs.shared_names():
      for end in ends:
        configs.check(Config(), [f"{name}={end}"])


def _ends(name: str, values: str) -> Sequence[str]:
  """The ends of a range, or all values of a list, as they are written."""
  if _is_range(values):
    _span(name, values)
    low, _, high = values.partition(":")[0].partition("..")
    return low.strip(), high.strip()
  ends = [value.strip() for value in values.split(",")]
  if len(set(ends)) < 2 or not all(ends):
    raise errors.UserError(
      f"--search {name} wants two or more values, got {values!r}"
    )
  return ends


def _is_range(values: str) -> bool:
  """Whether it is no list: a kernel in one may have dots, as in 1..10."""
  return ".." in values and "," not in values


def _span(name: str, text: str) -> Tuple[float, float, bool]:
  """The ends of `LOW..HIGH[:log]`, and whether it is by the logarithm."""
  span, colon, kind = text.partition(":")
  low_text, _, high_text = span.partition("..")
  try:
    low, high = float(low_text), float(high_text)
  except ValueError:
    low, high = 0.0, 0.0
  is_log = kind == "log"
  if not (low < high and (is_log or not colon) and (low > 0 or not is_log)):
    raise errors.UserError(
      f"--search {name} wants LOW..HIGH with LOW below HIGH, and :log behind"
      f" them only if LOW is above 0, got {text!r}"
    )
  return low, high, is_log


def _parts(text: str) -> Tuple[str, str]:
  """The setting and its values."""
  name, equals, values = (part.strip() for part in text.partition("="))
  if not equals or not values:
    raise errors.UserError(
      "a search is written GROUP.FIELD=LOW..HIGH[:log] or GROUP.FIELD=A,B,C,"
      f" got {text!r}"
    )
  return name, values


def _parse_one(text: str, config: Config) -> Search:
  name, values = _parts(text)
  known = dict(configs.fields(config))
  if name not in known:
    raise errors.unknown_name("setting", name, known)
  ends = _ends(name, values)
  if _is_range(values):
    search = _range(name, values, known[name])
  else:
    search = Search(name, choices=tuple(ends))
  for end in ends:
    configs.change(config, [f"{name}={end}"])
  return search


def _range(name: str, text: str, value: Any) -> Search:
  low, high, is_log = _span(name, text)
  if isinstance(value, (bool, str)):
    raise errors.UserError(
      f"{name} is {json.dumps(value)} and has no range; write its values,"
      f" {name}=A,B"
    )
  is_whole = isinstance(value, int)
  return Search(name, (low, high), is_log, is_whole)
