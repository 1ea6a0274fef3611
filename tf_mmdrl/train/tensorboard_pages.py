"""TensorBoard on runs, with a page of charts that begins with the score."""

import contextlib
import io
import os
import pathlib
import tempfile
from typing import Callable, Dict, Iterable, Optional, Sequence, Tuple

import tensorflow as tf
from tensorboard import default, program
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.custom_scalar import summary as custom_scalar

from tf_mmdrl.core import errors
from tf_mmdrl.core.run_files import RunFiles
from tf_mmdrl.report import human_normalized

_HUMAN = "Evaluation, 1 for human play"
# Part of the page -> title of a chart -> the tags it shows, as expressions that
# TensorBoard matches from the start.
_CHARTS = {
  "Score": {
    "Evaluation": ["^Score/evaluation$"],
    "Training": ["^Score/train$"],
    _HUMAN: ["^Score/evaluation_human_normalized$"],
  },
  "Learning": {
    "Loss": ["^Learning/loss$"],
    "Gradient norm": ["^Learning/gradient_norm$"],
    "Expected return": ["^Learning/expected_return$"],
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
  runs: Sequence[RunFiles],
  port: Optional[int],
  wait: Callable[[str], None],
) -> None:
  """Runs TensorBoard on this machine's own address only.

  Args:
    runs: what to show.
    port: the port to listen on; None takes 6006, or the next one that is free.
    wait: told the address; TensorBoard ends when this returns.
  """
  with tempfile.TemporaryDirectory(prefix="mmdrl-tensorboard-") as folder:
    logs = pathlib.Path(folder)
    for name, run in _names(runs).items():
      (logs / name).parent.mkdir(parents=True, exist_ok=True)
      # A link, so that nothing is written into the run.
      (logs / name).symlink_to(run.tensorboard.resolve())
    games = {run.identity().environment for run in runs}
    _write_layout(logs / ".layout", layout(games))
    tensorboard = program.TensorBoard(default.get_plugins())
    flags = ["--logdir", folder, "--host", "localhost"]
    if port is not None:
      flags += ["--port", str(port)]
    try:
      tensorboard.configure(argv=["mmdrl", *flags])
      # It advertises how it reads logs.
      with contextlib.redirect_stderr(io.StringIO()):
        address = tensorboard.launch()
    except program.TensorBoardServerException as error:
      raise errors.UserError(
        f"TensorBoard cannot start: {error}; pass another --port"
      ) from None
    wait(address + _PAGE)


def layout(games: Iterable[str]) -> layout_pb2.Layout:
  """The page of charts; that of human play if it is known of a game."""
  human = any(human_normalized(game, 0.0) is not None for game in games)
  return layout_pb2.Layout(
    category=[
      layout_pb2.Category(
        title=title,
        chart=[
          layout_pb2.Chart(
            title=chart, multiline=layout_pb2.MultilineChartContent(tag=tags)
          )
          for chart, tags in charts.items()
          if human or chart != _HUMAN
        ],
      )
      for title, charts in _CHARTS.items()
    ]
  )


def _names(runs: Sequence[RunFiles]) -> Dict[str, RunFiles]:
  """`environment/agent/seed` of each run, and where it lies if that is taken.

  Each name is a path of three parts: none leads into another run's directory.
  """
  names: Dict[str, RunFiles] = {}
  paths = [run.path.resolve() for run in runs]
  plain = ["/".join(_parts(run)) for run in runs]
  shared = pathlib.Path(os.path.commonpath(paths))
  for run, path, name in zip(runs, paths, plain):
    if plain.count(name) > 1:
      name += f" in {'-'.join(path.relative_to(shared).parts)}"
    unnumbered = name
    while name in names:
      name = f"{unnumbered} ({len(names)})"
    names[name] = run
  return names


def _parts(run: RunFiles) -> Tuple[str, str, str]:
  game, agent, seed = run.identity()
  return game.replace("/", "-"), agent.replace("/", "-"), f"seed{seed}"


def _write_layout(directory: pathlib.Path, charts: layout_pb2.Layout) -> None:
  summary = custom_scalar.pb(charts).SerializeToString()
  writer = tf.summary.create_file_writer(str(directory))
  with writer.as_default():
    tf.summary.experimental.write_raw_pb(summary, step=0)
  writer.close()
