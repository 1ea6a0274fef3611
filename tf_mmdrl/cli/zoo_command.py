"""`mmdrl zoo`: the trained policies that come with the package."""

import argparse

from tf_mmdrl import zoo
from tf_mmdrl.cli import output
from tf_mmdrl.core import errors, score_text

EXAMPLE = "mmdrl zoo cartpole"
PAGE = "docs/zoo.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl zoo`."""
  parser.add_argument(
    "name",
    nargs="?",
    help="policy to show with the command that trained it; all of them in a"
    " list if left out",
  )


def run(args: argparse.Namespace) -> int:
  """Lists the policies, or says where one comes from."""
  known = zoo.entries()
  if args.name is None:
    rows = [("policy", "environment", "agent", "score", "+-", "games")]
    for name, entry in known.items():
      rows.append(
        (
          f"{zoo.PREFIX}{name}",
          entry.environment,
          entry.agent,
          score_text.number(entry.score),
          score_text.number(entry.error),
          str(entry.episodes),
        )
      )
    print(*output.table(rows, left=3), sep="\n")
    return 0
  name = args.name.removeprefix(zoo.PREFIX)
  if name not in known:
    raise errors.unknown_name("policy of the zoo", name, known)
  entry = known[name]
  lines = [
    ("policy", f"{entry.agent} on {entry.environment}, step {entry.step:,}"),
    ("score", score_text.with_error(entry.score, entry.error)),
    ("of", f"{entry.episodes} games: {entry.evaluate(name)}"),
    ("by", entry.train),
    ("commit", entry.commit),
    ("files", str(zoo.find(name))),
    ("next", f"mmdrl watch {zoo.PREFIX}{name} -o game.gif"),
    ("", f"mmdrl serve {zoo.PREFIX}{name} --games"),
  ]
  print(*output.two_columns(lines), sep="\n")
  return 0
