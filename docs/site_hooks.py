"""What the site needs beyond Markdown: links out of docs/, and a reference.

Pages link to files of the repository, which the site does not have; such a
link becomes the path, as text. The page `reference.md` lists every public
name, package by package, from the packages' own `__all__`, and the modules of
`ops`, which are imported by name.
"""

import ast
import pathlib
import re

_ROOT = pathlib.Path(__file__).parents[1]
_LINK = re.compile(r"\[([^\]]+)\]\(([^)\s]+)\)")


def public_names():
  """Package -> its public names, as `__all__` of its `__init__.py` has them."""
  modules = [path.stem for path in (_ROOT / "tf_mmdrl" / "ops").glob("*.py")]
  found = {
    "tf_mmdrl.ops": sorted(
      name for name in [*modules, "kernels"] if not name.startswith("_")
    )
  }
  for path in sorted((_ROOT / "tf_mmdrl").glob("*/__init__.py")):
    for node in ast.parse(path.read_text()).body:
      is_assignment = isinstance(node, ast.Assign)
      if is_assignment and getattr(node.targets[0], "id", "") == "__all__":
        found[f"tf_mmdrl.{path.parent.name}"] = ast.literal_eval(node.value)
  return found


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
  here = pathlib.Path(page.file.abs_src_path).parent
  docs = _ROOT / "docs"

  def inside(match):
    text, target = match.groups()
    if re.match(r"[a-z]+:|#", target):
      return match[0]
    path = (here / target.partition("#")[0]).resolve()
    if path.is_relative_to(docs) and path.is_file():
      return match[0]
    if path.is_relative_to(docs) and (path / "README.md").is_file():
      return f"[{text}]({target.rstrip('/')}/README.md)"
    if text.strip("`") in str(path):
      return f"`{path.relative_to(_ROOT)}`"
    return f"{text} (`{path.relative_to(_ROOT)}`)"

  return _LINK.sub(inside, markdown)
