"""`mmdrl train`: trains an agent, or goes on training it."""

import argparse
import pathlib
from typing import List, Optional, Tuple

from tf_mmdrl.cli import main, quiet
from tf_mmdrl.core import algorithms
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import presets

# Flag -> the setting it is short for.
_SHORT = {
  "env": "environment.name",
  "agent": "agent.name",
  "steps": "schedule.steps",
  "seed": "system.seed",
  "num_envs": "environment.num_envs",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl train`."""
  parser.add_argument(
    "--env", help="the game, or the id of a Gymnasium environment"
  )
  parser.add_argument("--agent", help="the algorithm; mmdrl agents lists them")
  parser.add_argument(
    "--preset",
    help=(
      "the settings to begin with; mmdrl presets lists them; chosen by the"
      " environment if left out"
    ),
  )
  parser.add_argument(
    "--steps", help="length of the run in agent steps, over all environments"
  )
  parser.add_argument("--seed", help="seed of everything random in the run")
  parser.add_argument(
    "--num-envs",
    help="how many environments are played at the same time in training",
  )
  parser.add_argument(
    "--run-dir",
    help="directory of the run; runs/GAME-AGENT-PRESET-seedSEED if left out",
  )
  parser.add_argument(
    "--xla",
    action=argparse.BooleanOptionalAction,
    help=(
      "whether XLA compiles updates; the parts that it makes faster if left out"
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
      "refuses to go on with a run under other versions or threads, or on"
      " another processor, which change the last bits of its numbers"
    ),
  )
  parser.add_argument(
    "--set",
    action="append",
    default=[],
    metavar="GROUP.FIELD=VALUE",
    help=(
      "changes any setting, also several times; mmdrl presets NAME shows them"
      " all"
    ),
  )


def run(args: argparse.Namespace) -> int:
  """Trains; 0 at the end, EXIT_STOPPED after a signal."""
  preset, config = wanted(args)
  path = pathlib.Path(args.run_dir or _default_directory(config, preset))
  with quiet.loading():
    from tf_mmdrl.train import run_directory, trainer

  trainer.configure_process(config)
  print(
    f"{config.agent.name} on {config.environment.name}, preset {preset},"
    f" {config.schedule.steps:,} steps; the run is in {path}"
  )
  schedule = config.schedule
  if schedule.steps <= schedule.learning_starts:
    print(
      f"note: learning starts at step {schedule.learning_starts:,}, so nothing"
      " will be learnt; set schedule.learning_starts or more steps"
    )
  outcome = trainer.train(
    config, run_directory.RunDirectory(path), strict=args.strict
  )
  if not outcome.finished:
    print(f"stopped at step {outcome.step:,}; run the same command to go on")
    return main.EXIT_STOPPED
  print(
    f"evaluation after {outcome.step:,} steps: {outcome.evaluation_score:.2f}"
  )
  print(f"best, after {outcome.best_step:,} steps: {outcome.best_score:.2f}")
  print(f"policy: {path}/export/{outcome.step}, curve: {path}/metrics.csv")
  if outcome.best_step != outcome.step:
    print(f"best policy: {path}/export/{outcome.best_step}")
  return main.EXIT_OK


def wanted(args: argparse.Namespace) -> Tuple[str, configs.Config]:
  """The preset's name, and the configuration that the flags ask for."""
  preset = args.preset or _preset_for(args.env)
  presets.check_name(preset)
  agent = _agent(args)
  if agent is not None:
    algorithms.check_name(agent)
  with quiet.loading():
    base = presets.get(preset, agent)
    return preset, configs.change(base, _settings(args))


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


def _preset_for(env: Optional[str]) -> str:
  if env is None:
    return "quickstart"
  with quiet.loading():
    from tf_mmdrl import environments

  return {"atari": "atari", "minatar": "minatar"}.get(
    environments.family(env), "classic"
  )


def _default_directory(config: configs.Config, preset: str) -> str:
  """The same for the same command, so that it goes on with its run."""
  game = config.environment.name.replace("/", "-").replace(":", "-")
  name = f"{game}-{config.agent.name}-{preset}-seed{config.system.seed}"
  return f"runs/{name}"
