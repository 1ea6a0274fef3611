"""The site: built without a warning, whole, and readable without a network."""

import ast
import html
import html.parser
import importlib
import inspect
import json
import os
import pathlib
import pkgutil
import re
import subprocess
import sys
import textwrap
import urllib.parse

import pytest

import tf_mmdrl

_ROOT = pathlib.Path(__file__).parents[1]
pytest.importorskip("material", reason="extra docs")
pytest.importorskip("mkdocstrings", reason="extra docs")
yaml = pytest.importorskip("yaml", reason="extra docs")


class _Page(html.parser.HTMLParser):
  """The links, the resources and the anchors of a page."""

  def __init__(self, path):
    super().__init__()
    self.links, self.loaded, self.anchors = [], [], set()
    self.feed(path.read_text())

  def handle_starttag(self, tag, attributes):
    found = dict(attributes)
    self.anchors |= {found[key] for key in ("id", "name") if key in found}
    if tag == "a" and found.get("href"):
      self.links.append(found["href"])
    if tag in ("script", "img", "iframe", "source") and found.get("src"):
      self.loaded.append(found["src"])
    if tag == "link" and found.get("rel") != "canonical":
      self.loaded.append(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
  path = tmp_path_factory.mktemp("site")
  done = subprocess.run(
    [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(path)],
    cwd=_ROOT,
    capture_output=True,
    text=True,
    env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
  )
  assert done.returncode == 0, done.stderr
  assert "WARNING" not in done.stderr
  return path


@pytest.fixture(scope="module")
def pages(site):
  return {path: _Page(path) for path in site.rglob("*.html")}


def test_every_page_is_in_the_navigation(monkeypatch):
  monkeypatch.syspath_prepend(_ROOT / "docs")
  site_hooks = importlib.import_module("site_hooks")
  config = yaml.safe_load((_ROOT / "mkdocs.yml").read_text())
  listed = str(site_hooks.on_config(config)["nav"])
  for path in (_ROOT / "docs").rglob("*.md"):
    name = str(path.relative_to(_ROOT / "docs"))
    assert name in listed or name.startswith("results/published/"), name


def test_every_link_leads_somewhere(site, pages):
  assert len(pages) > 30
  for path, page in pages.items():
    if path.name == "404.html":
      continue  # its links are from the root of a server
    for link in page.links:
      there = urllib.parse.urlsplit(link)
      if there.scheme:
        continue
      target = path
      if there.path:
        target = (path.parent / urllib.parse.unquote(there.path)).resolve()
        if target.is_dir():
          target = target / "index.html"
      assert target.is_file(), f"{path.name} links to {link}"
      if there.fragment and target in pages:
        anchor = urllib.parse.unquote(there.fragment)
        assert anchor in pages[target].anchors, f"{path.name}: {link}"


def test_code_is_as_it_was_written(site):
  shown = re.sub(r"<[^>]+>", "", (site / "serving.html").read_text())
  assert 'signatures["action"](\n' in html.unescape(shown)


def test_tutorials_show_what_their_notebooks_do(site, pages):
  notebooks = sorted((_ROOT / "docs" / "tutorials").glob("*.ipynb"))
  for path in notebooks:
    page = pages[site / "tutorials" / f"{path.stem}.html"]
    drawn = path.read_text().count('"image/png"')
    shown = [at for at in page.loaded if at.startswith(path.stem)]
    assert len(shown) == drawn > 0
    assert all((site / "tutorials" / at).is_file() for at in shown)
    assert f"{path.stem}.ipynb" in page.links


def test_nothing_is_loaded_from_elsewhere(site, pages):
  for path, page in pages.items():
    for address in page.loaded:
      assert not urllib.parse.urlsplit(address).netloc, (
        f"{path.name}: {address}"
      )
  for style in site.rglob("*.css"):
    assert "url(http" not in style.read_text()


def _public():
  """What the packages themselves export, when they are imported."""
  for found in pkgutil.walk_packages(tf_mmdrl.__path__, "tf_mmdrl."):
    if found.ispkg:
      package = importlib.import_module(found.name)
      for name in getattr(package, "__all__", ()):
        yield f"{found.name}.{name}"


def _imported(code):
  """What code imports of this project, and the names that it takes of that."""
  tree, known = ast.parse(code), {}
  for node in ast.walk(tree):
    if isinstance(node, ast.ImportFrom) and node.module:
      for alias in node.names:
        known[alias.asname or alias.name] = f"{node.module}.{alias.name}"
  yield from known.values()
  for node in ast.walk(tree):
    if isinstance(node, ast.Attribute):
      of = known.get(getattr(node.value, "id", None))
      if of is not None:
        yield f"{of}.{node.attr}"


def _codes():
  """All Python of the README, the pages, the tutorials and the examples."""
  for path in [_ROOT / "README.md", *(_ROOT / "docs").rglob("*.md")]:
    found = re.findall(
      r"^ *```python\n(.*?)^ *```", path.read_text(), re.M | re.S
    )
    yield from map(textwrap.dedent, found)
  for path in (_ROOT / "examples").glob("*.py"):
    yield path.read_text()
  for path in (_ROOT / "docs" / "tutorials").glob("*.ipynb"):
    for cell in json.loads(path.read_text())["cells"]:
      code = "".join(cell["source"])
      is_shell = code.startswith(("%%bash", "%%sh"))
      if cell["cell_type"] == "code" and not is_shell:
        lines = code.splitlines()
        yield "\n".join(x for x in lines if not x.startswith(("%", "!")))


def _is_documented(name):
  """Whether a name is of a module, a class or a function of this project."""
  place, _, last = name.rpartition(".")
  try:
    found = importlib.import_module(name)
  except ImportError:
    found = getattr(importlib.import_module(place), last)
  if inspect.ismodule(found):  # those of all packages are listed by `_public`
    return not hasattr(found, "__path__")
  return inspect.isclass(found) or inspect.isfunction(found)


def test_the_reference_has_every_public_name(site, pages):
  wanted = set(_public())
  assert {"tf_mmdrl.agents.MMDQNAgent", "tf_mmdrl.zoo.find"} <= wanted
  assert not wanted - pages[site / "reference.html"].anchors


def test_the_reference_has_what_pages_import(site, pages):
  """And what they name in their text."""
  wanted = {
    name
    for code in _codes()
    for name in _imported(code)
    if name.startswith("tf_mmdrl.") and _is_documented(name)
  }
  assert {"tf_mmdrl.train.playing.open_export", "tf_mmdrl.ops.mmd"} <= wanted
  for path in [_ROOT / "README.md", *(_ROOT / "docs").rglob("*.md")]:
    named = re.findall(r"`(tf_mmdrl(?:\.\w+){2,})", path.read_text())
    wanted |= {name for name in named if _is_documented(name)}
  assert not wanted - pages[site / "reference.html"].anchors


def test_the_site_in_a_browser(site):
  sys.path.append(str(_ROOT / "tests" / "report"))
  import report_browser

  with report_browser.chromium() as browser:
    for width in (1200, 400):
      browser.emulate(width)
      pages = ("index", "training", "reference", "algorithms/mmdqn")
      for name in (*pages, "tutorials/two_objectives"):
        browser.open(site / f"{name}.html")
        wide = browser.run("return document.documentElement.scrollWidth")
        assert wide <= width, f"{name} is {wide} wide"
    assert not [line for line in browser.complaints() if "file://" not in line]
