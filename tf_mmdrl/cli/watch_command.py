"""`mmdrl watch`: a video of games beside the return distributions."""

import argparse
import pathlib

from tf_mmdrl.cli import game_flags, output, quiet
from tf_mmdrl.core import errors, optional, progress

EXAMPLE = "mmdrl watch runs/... -o game.mp4"
PAGE = "docs/training.md"
_FORMATS = (".gif", ".mp4")


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl watch`."""
  game_flags.add_path(parser)
  parser.add_argument(
    "-o",
    "--output",
    metavar="FILE",
    type=pathlib.Path,
    required=True,
    help="the video, .mp4 or .gif",
  )
  parser.add_argument(
    "--stills",
    metavar="FILE",
    type=pathlib.Path,
    help="also write three consecutive frames as a .png",
  )
  game_flags.add_arguments(parser)
  parser.add_argument("--episodes", type=int, default=1, help="games to show")
  parser.add_argument(
    "--max-steps", type=int, default=300, help="agent steps to show at most"
  )


def run(args: argparse.Namespace) -> int:
  """Plays, and writes the video."""
  _check(args)
  with quiet.loading():
    from tf_mmdrl.train import playing, videos

  policy = playing.open_policy(args.path, args.version, args.imports)
  config = game_flags.wanted(policy, args)
  moments = []
  with progress.Progress(args.max_steps, "playing") as shown:
    for moment in videos.play(policy, config, args.episodes, args.max_steps):
      moments.append(moment)
      shown.update(len(moments), f"step {len(moments)}")
  names = videos.names_of_actions(config, policy.num_actions)
  with progress.Progress(len(moments), "drawing") as shown:
    videos.write_video(moments, names, args.output, shown.update)
  print(f"{args.output}: {len(moments)} steps, policy of step {policy.number}")
  if args.stills is not None:
    videos.write_stills(moments, names, args.stills)
    print(args.stills)
  return 0


def _check(args: argparse.Namespace) -> None:
  """Raises before anything is loaded or played."""
  if args.output.suffix not in _FORMATS:
    raise errors.UserError(
      f"a video ends in {' or '.join(_FORMATS)}, got {str(args.output)!r}"
    )
  if args.stills is not None and args.stills.suffix != ".png":
    raise errors.UserError(f"stills end in .png, got {str(args.stills)!r}")
  for path in (args.output, args.stills):
    if path is not None:
      output.require_place(path)
  for flag, number in (
    ("--episodes", args.episodes),
    ("--max-steps", args.max_steps),
  ):
    if number < 1:
      raise errors.UserError(f"{flag} must be at least 1, got {number}")
  for module in ("matplotlib", "imageio"):
    optional.require_there(module, use="videos", extra="plots")
  game_flags.check(args)
