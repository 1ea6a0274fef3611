"""TF-Agents' C51 tutorial with C51 and with MMDQN, seed by seed.

  python benchmarks/tutorial.py [--seeds 0,1,2] [--iterations 15000] [--jobs 2]

Each run is examples/c51_tutorial.py in a process of its own. "final" is the
mean return of 20 fresh episodes after the last update, "on the way" that of all
evaluations during training; CartPole-v1 gives 500 at most. A finished run is
one small JSON file in the run directory; run it again and it goes on with what
is left. The exit code is 0 if all runs have finished.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

EXAMPLES = pathlib.Path(__file__).resolve().parents[1] / "examples"
AGENTS = ("c51", "mmdqn")


def main():
  """Runs what is left, and prints a row for each run and each agent."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--agents", default=",".join(AGENTS))
  parser.add_argument("--seeds", default="0,1,2")
  parser.add_argument("--iterations", type=int, default=15_000)
  parser.add_argument("--jobs", type=int, default=2)
  parser.add_argument("--run-dir", type=pathlib.Path, default="runs/tutorial")
  parser.add_argument("--one", type=pathlib.Path, help=argparse.SUPPRESS)
  args = parser.parse_args()
  if args.one is not None:  # in a process of its own
    run(args.agents, int(args.seeds), args.iterations, args.one)
    return 0
  seeds = [int(seed) for seed in args.seeds.split(",")]
  unknown = sorted(set(args.agents.split(",")) - set(AGENTS))
  if unknown:
    parser.error(f"--agents must be of {AGENTS}, got {unknown}")
  # Seeds outermost, so that what is cut short has both agents.
  files = [
    (agent, seed, _file(args, agent, seed))
    for seed in seeds
    for agent in args.agents.split(",")
  ]
  args.run_dir.mkdir(parents=True, exist_ok=True)
  left = [job for job in files if not job[2].exists()]
  with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
    failed = sum(pool.map(lambda job: start(args, *job) != 0, left))
  done = [json.loads(path.read_text()) for *_, path in files if path.exists()]
  print("\n".join(table(done, args.iterations)))
  return 1 if failed else 0


def run(agent, seed, iterations, path):
  """Trains once, and writes down how it went."""
  sys.path.insert(0, str(EXAMPLES))
  import c51_tutorial

  loads = [os.getloadavg()[0]]
  started = time.monotonic()

  def show(line):
    if "average return" in line:
      loads.append(os.getloadavg()[0])
    print(line, flush=True)

  returns = c51_tutorial.train(agent, seed, iterations, show=show)
  result = {
    "agent": agent,
    "seed": seed,
    "iterations": iterations,
    "returns": returns,
    "minutes": (time.monotonic() - started) / 60,
    "load": statistics.mean(loads),
  }
  unfinished = path.with_suffix(".part")
  unfinished.write_text(json.dumps(result))
  unfinished.rename(path)  # whole or not at all


def start(args, agent, seed, path):
  """Runs one in a process of its own; its exit code."""
  threads = str(max(1, (os.cpu_count() or 1) // args.jobs))
  line = [sys.executable, __file__, "--one", path, "--agents", agent]
  line += ["--seeds", str(seed), "--iterations", str(args.iterations)]
  log = path.with_suffix(".log")
  print(f"{agent} seed {seed}: begins; {log} tells how it goes", flush=True)
  with log.open("w") as file:
    code = subprocess.run(
      line,
      stdout=file,
      stderr=subprocess.STDOUT,
      env={
        **os.environ,
        "TF_NUM_INTRAOP_THREADS": threads,
        "OMP_NUM_THREADS": threads,
      },
    ).returncode
  lines = log.read_text(errors="replace").strip().splitlines() or ["no output"]
  how = "failed: " if code else ""
  print(f"{agent} seed {seed}: {how}{lines[-1]}", flush=True)
  return code


def table(done, iterations):
  """Lines: a row for each run, and one for each agent over its seeds."""
  yield f"CartPole-v1, {iterations} iterations of TF-Agents' C51 tutorial"
  yield f"{'agent':6} {'seed':>5} {'final':>13} {'on the way':>13}" + (
    f" {'minutes':>7} {'load':>5}"
  )
  for agent in dict.fromkeys(result["agent"] for result in done):
    own = [result for result in done if result["agent"] == agent]
    rows = [(result["returns"][-1][1], _on_the_way(result)) for result in own]
    for result, (final, way) in zip(own, rows):
      yield f"{agent:6} {result['seed']:5d} {final:13.1f} {way:13.1f}" + (
        f" {result['minutes']:7.1f} {result['load']:5.1f}"
      )
    cells = " ".join(_mean_and_spread(column) for column in zip(*rows))
    yield f"{agent:6} {'mean':>5} {cells}"
  load = ", ".join(f"{average:.1f}" for average in os.getloadavg())
  yield (
    f"spread: standard deviation over seeds; load of {os.cpu_count()} cores"
    f" now: {load}"
  )


def _on_the_way(result):
  """The mean of the evaluations between the first update and the last."""
  scores = [score for step, score in result["returns"][:-1] if step > 0]
  return statistics.mean(scores) if scores else float("nan")


def _mean_and_spread(scores):
  spread = f"{statistics.stdev(scores):4.0f}" if len(scores) > 1 else "   -"
  return f"{statistics.mean(scores):6.1f} +-{spread}"


def _file(args, agent, seed):
  return args.run_dir / f"{agent}-{args.iterations}-seed{seed}.json"


if __name__ == "__main__":
  sys.exit(main())
