"""The progress line of a run, and its TensorBoard logs."""

import contextlib
import sys
import time
from typing import Any, Dict, Iterator, List, Optional

import numpy as np
import tensorflow as tf
from tensorboard.plugins.hparams import api as hparams

from tf_mmdrl.agents import updates
from tf_mmdrl.core import choosing, full_disk, optional, progress
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.report import return_histograms
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import videos
from tf_mmdrl.train.run_directory import RunDirectory

# TensorFlow has more than one word for a full disk.
_DISK_ERRORS = (OSError, tf.errors.OpError)
# Column of metrics.csv -> name in TensorBoard.
_SCALARS = {
  "train_score": "Score/train",
  "evaluation_score": "Score/evaluation",
  "evaluation_human_normalized": "Score/evaluation_human_normalized",
  "loss": "Learning/loss",
  "updates": "Learning/updates",
  "unit": "Learning/unit",
  "beyond_reach": "Learning/beyond_reach",
  "epsilon": "Collection/epsilon",
  "episodes": "Collection/episodes",
  "replay_steps": "Collection/replay_steps",
}


def write_update(
  writer: tf.summary.SummaryWriter, step: int, update: updates.Update
) -> None:
  """Writes the predictions, targets and gradients of an update to TensorBoard.

  Its loss is not written: the mean over many updates is, with the metrics.

  Args:
    writer: of the run.
    step: of the run, TensorBoard's only axis.
    update: the newest.
  """
  # On a full disk the next row says so; see Watcher.
  with contextlib.suppress(*_DISK_ERRORS), writer.as_default(step=step):
    for name, value in {
      "expected_return": tf.reduce_mean(update.predicted.mean()),
      "expected_target": tf.reduce_mean(update.target.mean()),
      "gradient_norm": tf.linalg.global_norm(update.gradients),
    }.items():
      tf.summary.scalar(f"Learning/{name}", value)
    for name, values in {
      "Returns/predicted": update.predicted.values,
      "Returns/target": update.target.values,
      "Learning/td_error": update.loss_info.extra.td_error,
    }.items():
      tf.summary.histogram(name, values)


class Watcher:
  """Shows and logs a run; nothing here changes how the run goes.

  Attributes:
    writer: of TensorBoard's summaries; None once they cannot be written.
  """

  def __init__(
    self, directory: RunDirectory, config: configs.Config, step: int
  ):
    """Begins at `step`."""
    self.writer: Optional[tf.summary.SummaryWriter] = None
    with self._writing(step):
      self.writer = tf.summary.create_file_writer(str(directory.tensorboard))
      with self.writer.as_default():
        hparams.hparams(dict(configs.fields(config)))
      self.writer.flush()
    self._config = config
    self._names: Optional[List[str]] = None  # of actions, once they are shown
    self._progress = progress.Progress(
      config.schedule.steps, "train", first=step
    )
    self._learns = False
    self._since, self._since_step = time.monotonic(), step
    self._rate: Optional[float] = None
    self._score: Optional[float] = None
    self._evaluation: Optional[float] = None

  def show(self, step: int, loss: Optional[float]) -> None:
    """Updates the line."""
    if loss is not None and not self._learns:
      # What was played before goes by much faster, and the first update
      # compiles: neither tells how long the rest will take.
      self._learns = True
      self._progress.forget_pace(step)
      self._since, self._since_step = time.monotonic(), step
      self._rate = None
    parts = [f"step {step:,}"]
    if self._score is not None:
      parts.append(f"score {self._score:.2f}")
    if self._evaluation is not None:
      parts.append(f"evaluation {self._evaluation:.2f}")
    if loss is not None:
      parts.append(f"loss {loss:.3g}")
    if self._rate is not None:
      parts.append(f"{self._rate:,.0f} steps/s")
    self._progress.update(step, ", ".join(parts))

  def report(self, row: Dict[str, Any]) -> None:
    """Writes a row of the metrics to TensorBoard."""
    now, step = time.monotonic(), row["step"]
    if step > self._since_step:
      self._rate = (step - self._since_step) / max(1e-9, now - self._since)
    self._since, self._since_step = now, step
    if row["train_score"] is not None:
      self._score = row["train_score"]
    if row["evaluation_score"] is not None:
      self._evaluation = row["evaluation_score"]
    if self.writer is None:
      return
    with self._writing(step):
      with self.writer.as_default(step=step):
        for column, name in _SCALARS.items():
          if row[column] is not None:
            tf.summary.scalar(name, row[column])
        if self._rate is not None:
          tf.summary.scalar("Collection/steps_per_second", self._rate)
      self.writer.flush()

  def show_returns(
    self, step: int, observations: np.ndarray, returns: ReturnDistribution
  ) -> None:
    """Writes an image of frames beside each action's return histogram.

    Args:
      step: of the run.
      observations: [up to 3, ...] consecutive ones; passed over where they are
        not pictures.
      returns: [up to 3, A, N].
    """
    pictured = videos.pictured(self._config)
    if not (self.writer and pictured and optional.is_there("matplotlib")):
      return
    frames = [videos.frame(self._config, seen) for seen in observations]
    actions = choosing.largest(returns.mean()).numpy()
    moments = [
      return_histograms.Moment(frame, particles, weights, int(action), None)
      for frame, particles, weights, action in zip(
        frames, returns.values.numpy(), returns.weights().numpy(), actions
      )
    ]
    if self._names is None:
      num_actions = returns.values.shape[1]
      self._names = videos.names_of_actions(self._config, num_actions)
    image = return_histograms.drawer(moments, self._names)(moments)
    with self._writing(step), self.writer.as_default(step=step):
      tf.summary.image("Returns/of_each_action", image[np.newaxis])

  def close(self) -> None:
    """Ends the line and the log."""
    self._progress.close()
    if self.writer is not None:
      with contextlib.suppress(*_DISK_ERRORS):
        self.writer.close()

  @contextlib.contextmanager
  def _writing(self, step: int) -> Iterator[None]:
    """Leaves summaries out from the first that cannot be written."""
    try:
      yield
    except _DISK_ERRORS as error:
      self.writer = None
      print(
        "mmdrl: warning: TensorBoard's summaries cannot be written"
        f" ({full_disk.reason(error)}) and are left out from step {step:,} on;"
        " the run goes on",
        file=sys.stderr,
      )
