"""`mmdrl train`: trains an agent, or goes on training it."""

import argparse
import contextlib
import math
import pathlib
import shlex
from typing import TYPE_CHECKING, Any, Iterator, List, Optional, Tuple

from tf_mmdrl.cli import (
  data_training,
  dry_run,
  main,
  output,
  parsing,
  quiet,
)
from tf_mmdrl.core import algorithms, errors, notices, score_text
from tf_mmdrl.environments import names
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import outside_loggers, presets

if TYPE_CHECKING:
  from tf_mmdrl.train import trainer
  from tf_mmdrl.train.run_directory import RunDirectory

# Flag -> the setting it is short for.
_SHORT = {
  "env": "environment.name",
  "agent": "agent.name",
  "steps": "schedule.steps",
  "seed": "system.seed",
  "num_envs": "environment.num_envs",
  "actors": "system.actors",
  "order": "system.order",
  "support": "replay.support",
}


EXAMPLE = "mmdrl train --env Pong --agent iqn --seed 1"
PAGE = "docs/training.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl train`."""
  parser.add_argument(
    "--env",
    help="the game, or the id of a Gymnasium environment; MinAtar/Breakout if"
    " left out",
  )
  parser.add_argument(
    "--agent", help="the algorithm, which mmdrl agents lists; mmdqn if left out"
  )
  parser.add_argument(
    "--preset",
    metavar="NAME",
    help="settings to begin with, which mmdrl presets lists; chosen by the game"
    " if left out",
  )
  parser.add_argument(
    "--data",
    metavar="DATASET",
    help=(
      "logged episodes to learn from instead of playing; --env is then played"
      " to evaluate, and nothing is if it is left out"
    ),
  )
  parser.add_argument(
    "--steps",
    metavar="N",
    help="steps over all environments; the preset's if left out",
  )
  parser.add_argument(
    "--seed", metavar="N", help="seed of all that is random; 0 if left out"
  )
  parser.add_argument(
    "--run-dir",
    metavar="DIR",
    help="the run's directory; runs/GAME-AGENT-PRESET-seedSEED if left out",
  )
  parser.add_argument(
    "--set",
    action="append",
    default=[],
    metavar="SETTING",
    help="GROUP.FIELD=VALUE, a change of any setting that mmdrl presets NAME"
    " shows; may be repeated",
  )
  parser.add_argument(
    "--dry-run",
    action="store_true",
    help="train nothing; show the settings, and the memory, disk and time that"
    " the run would take",
  )
  _add_more(parsing.more(parser))


def _add_more(parser: argparse._ActionsContainer) -> None:
  parser.add_argument(
    "--support",
    metavar="SHARE",
    help=(
      "with --data: choose among actions only that the data takes at least"
      " SHARE times as often as the most frequent one, such as 0.3"
    ),
  )
  parser.add_argument(
    "--num-envs",
    metavar="N",
    help="how many environments are played at the same time in training; the"
    " preset's if left out",
  )
  parser.add_argument(
    "--actors",
    metavar="N",
    help=(
      "how many processes play, on this machine or, with --cluster, on"
      " several; they share the environments of --num-envs; if left out, none"
      " but this one plays"
    ),
  )
  parser.add_argument(
    "--cluster",
    metavar="ADDRESS",
    help="HOST:PORT that mmdrl cluster start printed; the processes of"
    " --actors then run on the cluster's machines",
  )
  parser.add_argument(
    "--cpus",
    type=float,
    default=1,
    metavar="N",
    help="CPUs that are set aside for each of --actors; 0.5: two share one",
  )
  parser.add_argument(
    "--order",
    metavar="NAME",
    help=(
      "in which order replay takes what the actors played: exact, the same"
      " in every run, or free, as it comes; exact if left out"
    ),
  )
  parser.add_argument(
    "--log",
    action="append",
    default=[],
    choices=outside_loggers.TOOLS,
    help="log the metrics there, too; may be given twice",
  )
  parser.add_argument(
    "--xla",
    action=argparse.BooleanOptionalAction,
    help=(
      "compile updates with XLA, or with --no-xla do not; if left out, the"
      " parts that XLA makes faster are compiled"
    ),
  )
  parser.add_argument(
    "--mixed-precision",
    action="store_true",
    help="compute layers in bfloat16 where it is safe",
  )
  parser.add_argument(
    "--strict",
    action="store_true",
    help=(
      "refuse to go on with a run under other versions, with another number"
      " of threads or on another processor, where its numbers would differ in"
      " their last digits"
    ),
  )


def run(args: argparse.Namespace) -> int:
  """Trains; 0 at the end, EXIT_STOPPED after a signal."""
  outside_loggers.require(args.log)  # before the seconds that follow
  preset, config = wanted(args)
  path = pathlib.Path(args.run_dir or _default_directory(config, preset))
  if not config.replay.data:
    _require_actors(args, config)
  with quiet.loading():
    from tf_mmdrl.train import factories, left_open, run_directory, trainer

  directory = run_directory.RunDirectory(path, configs.imported(config))
  words = left_open.Words(preset, _typed(args))
  config = directory.as_left_open(config, words, notices.note)
  trainer.configure_process(config)
  if config.replay.data:
    data_training.check_flags(args)  # it may be of --set
    data_training.check(config)
  else:
    factories.check(config)
  if args.dry_run:
    dry_run.show(config, path)
    return main.EXIT_OK
  text = (
    f"{config.agent.name} on {config.environment.name}, preset {preset},"
    f" {config.schedule.steps:,} steps"
  )
  output.say("\n".join(output.wrapped(text, rest="  ")))
  output.say(f"run: {path}")
  schedule = config.schedule
  if config.replay.data:
    outcome = data_training.train(args, config, directory, words)
    return _ended(outcome, directory, config)
  if schedule.steps <= schedule.learning_starts:
    text = (
      f"note: learning starts at step {schedule.learning_starts:,}, so nothing"
      " will be learnt; set schedule.learning_starts or more steps"
    )
    output.say("\n".join(output.wrapped(text)))
  # A second learner is refused before Ray has started for it.
  with directory.claimed(), _actors(args, config) as hire:
    outcome = trainer.train(
      config,
      directory,
      strict=args.strict,
      hire=hire,
      log=args.log,
      words=words,
    )
  return _ended(outcome, directory, config)


def _ended(
  outcome: "trainer.Outcome", directory: "RunDirectory", config: configs.Config
) -> int:
  """Says how a run ended; the command's exit code."""
  if not outcome.finished:
    text = f"stopped at step {outcome.step:,}; run the same command to go on"
    output.say("\n".join(output.wrapped(text)))
    return main.EXIT_STOPPED
  _show(outcome, directory, config)
  return main.EXIT_OK


def _show(
  outcome: "trainer.Outcome", directory: "RunDirectory", config: configs.Config
) -> None:
  """Says how a run ended, what it made, and what to do next."""
  path = directory.path
  if outcome.best_step is None:
    output.say(f"learnt for {outcome.step:,} steps; pass --env to evaluate")
    _show_files(outcome, directory)
    return
  output.say(
    f"evaluation after {outcome.step:,} steps:"
    f" {score_text.number(outcome.evaluation_score)}"
  )
  best = score_text.number(outcome.best_score)
  output.say(f"best, after {outcome.best_step:,} steps: {best}")
  _show_files(outcome, directory)
  if outcome.best_step != outcome.step:
    output.say(f"best policy: {directory.export / str(outcome.best_step)}")
  if directory.learning_curve.exists():
    output.say(f"picture: {directory.learning_curve}")
  # A path with blanks, or none of our own, must survive the shell.
  words = ["mmdrl", "watch", str(path), "-o", "game.mp4"]
  for module in configs.imported(config):
    words += ["--import", module]
  output.say(f"next: {shlex.join(words)}")


def _show_files(outcome: "trainer.Outcome", directory: "RunDirectory") -> None:
  output.say(f"policy: {directory.export / str(outcome.step)}")
  output.say(f"curve: {directory.metrics}")


def _require_actors(args: argparse.Namespace, config: configs.Config) -> None:
  """Raises if those who shall play cannot be asked."""
  if args.actors is not None or args.cluster is not None:
    from tf_mmdrl.cluster import connection

    connection.require(args.cluster)
    if not 0 < args.cpus < 1000:
      raise errors.UserError(f"--cpus must be above 0, got {args.cpus:g}")
  elif config.system.order == "free":
    raise errors.UserError(
      "the order free needs actors in processes of their own; pass --actors N"
    )


@contextlib.contextmanager
def _actors(
  args: argparse.Namespace, config: configs.Config
) -> Iterator[Optional[Any]]:
  """What finds those who play; None for actors in this process."""
  if args.actors is None and args.cluster is None:
    yield None
    return
  from tf_mmdrl.cluster import connection

  room = math.ceil(config.system.actors * args.cpus)
  with connection.connected(args.cluster, room):
    from tf_mmdrl.cluster import crew

    yield crew.hire(strict=args.strict, num_cpus=args.cpus)


def check(args: argparse.Namespace) -> str:
  """Raises what needs no TensorFlow to be known, which is most mistakes.

  Args:
    args: as `add_arguments` made them.

  Returns:
    The preset's name.
  """
  chosen = presets.DATA if args.data else _preset_for(args.env)
  preset = args.preset or chosen
  presets.check_name(preset)
  agent = _agent(args)
  if agent is not None:
    algorithms.check_name(agent)
  found = configs.check(
    presets.PRESETS[preset].config,
    _settings(args),
    whole=not (args.data or agent or presets.follows_agent(preset)),
  )
  if not args.data:
    names.require(found.name)
  else:
    data_training.check_flags(args)
    if args.env is not None:
      names.require(args.env)
  return preset


def wanted(args: argparse.Namespace) -> Tuple[str, configs.Config]:
  """The preset's name, and the configuration that the flags ask for."""
  preset = check(args)
  known = data_training.settings(args) if args.data else []
  with quiet.loading():
    base = presets.get(preset, _agent(args))
    return preset, configs.change(base, [*known, *_settings(args)])


def _agent(args: argparse.Namespace) -> Optional[str]:
  """The algorithm, if one is chosen: `--set agent.name=X` is `--agent X`.

  A preset depends on it: the settings that an algorithm makes are below those
  that the flags give.
  """
  pairs = (text.partition("=") for text in args.set)
  named = [v.strip() for name, _, v in pairs if name.strip() == "agent.name"]
  return named[-1] if named else args.agent


def _settings(args: argparse.Namespace) -> List[str]:
  """The flags as settings; those of --set come last and win."""
  given = [
    f"{setting}={getattr(args, flag)}"
    for flag, setting in _SHORT.items()
    if getattr(args, flag) is not None
  ]
  if args.xla is not None:
    given.append(f"system.xla={'on' if args.xla else 'off'}")
  if args.mixed_precision:
    given.append("system.mixed_precision=true")
  return [*given, *args.set]


def _typed(args: argparse.Namespace) -> List[str]:
  """The names of the settings that the flags give."""
  names = [text.partition("=")[0].strip() for text in _settings(args)]
  if args.data:
    names += ["replay.data", "environment.name"]
  return sorted(set(names))


def _preset_for(env: Optional[str]) -> str:
  if env is None:
    return "quickstart"
  return {"atari": "atari", "minatar": "minatar"}.get(
    names.family(env), "classic"
  )


def _default_directory(config: configs.Config, preset: str) -> str:
  """A directory that the same command chooses again, to go on with its run."""
  game = config.environment.name.replace("/", "-").replace(":", "-")
  name = f"{game}-{config.agent.name}-{preset}-seed{config.system.seed}"
  return f"runs/{name}"
