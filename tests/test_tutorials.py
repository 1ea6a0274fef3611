"""The tutorials: what is committed is what a run shows, and people can read."""

import json
import os
import pathlib
import re
import sys

import pytest
import test_docs

_ROOT = pathlib.Path(__file__).parents[1]
_DOCS = _ROOT / "docs"
_NOTEBOOKS = sorted((_DOCS / "tutorials").glob("*.ipynb"))


def _named(path):
  return path.stem


def _cells(path, kind):
  cells = json.loads(path.read_text())["cells"]
  return [cell for cell in cells if cell["cell_type"] == kind]


def _source(cell):
  return "".join(cell["source"])


def test_there_are_six():
  assert len(_NOTEBOOKS) == 6
  navigation = (_ROOT / "mkdocs.yml").read_text()
  for path in _NOTEBOOKS:
    assert f"tutorials/{path.stem}.md" in navigation


@pytest.mark.parametrize("path", _NOTEBOOKS, ids=_named)
def test_it_was_run_from_top_to_bottom(path):
  cells = _cells(path, "code")
  counts = [cell["execution_count"] for cell in cells]
  assert counts == list(range(1, len(cells) + 1))
  outputs = [output for cell in cells for output in cell["outputs"]]
  assert not [o for o in outputs if o["output_type"] == "error"]
  assert not [o for o in outputs if o.get("name") == "stderr"]
  assert sum("image/png" in o.get("data", {}) for o in outputs) >= 1


@pytest.mark.parametrize("path", _NOTEBOOKS, ids=_named)
def test_it_is_small_and_says_nothing_of_where_it_ran(path):
  assert path.stat().st_size < 400_000
  text = path.read_text()
  for root in ("/home/", "/root/", "/tmp/", str(_ROOT)):
    assert root not in text


@pytest.mark.parametrize("path", _NOTEBOOKS, ids=_named)
def test_its_sentences_can_be_read(path):
  """Text between all code, a title first, and no formulas to be rendered."""
  kinds = [cell["cell_type"] for cell in json.loads(path.read_text())["cells"]]
  assert kinds[0] == kinds[-1] == "markdown"
  texts = [_source(cell) for cell in _cells(path, "markdown")]
  assert texts[0].startswith("# ")
  assert texts[-1].rpartition("\n\n")[2].startswith("**Where next.**")
  assert not [text for text in texts if "$" in text]


@pytest.mark.parametrize("path", _NOTEBOOKS, ids=_named)
def test_its_links_lead_somewhere(path):
  for cell in _cells(path, "markdown"):
    for target in re.findall(r"\]\(([^)#\s]+)[)#]", _source(cell)):
      if not target.startswith("http"):
        assert (path.parent / target).exists(), target


@pytest.mark.parametrize("path", _NOTEBOOKS, ids=_named)
def test_its_commands_have_flags_that_exist(path):
  for cell in _cells(path, "code"):
    magic, _, lines = _source(cell).partition("\n")
    if magic == "%%bash":
      text = re.sub(r"^ +", "", lines.replace("\\\n", " "), flags=re.MULTILINE)
      test_docs.require_commands(text.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("path", _NOTEBOOKS, ids=_named)
def test_it_runs(path, monkeypatch):
  pytest.importorskip("nbclient")
  monkeypatch.syspath_prepend(str(_DOCS))
  import run_tutorials

  # The kernel and its commands find this package as this process does.
  paths = [str(_ROOT), os.environ.get("PYTHONPATH", "")]
  monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
  monkeypatch.delitem(sys.modules, "run_tutorials", raising=False)
  found = run_tutorials.run(path)
  before = _cells(path, "code")
  now = [cell for cell in found.cells if cell.cell_type == "code"]
  for old, new in zip(before, now, strict=True):
    kinds = [output["output_type"] for output in old["outputs"]]
    assert [output["output_type"] for output in new.outputs] == kinds
