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
