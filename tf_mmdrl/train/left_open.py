"""What a command leaves open, a run that goes on keeps as it began.

The same words may stand for other settings in a later version, because presets
and algorithms have other defaults there. That must not orphan a run, so
config.json has the words beside the settings that they stood for.
"""

import json
from typing import Any, Callable, Dict, List, NamedTuple, Optional

from tf_mmdrl.core import run_records
from tf_mmdrl.train import config as configs

# What a run without words is told apart by: other values, another run.
_DECISIVE = ("environment.name", "agent.name", "system.seed", "replay.data")


class Words(NamedTuple):
  """What was typed to train a run.

  Attributes:
    preset: its name, typed or chosen for the environment.
    settings: the names of the settings that were typed, as flags or by --set.
  """

  preset: str
  settings: List[str]


def of_record(description: Dict[str, Any]) -> Optional[Words]:
  """The words in a config.json; None if the version had none."""
  found = description.get("command")
  return Words(found["preset"], list(found["settings"])) if found else None


def record(before: Optional[Words], now: Optional[Words]) -> Dict[str, Any]:
  """What config.json says of the words, if there are any."""
  both = [words for words in (before, now) if words]
  if not both:
    return {}
  typed = sorted({name for words in both for name in words.settings})
  return {"command": {"preset": both[-1].preset, "settings": typed}}


def as_begun(
  before: configs.Config,
  config: configs.Config,
  old_words: Optional[Words],
  words: Words,
  note: Callable[[str], None],
) -> configs.Config:
  """What the words stand for, with what they leave open as the run began.

  Args:
    before: the run's settings, completed.
    config: what the words stand for now, completed.
    old_words: those that the run was last trained with, if they are known.
    words: those of now.
    note: told of the settings that stay, in one text.

  Returns:
    `config`, unless the words are the same and stood for something else. What
    was typed, now or then, is not changed here.
  """
  old, new = dict(configs.fields(before)), dict(configs.fields(config))
  differ = [name for name in old if name in new and old[name] != new[name]]
  if old_words is None:
    is_another = any(name in _DECISIVE for name in differ)
    order = new["system.order"]
    free = [name for name in differ if run_records.may_change(name, order)]
    typed = {*words.settings, *free}
  else:
    is_another = old_words.preset != words.preset
    typed = {*words.settings, *old_words.settings}
  # The horizon is set when a run begins, if it is not typed.
  stay = [n for n in differ if n not in typed and n != "schedule.horizon"]
  if is_another or not stay:
    return config
  shown = [
    f"{name} is {json.dumps(old[name])} (by default {json.dumps(new[name])})"
    for name in stay
  ]
  note(
    "the run keeps settings that have other defaults since it began:"
    f" {'; '.join(shown)}"
  )
  return configs.change(config, [f"{name}={old[name]}" for name in stay])
