"""The site: built without a warning, whole, and readable without a network."""

import html
import html.parser
import os
import pathlib
import re
import subprocess
import sys
import urllib.parse

import pytest

_ROOT = pathlib.Path(__file__).parents[1]
pytest.importorskip("material", reason="extra docs")
pytest.importorskip("mkdocstrings", reason="extra docs")


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


def test_every_page_is_in_the_navigation():
  listed = (_ROOT / "mkdocs.yml").read_text()
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


def test_the_reference_has_every_public_name(site, pages):
  sys.path.insert(0, str(_ROOT / "docs"))
  try:
    import site_hooks
  finally:
    sys.path.pop(0)
  names = site_hooks.public_names()
  assert {"tf_mmdrl.agents", "tf_mmdrl.ops", "tf_mmdrl.serving"} <= set(names)
  shown = pages[site / "reference.html"].anchors
  missing = [
    f"{package}.{name}"
    for package, every in names.items()
    for name in every
    if f"{package}.{name}" not in shown
  ]
  assert not missing


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
