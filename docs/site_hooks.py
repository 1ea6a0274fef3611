"""What the site needs beyond Markdown: notebooks, links, and a reference.

Pages link to files of the repository, which the site does not have; such a
link becomes the path, as text. The page `reference.md` lists every public
name, package by package, from the packages' own `__all__`, and the modules that
users import by name. Notebooks become pages beside their files.
"""

import ast
import json
import pathlib
import re
import sys

from mkdocs.structure.files import File

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import notebook_pages  # noqa: E402

_ROOT = pathlib.Path(__file__).parents[1]
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")
_CODE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)


# Package -> modules that are imported by name, besides all of `ops`.
_MODULES = {
  "tf_mmdrl.agents": ["base"],
  "tf_mmdrl.core": ["algorithms", "settings"],
  "tf_mmdrl.networks": ["torsos"],
  "tf_mmdrl.report": ["published"],
  "tf_mmdrl.tabular": ["chain"],
  "tf_mmdrl.train": [
    "config",
    "config_groups",
    "playing",
    "presets",
    "run_directory",
    "trainer",
  ],
}


def public_names():
  """Package -> its public names: modules, and what `__all__` has."""
  package = _ROOT / "tf_mmdrl"
  ops = sorted(path.stem for path in (package / "ops").glob("[!_]*.py"))
  found = {"tf_mmdrl.ops": ops, **_MODULES}
  for path in sorted(package.glob("*/**/__init__.py")):
    place = ".".join(path.parent.relative_to(_ROOT).parts)
    for node in ast.parse(path.read_text()).body:
      is_assignment = isinstance(node, ast.Assign)
      if is_assignment and getattr(node.targets[0], "id", "") == "__all__":
        names = ast.literal_eval(node.value)
        found[place] = [*names, *found.get(place, [])]
  return dict(sorted(found.items()))


def on_config(config):
  """Shows the page of every algorithm, those last that have no title here."""
  (pages,) = [
    part["Algorithms"] for part in config["nav"] if "Algorithms" in part
  ]
  there = str(pages)
  pages += [
    f"algorithms/{path.name}"
    for path in sorted((_ROOT / "docs" / "algorithms").glob("*.md"))
    if f"algorithms/{path.name}" not in there
  ]
  return config


def on_files(files, config):
  """Adds a page and pictures for each notebook."""
  for file in list(files):
    if not file.src_uri.endswith(".ipynb"):
      continue
    path = pathlib.PurePosixPath(file.src_uri)
    notebook = json.loads(pathlib.Path(file.abs_src_path).read_text())
    text, pictures = notebook_pages.convert(notebook, path.stem)
    made = {path.with_suffix(".md").name: text, **pictures}
    for name, content in made.items():
      uri = str(path.with_name(name))
      files.append(File.generated(config, uri, content=content))
  return files


def on_page_markdown(markdown, page, config, files):
  """Writes the reference, and makes text of links that leave the site."""
  del config, files
  if page.file.src_path == "reference.md":
    return markdown + "".join(
      f"\n\n## {package}\n\n"
      + "\n".join(
        f"::: {package}.{name}\n    options: {{heading_level: 3}}\n"
        for name in names
      )
      for package, names in public_names().items()
      if names
    )
  docs = _ROOT / "docs"
  here = (docs / page.file.src_uri).parent

  def inside(match):
    text, target = match.groups()
    if re.match(r"[a-z]+:|#", target):
      return match[0]
    path = (here / target.partition("#")[0]).resolve()
    if path.suffix == ".ipynb" and not match[0].startswith("[This page"):
      return match[0].replace(".ipynb", ".md")
    if path.suffix == ".png" and not path.exists():  # of a notebook
      return match[0]
    if path.is_relative_to(docs) and path.is_file():
      return match[0]
    if path.is_relative_to(docs) and (path / "README.md").is_file():
      return f"[{text}]({target.rstrip('/')}/README.md)"
    if text.strip("`") in str(path):
      return f"`{path.relative_to(_ROOT)}`"
    return f"{text} (`{path.relative_to(_ROOT)}`)"

  # model.signatures["action"](x) is code, not a link.
  return "".join(
    part if part.lstrip().startswith("```") else _LINK.sub(inside, part)
    for part in _CODE.split(markdown)
  )
