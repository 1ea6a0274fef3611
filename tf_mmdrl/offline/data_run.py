"""A run that learns from logged episodes alone, as `train.trainer` takes it.

It has no actors: a round is some updates on a block of transitions, and what is
drawn depends on the seed and the round's number alone. Settings, checkpoints,
metrics and exports are those of any run.
"""

import json
import pathlib
from typing import Any, Callable, Dict, List, NamedTuple, Optional

import numpy as np
import tensorflow as tf
from tf_agents.trajectories import policy_step, trajectory
from tf_agents.trajectories import time_step as ts

from tf_mmdrl.agents import transitions
from tf_mmdrl.core import errors, full_disk, notices, run_records, whole_files
from tf_mmdrl.offline import behaviour, blocks, fitting, overview
from tf_mmdrl.offline.dataset import DataSet
from tf_mmdrl.policies import utilities
from tf_mmdrl.train import checkpoints, factories, logged_specs, watching
from tf_mmdrl.train import config as configs
from tf_mmdrl.train.metrics import Metrics
from tf_mmdrl.train.run_directory import RunDirectory

UPDATES = 100  # of a round
_AGENT = "agent"


class Kept(NamedTuple):
  """What stands for replay.

  Attributes:
    num_steps: logged transitions.
  """

  num_steps: int


class DataRun:
  """The parts of a run that change as it goes on.

  Attributes:
    config: its settings.
    directory: where it is saved.
    agent: what learns.
    step: steps so far; an update counts `schedule.steps_per_update`.
    metrics: what was measured.
    replay: how much was logged.
    actors: nobody.
    is_evaluated: whether games are played between updates.
    problem: None; it can always go on exactly.
    make_rounds: what learns a round.
  """

  actors: List[Any] = []
  problem = None

  def __init__(
    self,
    config: configs.Config,
    directory: RunDirectory,
    *,
    specs: logged_specs.LoggedSpecs,
    data: Optional[overview.Data] = None,
    is_evaluated: bool = False,
  ):
    """Makes the parts as they are at step 0.

    Args:
      config: its settings.
      directory: where it is saved.
      specs: of the data.
      data: what it learns from; None to look at a run only.
      is_evaluated: whether games are played between updates.
    """
    self.config, self.directory = config, directory.path
    self.is_evaluated = is_evaluated
    self._specs, self._data = specs, data
    bounds = None
    if data is not None:
      bounds = fitting.possible_returns(
        data.rewards, config.agent.gamma, ends=data.num_terminated > 0
      )
    self.agent = factories.agent(config, specs, return_bounds=bounds)
    self.step = 0
    self.replay = Kept(0 if data is None else data.episodes.num_steps)
    self.metrics = Metrics(
      directory.metrics,
      config.environment.name,
      factories.dimensions(specs),
      config.own_settings.worth,
    )
    self.make_rounds = DataRounds
    self._checkpoints = checkpoints.Checkpoints(directory.checkpoints)
    self._trackable = tf.train.Checkpoint(agent=self.agent)

  @property
  def data(self) -> overview.Data:
    """What is learnt from."""
    assert self._data is not None
    return self._data

  @property
  def specs(self) -> logged_specs.LoggedSpecs:
    """Of the data."""
    return self._specs

  @property
  def updates(self) -> int:
    """How many updates were done."""
    return int(self.agent.train_step_counter.numpy())

  @property
  def is_finished(self) -> bool:
    """Whether all steps were learnt."""
    return self.step >= self.config.schedule.steps

  def save(self) -> None:
    """Makes a checkpoint, and removes those that are too old."""
    variables = self.agent.state_variables()
    self._checkpoints.save(
      self.step,
      self._write,
      sum(v.dtype.size * v.shape.num_elements() for v in variables),
    )
    self._checkpoints.prune(self.config.system.checkpoints_kept)

  def restore(self, warn: Callable[[str], None], *, clean: bool) -> bool:
    """Goes back to the newest whole checkpoint, if there is any.

    Args:
      warn: told of damaged checkpoints.
      clean: whether to remove leftovers of a crash; only for the run's owner.

    Returns:
      Whether there was one.
    """
    if clean:
      self._specs.write(self.directory)
      for step in self._checkpoints.recover():
        warn(f"the checkpoint of step {step} was complete, but for its name")
    found = checkpoints.restore_newest(self._checkpoints, self._read, warn)
    if clean:
      self._checkpoints.clean(self.step)
    return found

  def fingerprints(self) -> Dict[str, str]:
    """A SHA-256 of each part that decides how the run goes on."""
    variables = [np.asarray(each) for each in self.agent.state_variables()]
    joined = b"".join(each.tobytes() for each in variables)
    return {
      "weights and optimizer": whole_files.digest(joined),
      "metrics": whole_files.digest(self.metrics.text.encode()),
    }

  def fingerprint(self) -> str:
    """One SHA-256 over all of `fingerprints`."""
    return whole_files.digest("".join(self.fingerprints().values()).encode())

  def close(self) -> None:
    """Nothing is open."""

  def identity(self) -> Dict[str, Any]:
    """What tells these data from others at the same place."""
    returns = self.data.returns
    return {
      "episodes": len(returns),
      "steps": self.replay.num_steps,
      "returns": [float(returns.sum()), float(returns.std())],
    }

  def _write(self, directory: pathlib.Path) -> None:
    try:
      self._trackable.write(str(directory / _AGENT))
    except tf.errors.OpError as error:  # TensorFlow's own word for a full disk
      raise OSError(full_disk.reason(error)) from error
    content = {
      "step": self.step,
      "data": self.identity(),
      "metrics": self.metrics.state(),
      "config": configs.to_json(self.config),
    }
    whole_files.write_json(directory / run_records.STATE, content)
    whole_files.write(
      directory / run_records.METRICS, self.metrics.text.encode()
    )

  def _read(self, directory: pathlib.Path) -> None:
    content = whole_files.read_json(directory / run_records.STATE)
    if self._data is not None and content["data"] != self.identity():
      raise errors.UserError(
        f"the data set {self.config.replay.data!r} is not the one that this run"
        f" began with: it has {self.identity()} instead of {content['data']};"
        " put that one back, or pass another --run-dir"
      )
    status = self._trackable.read(str(directory / _AGENT))
    status.assert_consumed()
    self.step = content["step"]
    text = (directory / run_records.METRICS).read_text()
    self.metrics.set_state(content["metrics"], text)


def without_data(config: configs.Config, directory: RunDirectory) -> DataRun:
  """A run to look at, whose data need not be there."""
  specs = logged_specs.read(directory.path)
  if specs is None:
    raise errors.UserError(
      f"the run in {str(directory.path)!r} lacks what its data are like"
      " (data.json); the same mmdrl train command puts it back"
    )
  return DataRun(config, directory, specs=specs)


class DataRounds:
  """Learns a run's rounds, one after another."""

  def __init__(self, state: DataRun):
    """Learns the behaviour first, if the run wants its support."""
    config, data = state.config, state.data
    self._state = state
    self._budget = int(config.replay.memory * 2**30)
    self._lowest = np.zeros([])
    policy = _everything(data.episodes.description.num_actions)
    if config.replay.support > 0:
      model = behaviour.Behaviour(config, state.specs)
      key = json.dumps(state.identity())
      if not model.restore(state.directory, key):
        notices.note("learns what the logged behaviour does")
        model.learn(self._source(policy, held_out=0.1))
        model.save(state.directory, key)
      policy = model.supported(config.replay.support)
      self._lowest = _lowest(data.episodes, config.agent.gamma)
    self._blocks = self._source(policy)
    self._train = state.agent.train_in_turn(_experience)

  def play_and_learn(
    self, writer: Optional[tf.summary.SummaryWriter] = None
  ) -> float:
    """Learns a round; `writer` writes the summaries of its last batch.

    Returns:
      The mean loss.
    """
    state = self._state
    config = state.config
    number = state.updates // UPDATES
    losses = []
    parts = blocks.batches(
      self._blocks,
      number,
      count=UPDATES,
      size=config.schedule.batch_size,
      seed=config.system.seed,
      step_bytes=state.data.episodes.description.step_bytes,
    )
    for index, part in enumerate(parts):
      if config.replay.support > 0:
        seed = [config.system.seed, 5, number, index]
        part = behaviour.pessimistic(part, self._lowest, seed)
      losses.append(self._learn(part))
    state.step += UPDATES * config.schedule.steps_per_update
    if writer is not None:
      last = [each[-1] for each in part]
      update = state.agent.look(_experience(last[:-1]), tf.constant(last[-1]))
      watching.write_update(writer, state.step, update)
    loss = float(np.mean(losses, dtype=np.float64))
    state.metrics.add_loss(loss)
    return loss

  def _learn(self, batches: blocks.Block) -> np.ndarray:
    """Updates the agent by [k, B] transitions; the losses [k]."""
    try:
      found = self._train(batches[:-1], tf.constant(batches.weights))
    except tf.errors.InvalidArgumentError as error:
      utilities.raise_if_not_finite(error)
      raise errors.BrokenRunError(
        "an update found numbers that are not finite at step"
        f" {self._state.step:,}; lower the learning rate with --set"
        " optimizer.learning_rate=..."
      ) from error
    return found.loss.numpy()

  def settle(self) -> None:
    """Before a checkpoint: nothing is under way between two rounds."""

  def close(self) -> None:
    """Nothing is open."""

  def _source(
    self, policy: blocks.Probabilities, held_out: float = 0.0
  ) -> blocks.Source:
    return blocks.Source(
      self._state.data.episodes,
      policy,
      blocks.Scale(),  # as the policy will see them
      budget=self._budget,
      seed=self._state.config.system.seed,
      held_out=held_out,
    )


def _everything(num_actions: int) -> blocks.Probabilities:
  """Every action is supported."""
  return lambda seen: np.ones([len(seen), num_actions], np.float32)


def _lowest(data: DataSet, gamma: float) -> np.ndarray:
  """[] or [D], the least return from any logged state on."""
  lowest: np.ndarray = np.asarray(np.inf)
  for episode in data.read(range(len(data))):
    following = np.zeros_like(episode.rewards[0], np.float64)
    for reward in episode.rewards[::-1]:
      following = reward + gamma * following
      lowest = np.minimum(lowest, following)
  return np.asarray(lowest)


def _experience(batch) -> trajectory.Transition:
  """A batch of a block, without its weights, as agents take it."""
  seen, actions, rewards, discounts, after, mask = batch
  size = tf.shape(actions)
  middle = tf.fill(size, ts.StepType.MID)
  ones = tf.ones(size)
  return trajectory.Transition(
    ts.TimeStep(middle, tf.zeros_like(rewards), ones, seen),
    policy_step.PolicyStep(
      actions, (), {transitions.NEXT_MASK: tf.cast(mask, tf.bool)}
    ),
    ts.TimeStep(middle, rewards, discounts, after),
  )
