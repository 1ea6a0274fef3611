"""Runs the tutorials' notebooks, and writes what they show into them.

  python docs/run_tutorials.py [NAME ...]

All of them if none is named. Each runs in an empty folder of its own. What
libraries and progress lines write to standard error is not kept.
"""

import os
import pathlib
import sys
import tempfile
from typing import List

import nbclient
import nbformat
from nbformat import NotebookNode

FOLDER = pathlib.Path(__file__).parent / "tutorials"
_SECONDS = 3600  # for one cell, on a very busy machine


def run(path: pathlib.Path) -> NotebookNode:
  """The notebook with the outputs of a fresh run.

  Args:
    path: of the notebook, which stays as it is.

  Returns:
    What ran; an error in any cell is raised.
  """
  notebook = nbformat.read(path, as_version=4)
  # `%%bash` cells find the commands of this Python first.
  here = str(pathlib.Path(sys.executable).parent)
  environment = {
    **os.environ,
    "PATH": os.pathsep.join([here, os.environ.get("PATH", "")]),
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "COLUMNS": "80",
  }
  with tempfile.TemporaryDirectory() as folder:
    client = nbclient.NotebookClient(
      notebook, timeout=_SECONDS, resources={"metadata": {"path": folder}}
    )
    client.execute(env=environment)
  for cell in notebook.cells:
    cell.metadata.pop("execution", None)
    if cell.cell_type == "code":
      cell.outputs = cleaned(cell.outputs)
  notebook.metadata = {
    "kernelspec": notebook.metadata["kernelspec"],
    "language_info": {"name": "python"},
  }
  return notebook


def cleaned(outputs: List[NotebookNode]) -> List[NotebookNode]:
  """Outputs without standard error; what was printed in turns, in one piece."""
  kept: List[NotebookNode] = []
  for output in outputs:
    if output.get("name") == "stderr":
      continue
    if kept and output.get("name") == kept[-1].get("name") == "stdout":
      kept[-1].text += output.text
    else:
      kept.append(output)
  return kept


def main() -> None:
  """Runs those that are named, or all."""
  for name in sys.argv[1:] or sorted(p.stem for p in FOLDER.glob("*.ipynb")):
    path = FOLDER / f"{name}.ipynb"
    nbformat.write(run(path), path)
    print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
  main()
