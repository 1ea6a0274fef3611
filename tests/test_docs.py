"""What the documentation says holds."""

import pathlib
import re

import pytest

from tf_mmdrl.core import algorithms

_DOCS = pathlib.Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("name", algorithms.names())
def test_every_algorithm_has_a_page(name):
  page = (_DOCS / "algorithms" / f"{name}.md").read_text()
  for word in ("Deviations", "Settings", "Results", f"--agent {name}"):
    assert word in page
  assert algorithms.get(name).url in page


@pytest.mark.parametrize("path", sorted(_DOCS.rglob("*.md")), ids=str)
def test_links_lead_somewhere(path):
  for target in re.findall(r"\]\(([^)#\s]+)[)#]", path.read_text()):
    if not target.startswith("http"):
      assert (path.parent / target).exists(), f"{path.name} links to {target}"
