"""The parser of `mmdrl`: help that fits a screen, errors of one line.

Options of a group called `MORE` are shown by `--help-all` alone.
"""

import argparse
import re
import sys
import textwrap
from typing import Any, Dict, Iterator, List, NoReturn, Optional, Sequence

from absl.flags import argparse_flags

from tf_mmdrl.cli import output
from tf_mmdrl.core import errors
from tf_mmdrl.train import config as configs

MORE = "more options"
_LISTED = re.compile("[^,]*,+|[^,]+")


class Parser(argparse_flags.ArgumentParser):
  """absl's parser, so that its own flags work too, with other help.

  Attributes:
    example: commands to show, one a line.
    page: of the documentation.
  """

  example = ""
  page = ""

  def __init__(self, **keywords: Any):
    keywords.setdefault("formatter_class", _Formatter)
    super().__init__(**keywords)
    self._given: Sequence[str] = ()
    self.add_argument(
      "--help-all",
      action=_HelpAll,
      nargs=0,
      default=argparse.SUPPRESS,
      help=argparse.SUPPRESS,
    )
    for action in self._actions:  # everybody knows -h; few want absl's flags
      if {"--help", "--helpfull"} & set(action.option_strings):
        action.help = argparse.SUPPRESS

  def parse_known_args(self, args=None, namespace=None) -> Any:
    """As argparse's; keeps the words for `error`."""
    self._given = sys.argv[1:] if args is None else list(args)
    return super().parse_known_args(args, namespace)

  def add_subparsers(self, **keywords: Any) -> Any:
    """As argparse's, which would take the usage for the program's name."""
    keywords.setdefault("prog", self.prog)
    return super().add_subparsers(**keywords)

  def format_help(self) -> str:
    """The help that fits a screen."""
    return self.full_help(everything=False)

  def full_help(self, *, everything: bool = True) -> str:
    """The help.

    Args:
      everything: whether to show the group MORE as well.
    """
    formatter = self._get_formatter()
    formatter.add_usage(self.usage, self._actions, [])
    formatter.add_text(self.description)
    hidden = False
    for group in self._action_groups:
      if group.title == MORE and not everything:
        hidden = True
        continue
      formatter.start_section(group.title)
      formatter.add_text(group.description)
      formatter.add_arguments(group._group_actions)
      formatter.end_section()
    return formatter.format_help() + "".join(
      f"{line}\n" for line in self._ending(hidden)
    )

  def _ending(self, hidden: bool) -> Iterator[str]:
    """What stands below the options."""
    if self.example or self.page or hidden:
      yield ""
    for line in self.example.splitlines():
      yield f"example: {line}"
    if hidden:
      yield f"{MORE}: {self.prog} --help-all"
    if self.page:
      yield f"documentation: {self.page}"

  def error(self, message: str) -> NoReturn:
    """One line, and where to look, unless it says that already."""
    wrong = [word for word in self._given if self._is_wrong(word)]
    if wrong and "required" in message:  # a misspelt flag is the likelier cause
      self.refuse(wrong)
    hint = "" if message.endswith("?") else f"; see {self.prog} --help"
    self.exit(2, f"{self.prog}: {message}{hint}\n")

  def refuse(self, unknown: Sequence[str]) -> NoReturn:
    """Says what the nearest flag is to one that there is not.

    Args:
      unknown: words that no option took.
    """
    for action in self._actions:  # the flags of a task, if there are tasks
      if isinstance(action, argparse._SubParsersAction):
        for word in self._given:
          if word in action.choices:
            action.choices[word].refuse(unknown)
    word = next((w for w in unknown if w.startswith("-")), unknown[0])
    if not word.startswith("-"):
      self.error(f"there is no place for {word!r}")
    known = [flag for flag in self._flags() if flag.startswith("--")]
    name = word.partition("=")[0]
    near = errors.nearest(name, known, cutoff=0.6)
    if "--set" in known:  # --learning-rate 1e-3
      field = name.lstrip("-").replace("-", "_")
      settings = errors.nearest(field, configs.shared_names(), cutoff=0.9)
      near = [f"--set {setting}=..." for setting in settings] or near
    hint = f"see {self.prog} --help-all"
    if near:
      hint = f"did you mean {' or '.join(near)}?"
    self.exit(2, f"{self.prog}: unknown flag {word}; {hint}\n")

  def _check_value(self, action: argparse.Action, value: Any) -> None:
    """As argparse's; offers what is near."""
    if action.choices is None or value in action.choices:
      return
    known = list(map(str, action.choices))
    near = errors.nearest(str(value), known)
    hint = f"choose from {', '.join(known)}"
    if near:
      hint = f"did you mean {' or '.join(map(repr, near))}?"
    raise argparse.ArgumentError(action, f"invalid choice: {value!r}; {hint}")

  def options(self) -> List[argparse.Action]:
    """The options that help shows."""
    return [
      action
      for action in self._actions
      if action.option_strings and action.help is not argparse.SUPPRESS
    ]

  def _is_wrong(self, word: str) -> bool:
    """Whether it is a flag that there is not, also not in part."""
    name = word.partition("=")[0]
    known = self._option_string_actions
    return name.startswith("--") and not any(f.startswith(name) for f in known)

  def _flags(self) -> List[str]:
    return [f for action in self.options() for f in action.option_strings]


def more(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
  """The group of options that few need, of which there is one."""
  for group in parser._action_groups:
    if group.title == MORE:
      return group
  return parser.add_argument_group(MORE)


class _HelpAll(argparse.Action):
  def __call__(self, parser, namespace, values, option_string=None):
    print(parser.full_help(), end="")
    parser.exit()


class _Formatter(argparse.ArgumentDefaultsHelpFormatter):
  """Short usage, one spelling of an option, defaults that say something."""

  def __init__(self, prog: str):
    # argparse leaves two columns free, and nothing of a terminal of one.
    super().__init__(prog, max_help_position=25, width=output.width() - 2)

  def add_argument(self, action: argparse.Action) -> None:
    """Leaves room for the names of commands, which argparse takes for less."""
    super().add_argument(action)
    for indented in self._iter_indented_subactions(action):
      length = self._current_indent + len(
        self._format_action_invocation(indented)
      )
      self._action_max_length = max(self._action_max_length, length)

  def _format_usage(self, usage, actions, groups, prefix) -> str:
    del usage, groups, prefix
    words = [self._prog]
    for action in actions:
      if not action.option_strings:
        words += self._format_args(action, action.dest).split()
      elif action.required:
        words.append(f"{action.option_strings[0]} {_metavar(action)}")
    if any(action.option_strings for action in actions):
      words.append("[options]")
    lines = textwrap.wrap(
      " ".join(["usage:", *words]), self._width, subsequent_indent="  "
    )
    return "\n".join(lines) + "\n\n"

  def _format_action_invocation(self, action: argparse.Action) -> str:
    if not action.option_strings:
      return super()._format_action_invocation(action)
    every = action.option_strings
    opposites = {f"--no-{name[2:]}" for name in every}
    names = ", ".join(name for name in every if name not in opposites)
    return names if action.nargs == 0 else f"{names} {_metavar(action)}"

  def _get_help_string(self, action: argparse.Action) -> Optional[str]:
    default = action.default
    if default is None or default is False or default == []:
      return action.help
    if "if left out" in (action.help or ""):  # that says it
      return action.help
    return super()._get_help_string(action)

  def _split_lines(self, text: str, width: int) -> List[str]:
    wrapper = _Wrapper(width, break_on_hyphens=False, break_long_words=False)
    return wrapper.wrap(" ".join(text.split()))


class _Wrapper(textwrap.TextWrapper):
  """Breaks words that are too long behind their commas, and nowhere else."""

  def _split(self, text: str) -> List[str]:
    return [
      part
      for word in super()._split(text)
      for part in ([word] if len(word) <= self.width else _LISTED.findall(word))
    ]


def _metavar(action: argparse.Action) -> str:
  if action.choices is not None and action.metavar is None:
    return "|".join(map(str, action.choices))
  kinds: Dict[Any, str] = {int: "N", float: "X"}
  return str(action.metavar or kinds.get(action.type, action.dest.upper()))
