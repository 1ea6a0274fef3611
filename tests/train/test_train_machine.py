import importlib.metadata
import os
import platform

import pytest

from tf_mmdrl.train import machine

# Two cores that the system makes four CPUs of.
_TWO_CORES = "\n\n".join(
  f"processor\t: {i}\nmodel name\t: A CPU: 2 GHz\nphysical id\t: 0\n"
  f"core id\t\t: {i // 2}"
  for i in range(4)
)


@pytest.mark.parametrize(
  "cpuinfo, cpu, cores",
  [
    (_TWO_CORES, "A CPU: 2 GHz", 2),
    ("processor\t: 0\nBogoMIPS\t: 50.00\n", platform.processor() or None, None),
  ],
)
def test_the_cpu_is_named_as_the_system_does(
  tmp_path, monkeypatch, cpuinfo, cpu, cores
):
  path = tmp_path / "cpuinfo"
  path.write_text(cpuinfo)
  monkeypatch.setattr(machine, "_CPUINFO", path)
  found = machine.describe()
  assert (found["cpu"], found["cores"]) == (cpu, cores)
  assert found["cpus"] == os.cpu_count()


def test_threads_are_those_of_a_sweep_or_one_for_each_cpu(monkeypatch):
  monkeypatch.setenv("TF_NUM_INTRAOP_THREADS", "7")
  assert machine.describe()["threads"] == 7
  monkeypatch.delenv("TF_NUM_INTRAOP_THREADS")
  assert machine.describe()["threads"] == len(os.sched_getaffinity(0))


def test_variables_that_change_bits_are_compared(monkeypatch):
  for name in ("TF_ENABLE_ONEDNN_OPTS", "XLA_FLAGS"):
    monkeypatch.delenv(name, raising=False)
  before = machine.surroundings()
  assert before["machine"]["variables"] == "none"
  assert not machine.changes_of_bits(before, machine.surroundings())
  monkeypatch.setenv("TF_ENABLE_ONEDNN_OPTS", "0")
  monkeypatch.setenv("XLA_FLAGS", "--xla_a=1 --xla_b")
  (change,) = machine.changes_of_bits(before, machine.surroundings())
  assert change == (
    "variables: none -> TF_ENABLE_ONEDNN_OPTS=0 XLA_FLAGS='--xla_a=1 --xla_b'"
  )
  del before["machine"]["variables"]  # as an earlier version wrote it
  assert not machine.changes_of_bits(before, machine.surroundings())


@pytest.mark.parametrize(
  "package", ["tensorflow-probability", "mo-gymnasium", "Box2D"]
)
def test_what_environments_and_networks_are_made_of_is_recorded(package):
  wanted = importlib.metadata.version(package)
  assert machine.surroundings()["versions"][package] == wanted
