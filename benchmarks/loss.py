"""Time and memory of the MMD loss, published formula against ours.

  python benchmarks/loss.py [--particles 50 200 1000 2000 5000] [--xla]
    [--json docs/results/speed_loss.json]
  python benchmarks/loss.py --kernels [--particles 50 200] [--xla]

The second compares kernels with the mixture of Gaussians, by the time that all
threads take.

Value and gradient, batch 32, Gaussian kernels of bandwidths 1 to 10. The two
are timed in turn in one process, so their ratio means something on a busy
machine; memory is each one's peak in a process of its own.
"""

import argparse
import functools
import os
import pathlib
import subprocess
import sys
import time

import numpy as np
import published
import tensorflow as tf
import timing

from tf_mmdrl.ops import kernel_names, kernels, mmd

BATCH = 32
# The published formula wants 3 x 10 x [32, N, N] floats and more for the
# gradient: above this N it does not fit in 16 GB.
LARGEST_PUBLISHED = 1000


def ours(x, y, by_xla=False):
  """The library's loss."""
  return mmd.mmd_squared(x, y, kernel=kernels.gaussian_mixture(), by_xla=by_xla)


def ours_for_xla(x, y):
  """The library's loss as an agent calls it where XLA compiles."""
  return ours(x, y, by_xla=True)


LOSSES = {
  "published": published.mmd_squared,
  "by terms": published.mmd_squared_by_terms,
  "ours": ours,
}


def value_and_gradient(loss, num_particles, spread, jit_compile):
  """A call that computes the loss and its gradient on fixed particles."""
  rng = np.random.default_rng(0)
  shape = [BATCH, num_particles]
  if spread is None:  # as in docs/kernels.md
    draw = functools.partial(rng.normal, 3, 3, shape)
  else:
    draw = functools.partial(rng.uniform, 0, spread, shape)
  x, y = (tf.constant(draw(), tf.float32) for _ in "xy")

  if jit_compile and loss is ours:
    loss = ours_for_xla

  @tf.function(jit_compile=jit_compile)
  def compute(x, y):
    with tf.GradientTape() as tape:
      tape.watch(x)
      value = tf.reduce_mean(loss(x, y))
    return value, tape.gradient(value, x)

  return lambda: compute(x, y)[1].numpy()


def peak_memory(name, num_particles, spread, jit_compile):
  """MB that one loss adds to the peak of a process of its own."""
  words = [name, str(num_particles), str(spread), str(int(jit_compile))]
  done = subprocess.run(
    [sys.executable, __file__, "--peak", *words],
    capture_output=True,
    text=True,
    check=False,
  )
  return float(done.stdout) if done.returncode == 0 else float("inf")


def peak_kilobytes():
  """This program's largest resident size; getrusage's is the parent's too."""
  status = pathlib.Path("/proc/self/status").read_text()
  return int(status.split("VmHWM:")[1].split()[0])


def print_peak(name, num_particles, spread, jit_compile):
  """Prints the growth of this process' peak while the loss runs."""
  small = value_and_gradient(LOSSES[name], 2, 1.0, bool(int(jit_compile)))
  small()
  before = peak_kilobytes()
  call = value_and_gradient(
    LOSSES[name], int(num_particles), float(spread), bool(int(jit_compile))
  )
  for _ in range(3):
    call()
  print((peak_kilobytes() - before) / 1024)


KERNELS = (
  "gaussian_mixture:1..10",
  "smooth_energy:1",
  "gaussian_geometric",
  "multiquadric:1",
  "laplace:1",
  "unrectified:1",
  "unrectified:1.5",
)


def compare_kernels(counts, seconds, jit_compile):
  """Prints the time of each kernel as a multiple of the mixture's."""
  load = os.getloadavg()[0]
  mode = "XLA" if jit_compile else "graph"
  print(f"tensorflow {tf.__version__}, {mode}, batch {BATCH}, load {load:.0f}")
  print(f"{'N':>6} {'kernel':24} {'CPU ms':>8} {'/ mixture':>10}")
  for n in counts:
    calls = {
      name: value_and_gradient(
        functools.partial(
          mmd.mmd_squared,
          kernel=kernel_names.parse(name),
          by_xla=jit_compile,
        ),
        n,
        None,
        jit_compile,
      )
      for name in KERNELS
    }
    times = timing.interleaved(
      calls, seconds=seconds, quantile=0.1, clock=time.process_time
    )
    for name, found in times.items():
      ratio = found / times[KERNELS[0]]
      print(f"{n:6d} {name:24} {1e3 * found:8.2f} {ratio:10.1f}")


def main():
  """Prints the table."""
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument(
    "--particles", type=int, nargs="+", default=[50, 200, 1000, 2000, 5000]
  )
  parser.add_argument("--spread", type=float, default=30.0)
  parser.add_argument("--seconds", type=float, default=5.0)
  parser.add_argument("--xla", action="store_true")
  parser.add_argument("--kernels", action="store_true")
  parser.add_argument("--json", type=pathlib.Path, help="file for the figures")
  parser.add_argument("--peak", nargs=4, help=argparse.SUPPRESS)
  args = parser.parse_args()
  if args.peak:
    print_peak(*args.peak)
    return
  if args.kernels:
    compare_kernels(args.particles, args.seconds, args.xla)
    return
  mode = "XLA" if args.xla else "graph"
  print(
    f"tensorflow {tf.__version__}, {mode}, batch {BATCH}, returns over"
    f" {args.spread:g}; value and gradient"
  )
  print(
    f"{'':6} {'milliseconds':^30} {'times faster than':^20} {'peak MB':^20}\n"
    f"{'N':>6} {'published':>10} {'by terms':>9} {'ours':>9}"
    f" {'published':>10} {'by terms':>9} {'published':>10} {'ours':>9}"
  )
  found = {}
  for n in args.particles:
    names = list(LOSSES) if n <= LARGEST_PUBLISHED else ["ours"]
    calls = {
      name: value_and_gradient(LOSSES[name], n, args.spread, args.xla)
      for name in names
    }
    times = timing.interleaved(calls, seconds=args.seconds, least=3)
    ms = {name: 1e3 * times.get(name, float("nan")) for name in LOSSES}
    memory = {
      name: peak_memory(name, n, args.spread, args.xla)
      if name in names
      else float("nan")
      for name in ("published", "ours")
    }
    found[n] = {
      "milliseconds": {name: ms[name] for name in names},
      "peak_megabytes": {
        name: memory[name] for name in memory if name in names
      },
    }
    print(
      f"{n:6d} {ms['published']:10.1f} {ms['by terms']:9.1f} {ms['ours']:9.2f}"
      f" {ms['published'] / ms['ours']:10.0f}"
      f" {ms['by terms'] / ms['ours']:9.0f}"
      f" {memory['published']:10.0f} {memory['ours']:9.0f}",
      flush=True,
    )
  timing.record(args.json, found)
  if {200, 2000} <= set(found):
    few, many = (found[n]["milliseconds"]["ours"] for n in (200, 2000))
    growth = many / few
    print(f"from N = 200 to 2,000 ours grows {growth:.1f} times")


if __name__ == "__main__":
  main()
