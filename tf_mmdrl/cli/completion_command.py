"""`mmdrl completion`: commands, flags and names for the Tab key of a shell."""

import argparse
import textwrap
from typing import Dict, List, NamedTuple

from tf_mmdrl import zoo
from tf_mmdrl.cli import main
from tf_mmdrl.core import algorithms
from tf_mmdrl.train import presets

EXAMPLE = """source <(mmdrl completion bash)
mmdrl completion fish > ~/.config/fish/completions/mmdrl.fish"""
PAGE = "docs/install.md"
_SHELLS = ("bash", "zsh", "fish")


# Commands that take a policy where no flag is, and flags that take one.
_OF_POLICIES = ("evaluate", "watch", "play", "serve", "record", "zoo")
_POLICY_FLAGS = ("--policy", "--policies")


class Flag(NamedTuple):
  """An option of a command.

  Attributes:
    name: with its dashes.
    text: a line on it.
    takes: whether a value follows.
    values: those that can be completed.
  """

  name: str
  text: str
  takes: bool
  values: List[str]


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl completion`."""
  parser.add_argument("shell", choices=_SHELLS, help="the shell to write for")


def run(args: argparse.Namespace) -> int:
  """Prints the script."""
  write = {"bash": bash, "zsh": zsh, "fish": fish}[args.shell]
  print(write(every_flag()), end="")
  return 0


def every_flag() -> Dict[str, List[Flag]]:
  """The flags of each command."""
  known = {
    "--agent": algorithms.names(),
    "--preset": list(presets.PRESETS),
    **dict.fromkeys(_POLICY_FLAGS, [*policies(), "random"]),
  }
  root, found = main.root_parser(), {}
  for command, parser in root.commands.items():
    main.load(command, parser)
    found[command] = [
      Flag(
        name,
        _first_words(action.help or ""),
        action.nargs != 0,
        known.get(name, list(map(str, action.choices or ()))),
      )
      for action in parser.options()
      for name in action.option_strings
      if name.startswith("--")
    ]
  return found


def policies() -> List[str]:
  """What stands for the policies of the zoo."""
  return [f"{zoo.PREFIX}{name}" for name in zoo.entries()]


def bash(flags: Dict[str, List[Flag]]) -> str:
  """A function that fills COMPREPLY."""
  by_command = "\n".join(
    f'    {command}) flags="{" ".join(flag.name for flag in own)}" ;;'
    for command, own in flags.items()
  )
  values = "\n".join(
    f'    {name}) words="{" ".join(those)}" ;;'
    for name, those in _values(flags).items()
  )
  return f"""\
# Completes mmdrl in bash: source <(mmdrl completion bash)
_mmdrl() {{
  local word="${{COMP_WORDS[COMP_CWORD]}}" flags="" words="" whole reply
  if (( COMP_CWORD == 1 )); then
    COMPREPLY=( $(compgen -W "{" ".join(flags)}" -- "$word") )
    return
  fi
  case "${{COMP_WORDS[COMP_CWORD-1]}}" in
{values}
  esac
  if [[ -n $words ]]; then
    COMPREPLY=( $(compgen -W "$words" -- "$word") )
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{by_command}
  esac
  if [[ $word == -* ]]; then
    COMPREPLY=( $(compgen -W "$flags" -- "$word") )
    return
  fi
  COMPREPLY=()
  case "${{COMP_WORDS[1]}}" in
    {"|".join(_OF_POLICIES)}) words="{" ".join(policies())}" ;;
  esac
  if [[ -n $words ]]; then
    # Bash takes a colon for the end of a word: what stands before it stays.
    whole="${{COMP_LINE:0:COMP_POINT}}" whole="${{whole##* }}"
    for reply in $(compgen -W "$words" -- "$whole"); do
      COMPREPLY+=( "${{reply#"${{whole%"$word"}}"}}" )
    done
    [[ $word == : ]] && COMPREPLY=( "${{COMPREPLY[@]#:}}" )
    COMPREPLY+=( $(compgen -f -- "$word") )
  fi
}}
complete -o bashdefault -o default -F _mmdrl mmdrl
"""


def zsh(flags: Dict[str, List[Flag]]) -> str:
  """A function of zsh's own completion."""
  commands = " ".join(
    _quoted(f"{name}:{text}") for name, text in main.COMMANDS.items()
  )
  by_command = "\n".join(
    f"    {command}) flags=("
    + " ".join(_quoted(f"{flag.name}:{flag.text}") for flag in own)
    + ") ;;"
    for command, own in flags.items()
  )
  values = "\n".join(
    f"    {name}) compadd -- {' '.join(those)}; return ;;"
    for name, those in _values(flags).items()
  )
  return f"""\
#compdef mmdrl
# Completes mmdrl in zsh: source <(mmdrl completion zsh)
_mmdrl() {{
  local -a commands flags
  commands=({commands})
  if (( CURRENT == 2 )); then
    _describe command commands
    return
  fi
  case $words[CURRENT-1] in
{values}
  esac
  case $words[2] in
{by_command}
  esac
  if [[ $words[CURRENT] == -* ]]; then
    _describe option flags
  else
    case $words[2] in
    {"|".join(_OF_POLICIES)}) compadd -- {" ".join(policies())} ;;
    esac
    _files
  fi
}}
compdef _mmdrl mmdrl
"""


def fish(flags: Dict[str, List[Flag]]) -> str:
  """A line for each command and each flag."""
  lines = ["# Completes mmdrl in fish: mmdrl completion fish | source"]
  for command, own in flags.items():
    text = _quoted(main.COMMANDS[command])
    lines.append(
      f"complete -c mmdrl -n __fish_use_subcommand -f -a {command} -d {text}"
    )
    seen = f"'__fish_seen_subcommand_from {command}'"
    if command in _OF_POLICIES:
      lines.append(f"complete -c mmdrl -n {seen} -a '{' '.join(policies())}'")
    for flag in own:
      takes = " -r" if flag.takes else ""
      values = f" -f -a '{' '.join(flag.values)}'" if flag.values else ""
      lines.append(
        f"complete -c mmdrl -n {seen} -l {flag.name[2:]}{takes}{values}"
        f" -d {_quoted(flag.text)}"
      )
  return "\n".join(lines) + "\n"


def _values(flags: Dict[str, List[Flag]]) -> Dict[str, List[str]]:
  """The values that follow a flag; a flag means the same in all commands."""
  return {
    flag.name: flag.values
    for own in flags.values()
    for flag in own
    if flag.values
  }


def _first_words(text: str) -> str:
  """So much of a help line as has room in a list."""
  return textwrap.shorten(text.replace("%%", "%"), 60, placeholder="...")


def _quoted(text: str) -> str:
  """For a shell; zsh splits at a colon, of which only the first may stay."""
  name, colon, rest = text.partition(":")
  text = name + colon + rest.replace(":", " ")
  return "'" + text.replace("'", "’") + "'"
