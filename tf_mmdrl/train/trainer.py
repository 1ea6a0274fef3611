"""The training loop: play and learn, evaluate, save."""

from typing import Any, Callable, NamedTuple, Optional, Sequence

import tensorflow as tf

from tf_mmdrl import serving
from tf_mmdrl.core import (
  errors,
  full_disk,
  notices,
  optional,
  run_files,
  run_records,
)
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.environments import family
from tf_mmdrl.evaluation.evaluator import Evaluation, Evaluator
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import (
  devices,
  exporting,
  factories,
  left_open,
  run_figures,
  videos,
)
from tf_mmdrl.train.config import Config
from tf_mmdrl.train.rounds import Rounds
from tf_mmdrl.train.run_directory import RunDirectory
from tf_mmdrl.train.run_state import RunState
from tf_mmdrl.train.slot_actors import Crew
from tf_mmdrl.train.stopping import Stop
from tf_mmdrl.train.watching import Watcher

_SOURCES = 4  # that a line names

Hire = Callable[[Config, Stop], Crew]
# What has the parts of `RunState` that a trainer asks for; see `offline`.
Make = Callable[[Config, RunDirectory], Any]


class Outcome(NamedTuple):
  """How a call of `train` ended.

  Attributes:
    finished: False if it was told to stop; the same call goes on.
    step: the step at which it ended.
    evaluation_score: the score of the last evaluation, if there was any.
    best_score: the best score of all evaluations.
    best_step: the step at which it was reached.
  """

  finished: bool
  step: int
  evaluation_score: Optional[float]
  best_score: Optional[float]
  best_step: Optional[int]


def train(
  config: Config,
  directory: RunDirectory,
  *,
  strict: bool = False,
  hire: Optional[Hire] = None,
  log: Sequence[str] = (),
  make: Optional[Make] = None,
  words: Optional[left_open.Words] = None,
) -> Outcome:
  """Trains until the last step or a signal; goes on where a run stopped.

  Args:
    config: the settings.
    directory: the directory of the run; claimed while this goes on.
    strict: whether to refuse to go on with a run on another machine, or with
      other versions, than it was computed with before.
    hire: finds who plays, if not actors in this process. They may ask the run
      to stop, too.
    log: tools of `outside_loggers` that the metrics go to as well.
    make: makes the run's state, if it is not one that plays.
    words: what the settings were typed as, if they were.

  Returns:
    How it ended.
  """
  directory.imports.update(configs.imported(config))  # its user named them
  config = directory.as_begun(config.completed(), notices.note)
  factories.require_whole_phases(config)
  # Before the directory is touched, for most mistakes show here.
  stop = Stop(
    lambda: run_records.what_is_left(directory), directory.checkpoints
  )
  if make is not None:
    state = make(config, directory)
  else:
    state = RunState(config, directory, hire(config, stop) if hire else None)
  try:
    before = directory.open_for_training(
      config, strict=strict, words=words, note=notices.note
    )
    state.restore(notices.warn, clean=True)
    _say_where(state, before)
    _say_how_it_resumes(state)
    try:
      run_records.check_metrics(directory)
    except errors.UserError as error:
      notices.warn(str(error))
    state.metrics.begin()
    with stop:
      finished = Trainer(state, directory, stop, log).run()
    score = run_files.last(state.metrics.rows(), "evaluation_score")
    best = state.metrics.best_score, state.metrics.best_step
    return Outcome(finished, state.step, score, *best)
  except errors.BrokenRunError as error:
    left = run_records.what_is_left(directory)
    raise type(error)(f"{error}; {left}") from error
  except OSError as error:
    raise errors.UserError(
      f"cannot write to {str(directory.path)!r}: {full_disk.reason(error)};"
      f" {full_disk.room(directory.path)}: make room, and"
      f" {run_records.what_is_left(directory)}"
    ) from error
  finally:
    state.close()
    directory.close()


def _say_where(state: RunState, before: Optional[Config]) -> None:
  """Tells the person at the terminal that a run goes on, or is over."""
  step, last = state.step, state.config.schedule.steps
  if before is not None and before.schedule.steps != last:
    notices.note(
      f"the run was to have {before.schedule.steps:,} steps and will have"
      f" {last:,}"
    )
  if state.is_finished:
    notices.note(
      f"the run is finished: it is at step {step:,} of {last:,}; pass more"
      " --steps to go on"
    )
  elif step:
    notices.note(f"goes on at step {step:,} of {last:,}")


def _say_how_it_resumes(state: RunState) -> None:
  """Tells of an environment whose state cannot be saved, though one might."""
  config = state.config.environment
  if not state.actors:  # nothing is played
    return
  why = state.actors[0].replayed_because  # they are all alike
  if why is not None and family(config.name) != "atari":
    notices.note(
      f"{why}. So a resumed run plays again what came since its episodes were"
      f" last cut, every {config.rebuild_period:,} steps"
    )
  if state.unseeded and config.resume != "fresh":
    some = ", ".join(state.unseeded[:_SOURCES])
    notices.note(
      f"the environment's code asks {some}, which no seed decides. If that"
      " changes what it returns, a cut run may go on otherwise without a word;"
      " seed it, or pass --set environment.resume=fresh"
    )


class Trainer:
  """Takes a run from where it is to its end.

  What it does at a step depends on the step and on the run's state only, never
  on when the process began or a checkpoint was made.
  """

  def __init__(
    self,
    state: RunState,
    directory: RunDirectory,
    stop: Stop,
    log: Sequence[str] = (),
  ):
    """Opens the logs and makes the environments to evaluate in."""
    config = state.config
    self._state = state
    self._config = config
    self._directory = directory
    self._stop = stop
    self._watcher = Watcher(directory, config, state.step, log)
    self._evaluator: Optional[Evaluator] = None
    if state.is_evaluated:
      self._evaluator = Evaluator(
        factories.environment(config, evaluation=True),
        factories.evaluation_player(config, state.agent.return_network).act,
        config.evaluation,
        factories.seeds(config).evaluation,
        config.own_settings.worth,
      )
    self._is_solved = self._has_enough()
    self._saved = state.step
    self._changed = False  # since the last checkpoint
    self._summarize = False
    self._told = False  # of environments that cannot be saved exactly
    self._finished = False
    self._rounds = (state.make_rounds or Rounds)(state)

  def run(self) -> bool:
    """Whether the last step was reached."""
    try:
      while True:
        if self._is_report_due():
          self._report()
        if self._is_over() and not self._is_report_due():
          break
        if self._stop.asked:
          self._save()
          return False
        if self._is_due(self._config.system.checkpoint_period, self._saved):
          self._save()
        self._round()
      self._save()
      self._export()
      self._draw()
      self._finished = True
      return True
    finally:
      self._rounds.close()
      self._watcher.close(is_finished=self._finished)
      if self._evaluator is not None:
        self._evaluator.close()

  def _round(self) -> None:
    self._changed = True
    writer = self._watcher.writer if self._summarize else None
    loss = self._rounds.play_and_learn(writer)
    self._summarize = self._summarize and loss is None
    self._end_long_phase()
    self._watcher.show(self._state.step, loss)

  def _end_long_phase(self) -> None:
    """Without it a game that never ends would never be evaluated."""
    group, step = self._config.evaluation, self._state.step
    metrics, period = self._state.metrics, group.period
    if group.at == "game" and metrics.end_long_phase(step, period):
      notices.warn(
        f"no game has ended in the last {period:,} steps, so this phase ends"
        f" within one, at step {step:,}; environment.max_episode_steps cuts"
        " games that are too long"
      )

  def _is_over(self) -> bool:
    return self._is_solved or self._state.is_finished

  def _has_enough(self) -> bool:
    wanted = self._config.evaluation.enough
    rows = self._state.metrics.rows()
    scores = [row.get("evaluation_score") for row in rows]
    return any(run_files.is_enough(score, wanted) for score in scores)

  def _is_due(self, period: int, last: int) -> bool:
    """Whether a multiple of the period has been passed since `last`."""
    return self._state.step // period > last // period

  def _is_evaluation_due(self) -> bool:
    if self._evaluator is None:
      return False
    last = self._state.metrics.last_evaluation
    at_the_end = self._is_over() and last < self._state.step
    group = self._config.evaluation
    if group.at == "game":
      return at_the_end or self._state.metrics.phase >= group.period
    return at_the_end or self._is_due(group.period, last)

  def _is_report_due(self) -> bool:
    last = self._state.metrics.last_step
    log_period = self._config.system.log_period
    return self._is_evaluation_due() or self._is_due(log_period, last)

  def _report(self) -> None:
    """Evaluates if it is time to, and adds a row; nothing if told to stop."""
    state = self._state
    evaluation: Optional[Evaluation] = None
    glimpse = videos.Glimpse()
    if self._evaluator is not None and self._is_evaluation_due():
      # A checkpoint can be made while its environments do not answer.
      with self._stop.saving_if_stuck(self._save):
        evaluation = self._evaluator.evaluate(
          state.step,
          lambda: self._stop.asked,
          glimpse.add,
          lambda share: self._watcher.show_evaluation(state.step, share),
        )
      if self._stop.asked:
        return  # still due when the run goes on
      if evaluation.cut:
        notices.warn(
          f"{evaluation.cut} of {len(evaluation.scores)} games of the"
          f" evaluation at step {state.step:,} had not ended after"
          f" {self._config.evaluation.max_episode_steps:,} steps and count with"
          " their score so far"
        )
    self._directory.require_there()
    row = state.metrics.add_row(
      step=state.step,
      updates=state.updates,
      epsilon=float(factories.epsilon(self._config, state.step)),
      replay_steps=state.replay.num_steps,
      evaluation=evaluation,
      unit=state.agent.unit.numpy(),
      beyond_reach=float(state.agent.beyond_reach.numpy()),
    )
    self._changed = True
    if evaluation is not None:
      self._is_solved = self._has_enough()
      self._say_what_is_not_enough(evaluation.mean)
    self._watcher.report(row)
    if evaluation is not None:
      observations = glimpse.observations()
      output, _ = state.agent.return_network(observations)
      self._watcher.show_returns(
        state.step,
        observations,
        ReturnDistribution.of(output),
        evaluation.vectors,
      )
    self._summarize = True
    if state.metrics.best_step == state.step:
      self._export()

  def _say_what_is_not_enough(self, score: float) -> None:
    wanted = self._config.evaluation.enough
    if wanted < run_files.TOO_HIGH and not score < run_files.TOO_HIGH:
      notices.warn(
        f"the evaluation at step {self._state.step:,} gave a score of"
        f" {score:g}, which is not below {run_files.TOO_HIGH:g}: it does not"
        " count for evaluation.enough, so the run goes on; are the rewards as"
        " they should be?"
      )

  def _save(self) -> None:
    if self._changed:
      self._rounds.settle()
      self._directory.require_there()
      self._state.save()
      self._saved, self._changed = self._state.step, False
      self._say_problem()

  def _say_problem(self) -> None:
    """Tells, once, that this run could not go on exactly if it stopped."""
    problem = self._state.problem
    if problem and not self._told:
      self._told = True
      notices.warn(
        f"at step {self._state.step:,} the environment's state cannot be saved"
        f" exactly: {problem}. If the run stops, it can go on with --set"
        " environment.resume=fresh"
      )

  def _export(self) -> None:
    """Publishes the policy; the best and the newest version stay."""
    self._directory.require_there()
    state, directory = self._state, self._directory.export
    exporting.export(state, directory)
    for number in serving.versions(directory):
      if number not in (state.step, state.metrics.best_step):
        serving.remove(directory, number)

  def _draw(self) -> None:
    if optional.is_there("matplotlib"):
      title = f"{self._config.agent.name}, {self._config.environment.name}"
      run_figures.learning_curve(
        self._state.metrics.rows(), title, self._directory.learning_curve
      )


def configure_process(config: Config) -> None:
  """Sets what TensorFlow has one of for the whole process."""
  # On GPUs that have it, TF32 keeps ten bits in products of float32: too few
  # for the sums of the MMD.
  tf.config.experimental.enable_tensor_float_32_execution(False)
  if config.system.deterministic:
    tf.config.experimental.enable_op_determinism()
  if config.system.mixed_precision:
    tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
  devices.configure(config)
