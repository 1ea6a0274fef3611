"""The `mmdrl` command: finds the subcommand, shows errors as one line.

A subcommand is a module with `add_arguments(parser)`, `run(args) -> int`, an
`EXAMPLE` and the `PAGE` of its documentation. It imports TensorFlow inside
`run`, so that help and bad flags answer at once.
"""

import contextlib
import importlib
import io
import os
import sys
from typing import Any, Callable, Dict, List, Optional, Sequence

from absl import logging  # noqa: F401  (its flags: --verbosity, --logtostderr)

from tf_mmdrl import version
from tf_mmdrl.cli import output, parsing
from tf_mmdrl.core import errors, exit_codes, notices

# Subcommand -> the line `mmdrl --help` shows for it.
COMMANDS: dict[str, str] = {
  "train": "Train an agent, or go on with a run that was stopped.",
  "ls": "List runs with their state, step, score and age.",
  "inspect": "Show where a run stands: its step, its score, its policies.",
  "evaluate": "Play games with a policy of a run and print the scores.",
  "export": "Export the newest policy of a run as a SavedModel.",
  "serve": "Serve exported policies over HTTP, as TensorFlow Serving does.",
  "play": "Play games with an exported policy without its run.",
  "watch": "Write a video of games beside the return distributions.",
  "record": "Play policies and log their episodes as a data set.",
  "ope": "Estimate what policies would return from logged data.",
  "zoo": "List the trained policies that come with the package.",
  "agents": "List the algorithms, or show one with its paper and settings.",
  "sweep": "Train games x agents x seeds, or go on with such a sweep.",
  "compare": "Print a table of agents with intervals over seeds.",
  "tune": "Search settings by short runs, or go on with such a search.",
  "cluster": "Start, join, show or stop a cluster of machines.",
  "report": "Write tables and figures of runs beside the published scores.",
  "calibrate": "Compare predicted return distributions with returns played.",
  "tensorboard": "Start TensorBoard on runs, with the scores first.",
  "doctor": "Show what this machine has and lacks, and how fast it is.",
  "presets": "List the presets of training, or show one with all settings.",
  "chain": "Run the paper's chain experiment: learnt and exact moments.",
  "theory": "Measure what the paper's theorems claim.",
  "completion": "Print what completes mmdrl at the Tab key of a shell.",
}

# Those that the short help has a line for; it names the others.
_EVERYDAY = (
  "train",
  "ls",
  "inspect",
  "evaluate",
  "watch",
  "report",
  "export",
  "serve",
  "zoo",
  "agents",
  "presets",
  "doctor",
)

EXIT_OK = exit_codes.OK
EXIT_BAD_INPUT = exit_codes.BAD_INPUT
EXIT_STOPPED = exit_codes.STOPPED
EXIT_INTERRUPTED = exit_codes.INTERRUPTED


def main(argv: Optional[Sequence[str]] = None) -> int:
  """Runs the command line; returns the exit code."""
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")  # before TensorFlow
  # A name that cannot be printed as it is, of a file say, is printed otherwise.
  if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
    sys.stdout.reconfigure(errors="backslashreplace")
  words = sys.argv[1:] if argv is None else list(argv)
  return _outcome(lambda: _run(words))


def _run(argv: List[str]) -> int:
  """Finds the command and runs it."""
  parser = root_parser()
  if not argv:
    print(parser.format_help(), end="")
    return EXIT_OK
  name = next((word for word in argv if word in COMMANDS), None)
  if name is None and not argv[0].startswith("-"):
    print(
      f"mmdrl: {errors.unknown_name('command', argv[0], COMMANDS)}",
      file=sys.stderr,
    )
    return EXIT_BAD_INPUT
  chosen: parsing.Parser = parser
  if name is not None:
    chosen = parser.commands[name]
    load(name, chosen)
  args, unknown = parser.parse_known_args(argv)
  if unknown:
    chosen.refuse(unknown)
  if name is None:
    parser.error("a command is wanted")
  return args.run(args)


def _outcome(run: Callable[[], int]) -> int:
  """Calls a command; the exit code, after one line if it fails."""
  code = EXIT_OK
  try:
    code = run()
    sys.stdout.flush()  # at the end of the process nobody could say why not
    return code
  except errors.UserError as error:
    notices.note(str(error))
    return EXIT_BAD_INPUT
  except MemoryError as error:
    notices.note(
      f"out of memory: {error}; a smaller replay.capacity,"
      " environment.num_envs or network.num_particles may help"
    )
    return EXIT_BAD_INPUT
  except KeyboardInterrupt:
    if sys.stderr.isatty():  # which shows ^C
      notices.show("\n")
    notices.note("interrupted")
    return EXIT_INTERRUPTED
  except BrokenPipeError:  # `mmdrl ... | head`
    _forget_output()
    return code
  except OSError as error:
    _forget_output()
    notices.note(f"the system refuses: {error.strerror or error}{_at(error)}")
    return EXIT_BAD_INPUT


def _at(error: OSError) -> str:
  """What a failed call was about."""
  names = [repr(name) for name in (error.filename, error.filename2) if name]
  if not names:
    return "; is there room for what this command prints?"
  return f": {' -> '.join(names)}"


def _forget_output() -> None:
  """Drops what could not be printed, or Python would try again at its end."""
  with contextlib.suppress(OSError, ValueError):
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _RootParser(parsing.Parser):
  """The parser of `mmdrl` itself.

  Attributes:
    commands: their parsers, by name.
  """

  page = "docs/index.md"

  def __init__(self, **keywords: Any):
    super().__init__(**keywords)
    self.commands: Dict[str, parsing.Parser] = {}

  def format_help(self) -> str:
    """The help that fits a screen."""
    others = [name for name in COMMANDS if name not in _EVERYDAY]
    rows = [(f"  {name}", COMMANDS[name]) for name in _EVERYDAY]
    lines = [
      f"usage: {self.prog} COMMAND [options]",
      "",
      *output.wrapped(self.description or ""),
      "",
      "commands:",
      *output.two_columns(rows),
      *output.wrapped(" ".join(others), "  others: ", "    "),
      "",
      "example: mmdrl train --env CartPole-v1",
      "more: mmdrl [COMMAND] --help, --help-all",
      f"documentation: {self.page}",
    ]
    return "\n".join(lines) + "\n"


def root_parser() -> _RootParser:
  """The parser, with commands that have no options yet: see `load`."""
  parser = _RootParser(
    prog="mmdrl",
    description="Distributional RL via moment matching (MMDQN).",
    # Or it would take `train --log` for one of absl's flags, cut short.
    allow_abbrev=False,
  )
  parser.add_argument(
    "--version", action="version", version=f"%(prog)s {version.__version__}"
  )
  commands = parser.add_subparsers(
    title="commands",
    metavar="COMMAND",
    parser_class=parsing.Parser,
  )
  for name, help_line in COMMANDS.items():
    parser.commands[name] = commands.add_parser(
      name, help=help_line, description=help_line
    )
  return parser


def load(name: str, parser: parsing.Parser) -> None:
  """Gives a command's parser its options; the other modules stay unloaded."""
  module = importlib.import_module(f"tf_mmdrl.cli.{name}_command")
  module.add_arguments(parser)
  parser.example, parser.page = module.EXAMPLE, module.PAGE
  parser.set_defaults(run=module.run)
