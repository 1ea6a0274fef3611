"""The `mmdrl` command, also as `python -m tf_mmdrl`."""

import sys


def main() -> int:
  """Runs the command line; Ctrl-C is one line while that is loaded, too."""
  try:
    from tf_mmdrl.cli import main as command

    return command.main()
  except KeyboardInterrupt:
    below = "\n" if sys.stderr.isatty() else ""  # a terminal shows ^C
    print(f"{below}mmdrl: interrupted", file=sys.stderr)
    return 130  # as `exit_codes.INTERRUPTED`, which may not be loaded yet


if __name__ == "__main__":
  sys.exit(main())
