"""Data sets by the place where they lie."""

import pathlib

from tf_mmdrl.core import errors
from tf_mmdrl.offline import minari_files, transition_files
from tf_mmdrl.offline.dataset import DataSet


def open_dataset(text: str) -> DataSet:
  """A data set: a folder or local id of Minari's, or an NPZ or CSV file.

  Args:
    text: the path, or the id of a data set below MINARI_DATASETS_PATH.

  Returns:
    The data set; nothing is downloaded, imported or unpickled.
  """
  path = pathlib.Path(text)
  if path.suffix == ".npz" and path.is_file():
    return transition_files.NPZDataSet(path)
  if path.suffix == ".csv" and path.is_file():
    return transition_files.CSVDataSet(path)
  found = minari_files.find(text)
  if found is None:
    raise errors.UserError(
      f"there is no data set {text!r}; pass the folder of a local Minari data"
      " set, its id, or a .npz or .csv file of transitions"
    )
  return minari_files.MinariDataSet(found)
