"""What `make dist` packs: a source distribution and a wheel."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile

import pytest

_ROOT = pathlib.Path(__file__).parents[1]


def _run(*command, **options):
  done = subprocess.run(command, capture_output=True, text=True, **options)
  assert done.returncode == 0, done.stdout + done.stderr
  return done.stdout


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
  """The source distribution and the wheel, from what git knows."""
  path = tmp_path_factory.mktemp("dist")
  listed = _run("git", "ls-files", "-co", "--exclude-standard", cwd=_ROOT)
  for name in listed.splitlines():
    if (_ROOT / name).is_file():
      (path / "source" / name).parent.mkdir(parents=True, exist_ok=True)
      shutil.copy(_ROOT / name, path / "source" / name)
  (path / "source" / "tf_mmdrl" / "stray.pyc").touch()
  build = [sys.executable, "setup.py", "--quiet", "sdist", "-d", str(path)]
  _run(*build, cwd=path / "source")
  (source,) = path.glob("*.tar.gz")
  wheel = ["wheel", "--no-deps", "--no-build-isolation", "--no-index", "-q"]
  _run(sys.executable, "-m", "pip", *wheel, "-w", str(path), str(source))
  (made,) = path.glob("*.whl")
  return source, made


@pytest.mark.slow
def test_the_source_has_what_testers_need_and_no_more(packed):
  with tarfile.open(packed[0]) as archive:
    names = {name.partition("/")[2] for name in archive.getnames()}
  for name in (
    "CITATION.cff",
    "LICENSE",
    "Makefile",
    "README.md",
    "constraints/py311-tf221.txt",
    "docs/install.md",
    "docs/results/chain.png",
    "examples/cartpole.py",
    "mkdocs.yml",
    "tests/conftest.py",
    "tf_mmdrl/serving/data/live_page.html",
  ):
    assert name in names
  assert not [name for name in names if name.endswith((".pyc", ".gif~"))]
  assert not [n for n in names if n.startswith((".git/", "runs/", "site/"))]


@pytest.mark.slow
def test_the_wheel_has_the_package_and_its_data(packed):
  names = set(zipfile.ZipFile(packed[1]).namelist())
  tops = {name.partition("/")[0] for name in names}
  assert {top.partition("-")[0] for top in tops} == {"tf_mmdrl"}
  for name in (_ROOT / "tf_mmdrl" / "zoo").rglob("*.*"):
    if name.is_file() and name.suffix != ".pyc":
      assert str(name.relative_to(_ROOT)) in names
  for data in ("report/data/report.css", "serving/data/live_page.html"):
    assert f"tf_mmdrl/{data}" in names
  modules = {
    str(path.relative_to(_ROOT)) for path in (_ROOT / "tf_mmdrl").rglob("*.py")
  }
  assert modules <= names


@pytest.mark.slow
def test_the_wheel_installs_and_runs(packed, tmp_path):
  """In an environment of its own that sees the packages it needs."""
  venv.create(tmp_path / "env", with_pip=False)
  library = next((tmp_path / "env" / "lib").glob("python*/site-packages"))
  python = tmp_path / "env" / "bin" / "python"
  environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
  pip = [sys.executable, "-m", "pip", "--python", str(python), "install"]
  _run(*pip, "--no-deps", "--no-index", str(packed[1]), env=environment)
  near = pathlib.Path(pytest.__file__).parents[1]  # after what was installed
  (library / "others.pth").write_text(f"{near}\n")
  command = [str(tmp_path / "env" / "bin" / "mmdrl")]
  said = _run(*command, "--version", cwd=tmp_path, env=environment)
  assert said.startswith("mmdrl 0.")
  code = "import tf_mmdrl; print(tf_mmdrl.__file__)"
  where = _run(str(python), "-c", code, cwd=tmp_path, env=environment)
  assert where.startswith(str(library))


@pytest.fixture(scope="module")
def index():
  """Skips where pip finds no package index."""
  ask = ["index", "versions", "absl-py", "--retries", "0", "--timeout", "10"]
  done = subprocess.run(
    [sys.executable, "-m", "pip", *ask, "--disable-pip-version-check"],
    capture_output=True,
    text=True,
  )
  if done.returncode:
    reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
    pytest.skip(f"pip reaches no package index here: {reason}")


@pytest.mark.slow
def test_the_wheel_installs_with_all_that_it_needs(packed, index, tmp_path):
  """From the index, without extras first: what they are for says so then."""
  venv.create(tmp_path / "env", with_pip=True)
  own = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
  locked = str(_ROOT / "constraints" / "py311-tf221.txt")

  def mmdrl(line):
    command = [str(tmp_path / "env" / "bin" / "mmdrl"), *line.split()]
    return subprocess.run(
      command, capture_output=True, text=True, cwd=tmp_path, env=own
    )

  def install(what):
    pip = [str(tmp_path / "env" / "bin" / "pip"), "install", "--quiet"]
    _run(*pip, "-c", locked, what, cwd=tmp_path, env=own)

  install(str(packed[1]))
  missing = mmdrl("evaluate zoo:minatar-breakout")
  assert missing.returncode == 2
  assert "pip install 'tf-mmdrl[minatar]'" in missing.stderr
  played = mmdrl("evaluate zoo:cartpole --episodes 2")
  assert played.returncode == 0, played.stderr
  assert played.stdout.startswith("policy of step")
  install(f"{packed[1]}[all]")
  shown = mmdrl("watch zoo:minatar-breakout -o it.gif --max-steps 2")
  assert shown.returncode == 0, shown.stderr
  assert (tmp_path / "it.gif").stat().st_size > 1000
