"""What the documentation says holds."""

import argparse
import pathlib
import re
import shlex

import pytest

from tf_mmdrl.cli import train_command
from tf_mmdrl.core import algorithms
from tf_mmdrl.ops import kernel_names

_DOCS = pathlib.Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("name", algorithms.names())
def test_every_algorithm_has_a_page(name):
  page = (_DOCS / "algorithms" / f"{name}.md").read_text()
  for word in ("Deviations", "Settings", "Results", f"--agent {name}"):
    assert word in page
  assert algorithms.get(name).url in page


@pytest.mark.parametrize("name", algorithms.names())
def test_pages_have_the_published_hyperparameters_as_a_command(name):
  page = (_DOCS / "algorithms" / f"{name}.md").read_text()
  _, found, section = page.partition("**Published hyperparameters.**")
  assert bool(found) == bool(algorithms.get(name).published)
  if found:
    (line,) = re.findall(r"^mmdrl train (.*)$", section, re.MULTILINE)
    assert "--preset published" not in line
    assert _wanted(line) == _wanted(f"--preset published --agent {name}")


def _wanted(arguments):
  """The configuration that `mmdrl train` makes of its arguments."""
  parser = argparse.ArgumentParser()
  train_command.add_arguments(parser)
  return train_command.wanted(parser.parse_args(shlex.split(arguments)))[1]


@pytest.mark.parametrize("name", kernel_names.NAMES)
def test_every_kernel_has_its_formula(name):
  page = (_DOCS / "kernels.md").read_text()
  table = page.partition("| k(x, y) |")[2].partition("\n\n")[0]
  (row,) = re.findall(rf"^\| `{name}[:`].*$", table, re.MULTILINE)
  assert re.search(r"\bd\b|x y", row.split(" | ")[1])  # of d = |x - y|, or x y


@pytest.mark.parametrize("path", sorted(_DOCS.rglob("*.md")), ids=str)
def test_links_lead_somewhere(path):
  for target in re.findall(r"\]\(([^)#\s]+)[)#]", path.read_text()):
    if not target.startswith("http"):
      assert (path.parent / target).exists(), f"{path.name} links to {target}"
