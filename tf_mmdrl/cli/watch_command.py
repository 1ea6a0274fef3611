"""`mmdrl watch`: a video of a game beside the return distributions."""

import argparse
import pathlib

from tf_mmdrl.cli import quiet
from tf_mmdrl.core import errors


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl watch`."""
  parser.add_argument("directory", metavar="RUN", help="the run's directory")
  parser.add_argument(
    "-o", "--output", metavar="FILE", required=True, help=".mp4 or .gif"
  )
  parser.add_argument(
    "--stills", metavar="FILE", help="also 3 consecutive frames, as .png"
  )
  parser.add_argument(
    "--version", type=int, help="the exported step; the newest if left out"
  )
  parser.add_argument(
    "--max-steps", type=int, default=300, help="of the game to show"
  )


def run(args: argparse.Namespace) -> int:
  """Plays one game and writes it down."""
  with quiet.loading():
    from tf_mmdrl.train import run_directory, runs, videos

  video = pathlib.Path(args.output)
  stills = pathlib.Path(args.stills) if args.stills else None
  videos.check_format(video, stills)
  if args.max_steps < 1:
    raise errors.UserError(
      f"--max-steps must be at least 1, got {args.max_steps}"
    )
  directory = run_directory.RunDirectory(pathlib.Path(args.directory))
  config = directory.config()
  policy = runs.exported(directory, args.version)
  moments = list(videos.play(config, policy, args.max_steps))
  names = videos.names_of_actions(config, len(moments[0].particles))
  videos.write_video(moments, names, video)
  print(f"{video}: {len(moments)} steps, policy of step {policy.number}")
  if stills is not None:
    videos.write_stills(moments, names, stills)
    print(stills)
  return 0
