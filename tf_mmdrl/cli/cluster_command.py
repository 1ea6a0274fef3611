"""`mmdrl cluster`: the machines that actors and runs are placed on."""

import argparse

from tf_mmdrl.cli import main

_TASKS = {
  "start": "begin a cluster on this machine",
  "join": "add this machine to a cluster",
  "status": "show the machines of the cluster that this one is part of",
  "stop": "end this machine's part",
}

EXAMPLE = "mmdrl cluster start --host 10.0.0.1"
PAGE = "docs/cluster.md"


def add_arguments(parser: argparse.ArgumentParser) -> None:
  """Adds the options of `mmdrl cluster`."""
  tasks = parser.add_subparsers(title="tasks", dest="task", required=True)
  for name, line in _TASKS.items():
    task = tasks.add_parser(name, help=line, description=line)
    if name == "join":
      task.add_argument(
        "address", help="HOST:PORT that mmdrl cluster start printed"
      )
    if name in ("start", "join"):
      _add_offers(task, name)


def _add_offers(task: argparse.ArgumentParser, name: str) -> None:
  begins = name == "start"
  task.add_argument(
    "--host",
    default="127.0.0.1" if begins else None,
    help="this machine's address, at which the others reach it (start:"
    " 127.0.0.1, join: the one that the cluster sees); with any but 127.0.0.1"
    " Ray listens on all addresses of the machine",
  )
  if begins:
    task.add_argument(
      "--port",
      type=int,
      default=6379,
      help="of the cluster; the three after it are Ray's on every machine, and"
      " 10002 to 19999 those of learner, actors and runs",
    )
  task.add_argument(
    "--cpus", type=int, help="CPUs that it offers; all if left out"
  )
  task.add_argument("--gpus", type=int, default=0, help="GPUs that it offers")
  task.add_argument(
    "--store", type=int, default=300, help="megabytes for what travels"
  )


def run(args: argparse.Namespace) -> int:
  """Does the task."""
  from tf_mmdrl.cluster import connection, nodes

  if args.task == "start":
    node = nodes.start(args.host, args.port, args.cpus, args.gpus, args.store)
    print(f"the cluster's address is {node.address}")
    print(f"its token is in {connection.token_path()}; on other machines, with")
    print(
      "a copy of that file (chmod 600) and this package in the same version:"
    )
    print(f"  mmdrl cluster join {node.address}")
  elif args.task == "join":
    node = nodes.join(args.address, args.host, args.cpus, args.gpus, args.store)
    print(f"{node.host} is part of the cluster at {node.address}")
  elif args.task == "status":
    for found in nodes.status():
      state = "alive" if found["alive"] else "lost"
      print(
        f"{found['host']:16} {state:6} {found['cpus']:g} CPUs,"
        f" {found['gpus']:g} GPUs"
      )
  else:
    print(f"ended {nodes.stop()} processes")
  return main.EXIT_OK
