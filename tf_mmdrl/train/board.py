"""TensorBoard on runs, with a page of charts that begins with the score."""

import pathlib
import tempfile
from typing import Callable, Dict, Optional, Sequence

import tensorflow as tf
from tensorboard import default, program
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import summary as custom_scalar

from tf_mmdrl.core import errors
from tf_mmdrl.train.run_directory import RunDirectory

# Part of the page -> title of a chart -> the tags it shows, as expressions that
# TensorBoard matches from the start.
_CHARTS = {
  "Score": {
    "Evaluation": ["^Score/evaluation$"],
    "Training": ["^Score/train$"],
    "Evaluation, 1 for human play": ["^Score/evaluation_human_normalized$"],
  },
  "Learning": {
    "Loss": ["^Learning/loss$"],
    "Gradient norm": [".*/gradient_norm$"],
    "Expected return": [".*/expected_return$"],
    "Unit of return": ["^Learning/unit$"],
    "Share beyond the loss's reach": ["^Learning/beyond_reach$"],
  },
  "Collection": {
    "Steps a second": ["^Collection/steps_per_second$"],
    "Exploration": ["^Collection/epsilon$"],
  },
}
_PAGE = "#custom_scalars"


def serve(
  directories: Sequence[pathlib.Path],
  port: Optional[int],
  wait: Callable[[str], None],
) -> None:
  """Runs TensorBoard on this machine's own address only.

  Args:
    directories: of runs.
    port: where; None takes 6006, or the next one that is free.
    wait: told the address; TensorBoard ends when this returns.
  """
  with tempfile.TemporaryDirectory(prefix="mmdrl-tensorboard-") as folder:
    logs = pathlib.Path(folder)
    for name, directory in _names(directories).items():
      # A link, so that nothing is written into the run.
      (logs / name).symlink_to(RunDirectory(directory).tensorboard.resolve())
    _write_layout(logs / ".layout")
    board = program.TensorBoard(default.get_plugins())
    flags = ["--logdir", folder, "--host", "localhost"]
    if port is not None:
      flags += ["--port", str(port)]
    try:
      board.configure(argv=["mmdrl", *flags])
      address = board.launch()
    except program.TensorBoardServerException as error:
      raise errors.UserError(
        f"TensorBoard cannot start: {error}; pass another --port"
      ) from None
    wait(address + _PAGE)


def layout() -> layout_pb2.Layout:
  """The page of charts."""
  return layout_pb2.Layout(
    category=[
      layout_pb2.Category(
        title=title,
        chart=[
          layout_pb2.Chart(
            title=chart, multiline=layout_pb2.MultilineChartContent(tag=tags)
          )
          for chart, tags in charts.items()
        ],
      )
      for title, charts in _CHARTS.items()
    ]
  )


def _names(directories: Sequence[pathlib.Path]) -> Dict[str, pathlib.Path]:
  """A name for each run: its directory's, with a number if that is taken."""
  names: Dict[str, pathlib.Path] = {}
  for directory in directories:
    name = plain = directory.resolve().name
    while name in names:
      name = f"{plain}-{len(names)}"
    names[name] = directory
  return names


def _write_layout(directory: pathlib.Path) -> None:
  summary = custom_scalar.pb(layout()).SerializeToString()
  writer = tf.summary.create_file_writer(str(directory))
  with writer.as_default():
    tf.summary.experimental.write_raw_pb(summary, step=0)
  writer.close()
