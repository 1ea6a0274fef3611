"""The progress line of a run, and its TensorBoard logs."""

import contextlib
from typing import Any, Dict, Iterator, List, Optional, Sequence

import numpy as np
import tensorflow as tf
from tensorboard.plugins.hparams import api as hparams

from tf_mmdrl.agents import updates
from tf_mmdrl.core import choosing, full_disk, notices, optional, run_line
from tf_mmdrl.core.return_distribution import (
  JointReturnDistribution,
  ReturnDistribution,
)
from tf_mmdrl.policies.scores import Mean
from tf_mmdrl.report import joint_figures, return_histograms
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import outside_loggers, videos
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
    writer: the writer of the run.
    step: the step of the run, TensorBoard's only axis.
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
    writer: the writer of TensorBoard's summaries; None once they cannot be
      written.
  """

  def __init__(
    self,
    directory: RunDirectory,
    config: configs.Config,
    step: int,
    log: Sequence[str] = (),
  ):
    """Begins at `step`; `log` names tools of `outside_loggers` to log to."""
    settings = dict(configs.fields(config))
    self._loggers = [
      outside_loggers.OutsideLogger(tool, directory.path, settings)
      for tool in log
    ]
    self.writer: Optional[tf.summary.SummaryWriter] = None
    with self._writing(step):
      self.writer = tf.summary.create_file_writer(str(directory.tensorboard))
      with self.writer.as_default():
        hparams.hparams(settings)
      self.writer.flush()
    self._config = config
    self._names: Optional[List[str]] = None  # of actions, once they are shown
    scores = [row.get("evaluation_score") for row in directory.rows()]
    self._line = run_line.RunLine(
      config.schedule.steps,
      first=step,
      scores=[score for score in scores if score is not None],
    )

  def show(self, step: int, loss: Optional[float]) -> None:
    """Updates the line."""
    self._line.show(step, loss)

  def show_evaluation(self, step: int, share: float) -> None:
    """Updates the line during an evaluation, of which a share is done."""
    self._line.evaluate(step, share)

  def report(self, row: Dict[str, Any]) -> None:
    """Writes a row of the metrics to TensorBoard and the tools."""
    self._line.report(row)
    step, rate = row["step"], self._line.rate
    values = {
      name: row[column]
      for column, name in _SCALARS.items()
      if row[column] is not None
    }
    if rate is not None:
      values["Collection/steps_per_second"] = rate
    for logger in self._loggers:
      logger.log(step, values)
    if self.writer is None:
      return
    with self._writing(step):
      with self.writer.as_default(step=step):
        for name, value in values.items():
          tf.summary.scalar(name, value)
      self.writer.flush()

  def show_returns(
    self,
    step: int,
    observations: np.ndarray,
    returns: ReturnDistribution,
    scores: Optional[np.ndarray] = None,
  ) -> None:
    """Writes an image of frames beside each action's return histogram.

    Args:
      step: the step of the run.
      observations: [up to 3, ...] consecutive ones; passed over where they are
        not pictures.
      returns: [up to 3, A, N]; of joint ones the first is drawn as scatter
        plots.
      scores: [K, D] of the evaluation's games, if they are vectors.
    """
    if isinstance(returns, JointReturnDistribution):
      self._show_joint(step, observations, returns, scores)
      return
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

  def _show_joint(
    self,
    step: int,
    observations: np.ndarray,
    returns: JointReturnDistribution,
    scores: Optional[np.ndarray],
  ) -> None:
    """Writes scatter plots of a state of an evaluation, and numbers.

    They are the correlations, of particles and of the scores of games, and the
    probability that all limits of a threshold utility hold, by the action for
    which it is highest; of games that is the score itself.
    """
    if not (self.writer and optional.is_there("matplotlib")):
      return
    num_actions, dimensions = returns.shape[1], returns.dimensions
    if self._names is None:
      self._names = videos.names_of_actions(self._config, num_actions)
    image = joint_figures.image(
      returns.values[0].numpy(), returns.weights()[0].numpy(), self._names
    )
    correlations = returns.correlation()[0].numpy()
    values: Dict[str, float] = {}
    for i, j in joint_figures.pairs(dimensions) if dimensions > 1 else ():
      values[f"Returns/correlation_{i}_{j}"] = correlations[:, i, j].mean()
      if scores is not None:
        played = joint_figures.correlation(scores, i, j)
        values[f"Score/correlation_{i}_{j}"] = played
    own = self._config.own_settings
    if own.limits() is not None:
      whole = own.score(Mean()).see(returns, tf.constant(observations))
      worth = own.numbers(whole).mean()[0]
      values["Returns/probability_of_limits"] = float(tf.reduce_max(worth))
    with self._writing(step), self.writer.as_default(step=step):
      tf.summary.image("Returns/of_each_action", image[np.newaxis])
      for name, value in values.items():
        tf.summary.scalar(name, value)

  def close(self, *, is_finished: bool = False) -> None:
    """Ends the line and the logs.

    Args:
      is_finished: whether the run is over, rather than stopped.
    """
    self._line.close()
    for logger in self._loggers:
      logger.close(is_finished=is_finished)
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
      notices.warn(
        "TensorBoard's summaries cannot be written"
        f" ({full_disk.reason(error)}) and are left out from step {step:,} on;"
        " the run goes on"
      )
