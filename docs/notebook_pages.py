"""Turns notebooks into pages of the site: Markdown and their pictures.

A notebook holds what its cells printed and drew, so nothing is run here.
"""

import base64
import re
from typing import Any, Dict, List, Tuple

_MAGIC = re.compile(r"%%(writefile|bash) ?(.*)\n")
_TERMINAL = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|^.*\r(?!\n)", re.MULTILINE)


def convert(
  notebook: Dict[str, Any], name: str
) -> Tuple[str, Dict[str, bytes]]:
  """The page of a notebook.

  Args:
    notebook: its JSON.
    name: of its file, without the ending.

  Returns:
    The Markdown, and the pictures by the names that it calls them.
  """
  parts: List[str] = []
  pictures: Dict[str, bytes] = {}
  heading = name
  for cell in notebook["cells"]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
      parts.append(source)
      heading = ([heading] + re.findall(r"^#+ (.*)$", source, re.MULTILINE))[-1]
      continue
    parts.append(_code(source))
    if source.startswith("%%writefile"):  # which says only that it wrote
      continue
    for output in cell["outputs"]:
      data = output.get("data", {})
      if "image/png" in data:
        picture = f"{name}-{len(pictures) + 1}.png"
        pictures[picture] = base64.b64decode("".join(data["image/png"]))
        parts.append(f"![Picture of: {heading}]({picture})")
      else:
        text = "".join(output.get("text", data.get("text/plain", "")))
        parts.append(_fenced("text", _TERMINAL.sub("", text)))
  first, _, rest = "\n\n".join(parts).partition("\n")
  download = f"[This page as a notebook]({name}.ipynb){{ download }}"
  return f"{first}\n\n{download}\n{rest}\n", pictures


def _code(source: str) -> str:
  """A block of code; of a file's, with its name above."""
  found = _MAGIC.match(source)
  if found is None:
    return _fenced("python", source)
  rest = source[found.end() :]
  if found[1] == "bash":
    return _fenced("bash", rest)
  return _fenced(f'python title="{found[2].strip()}"', rest)


def _fenced(language: str, text: str) -> str:
  return f"```{language}\n{text.rstrip()}\n```"
