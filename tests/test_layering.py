"""The architecture as a rule: imports between packages point one way."""

import ast
import pathlib
import re

import pytest

import tf_mmdrl

_ROOT = pathlib.Path(tf_mmdrl.__file__).parent

# Package -> the packages of this project it may import.
_MAY_IMPORT = {
  "core": set(),
  "ops": {"core"},
  "losses": {"core", "ops"},
  "networks": {"core", "ops"},
  "policies": {"core", "ops"},
  "agents": {"core", "ops", "losses", "networks", "policies"},
  "environments": {"core"},
  "replay": {"core"},
  "evaluation": {"core", "environments", "policies"},
  "report": {"core"},
  "serving": {"core"},
}
_MAY_IMPORT["train"] = set(_MAY_IMPORT) | {"version"}
_MAY_IMPORT["cluster"] = _MAY_IMPORT["train"] | {"train"}
_MAY_IMPORT["tabular"] = {"core", "ops"}
_MAY_IMPORT["zoo"] = {"core", "serving"}
_MAY_IMPORT["offline"] = _MAY_IMPORT["train"] | {"train", "zoo"}
_MAY_IMPORT["cli"] = set(_MAY_IMPORT) | {"version"}


def _packages():
  return sorted(
    path.name
    for path in _ROOT.iterdir()
    if path.is_dir() and (path / "__init__.py").exists()
  )


def _imported(path):
  """The packages of this project that a file imports."""
  for node in ast.walk(ast.parse(path.read_text())):
    if isinstance(node, ast.ImportFrom) and node.module:
      names = [node.module]
      if node.module == "tf_mmdrl":
        names = [f"tf_mmdrl.{alias.name}" for alias in node.names]
    elif isinstance(node, ast.Import):
      names = [alias.name for alias in node.names]
    else:
      continue
    for name in names:
      parts = name.split(".")
      if parts[0] == "tf_mmdrl" and len(parts) > 1:
        yield parts[1]


@pytest.mark.parametrize("package", _packages())
def test_imports_point_one_way(package):
  allowed = _MAY_IMPORT[package] | {package}
  for path in (_ROOT / package).rglob("*.py"):
    wrong = set(_imported(path)) - allowed
    assert not wrong, f"{path.relative_to(_ROOT)} imports {sorted(wrong)}"


def test_the_picture_shows_every_room():
  page = (_ROOT.parent / "docs" / "architecture.md").read_text()
  rooms, _, arrows = page.partition("## Rooms")[2].partition("```\n```")
  assert sorted(re.findall(r"^(\w+)/ ", rooms, re.MULTILINE)) == _packages()
  assert set(re.findall(r"\w+", arrows.partition("```")[0])) == set(_packages())


def test_no_file_name_occurs_twice():
  paths = [path for path in _ROOT.rglob("*.py") if path.name != "__init__.py"]
  names = [path.name for path in paths]
  assert len(names) > 200
  assert {name for name in names if names.count(name) > 1} == set()
