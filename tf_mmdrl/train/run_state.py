"""All that a run is at one moment: made, saved, restored, compared."""

import contextlib
import hashlib
import json
import pathlib
from typing import Any, Callable, Dict

import numpy as np
import tensorflow as tf

from tf_mmdrl import replay
from tf_mmdrl.core import errors, whole_files
from tf_mmdrl.replay import DamagedFileError
from tf_mmdrl.train import checkpoints, factories
from tf_mmdrl.train.actor import Chunk, Weights
from tf_mmdrl.train.config import Config
from tf_mmdrl.train.exact_environment import EnvironmentState
from tf_mmdrl.train.experience import Experience, Priorities
from tf_mmdrl.train.learner import Learner
from tf_mmdrl.train.metrics import Metrics
from tf_mmdrl.train.run_directory import RunDirectory

_AGENT = "agent"
_STATE = "state.json"
_ARRAYS = "arrays"
_METRICS = "metrics.csv"


class RunState:
  """The parts of a run that change as it goes on.

  Attributes:
    config: its settings.
    agent: what learns.
    actor: what plays.
    experience: what it played, and the batches that were drawn of it.
    learner: what updates.
    metrics: what was measured.
    step: steps taken, over all environments, that are in replay.
  """

  def __init__(self, config: Config, directory: RunDirectory):
    """Makes the parts as they are at step 0."""
    self.config = config
    environment = factories.environment(config)
    self.agent = factories.agent(config, environment)
    self.actor = factories.actor(config, environment)
    buffer = factories.replay_buffer(config, environment, self.agent)
    size = dict(
      num_updates=config.round_updates, batch_size=config.schedule.batch_size
    )
    self.experience = Experience(buffer, **size)
    self.learner = Learner(
      self.agent, buffer, **size, all_updates=config.num_updates
    )
    self.step = 0
    self.metrics = Metrics(directory.metrics, config.environment.name)
    self._checkpoints = checkpoints.Checkpoints(directory.checkpoints)
    self._saver = replay.ReplaySaver(buffer, directory.checkpoints / "replay")
    self._trackable = tf.train.Checkpoint(agent=self.agent)

  @property
  def buffer(self) -> replay.FrameReplayBuffer:
    """Replay."""
    return self.experience.buffer

  @property
  def updates(self) -> int:
    """Updates done."""
    return int(self.agent.train_step_counter.numpy())

  def play(self, weights: Weights, num_steps: int) -> Chunk:
    """Plays by these weights into replay; another thread may learn."""
    chunk = self.actor.play(weights, num_steps)
    self.experience.add(chunk)
    return chunk

  def count(self, chunk: Chunk) -> None:
    """Counts what was played, once it is in replay."""
    self.step += chunk.num_steps
    self.metrics.add_games(chunk.scores)

  def save(self) -> None:
    """Makes a checkpoint, and removes those that are too old."""
    self.experience.rewind()
    try:
      manifest = self._saver.save()
    except OSError as error:
      raise errors.UserError(
        f"cannot write the replay of step {self.step}: {error.strerror}; the"
        " last checkpoint is whole. Make room and run the same command again"
      ) from error
    self._checkpoints.save(
      self.step, lambda directory: self._write(directory, manifest)
    )
    kept = self._checkpoints.prune(self.config.system.checkpoints_kept)
    paths = map(self._checkpoints.path, kept)
    # If an older checkpoint is damaged, nothing goes until that one has.
    with contextlib.suppress(DamagedFileError):
      self._saver.prune([_read_state(path)["replays"][0] for path in paths])

  def restore(self, warn: Callable[[str], None], *, clean: bool) -> bool:
    """Goes back to the newest whole checkpoint, if there is any.

    Args:
      warn: told of damaged checkpoints.
      clean: whether to remove leftovers of a crash; only for the run's owner.

    Returns:
      Whether there was one.
    """
    found = checkpoints.restore_newest(self._checkpoints, self._read, warn)
    if clean:
      self._checkpoints.clean(self.step)
    return found

  def fingerprints(self) -> Dict[str, str]:
    """A SHA-256 of each part that decides how the run goes on.

    Two runs with equal fingerprints are the same, whatever cut them.
    """
    self.experience.rewind()
    variables = map(np.asarray, self.agent.state_variables())
    environment = self.actor.environment.state()
    tables = self._tables(environment)
    return {
      "weights and optimizer": _digest(*variables),
      "replay": replay.fingerprint(self.buffer),
      "environments": _digest(environment.plain),
      "counters and generators": _digest(
        self._plain(), *(tables[name] for name in sorted(tables))
      ),
      "metrics": _digest(self.metrics.text),
    }

  def fingerprint(self) -> str:
    """One SHA-256 over all of `fingerprints`."""
    return _digest(self.fingerprints())

  def close(self) -> None:
    """Closes the environments."""
    self.actor.environment.close()

  def _plain(self) -> Dict[str, Any]:
    return {
      "actor": self.actor.state(),
      "metrics": self.metrics.state(),
    }

  def _tables(self, environment: EnvironmentState) -> Dict[str, np.ndarray]:
    tables = {"actions": environment.actions}
    if self.experience.pending is not None:
      tables["priority_ids"] = self.experience.pending.ids
      tables["priority_losses"] = self.experience.pending.losses
    return tables

  def _write(self, directory: pathlib.Path, manifest: str) -> None:
    self._trackable.write(str(directory / _AGENT))
    environment = self.actor.environment.state()
    # Lists, because a run may have several actors and as many replays.
    content = {
      "actors": [{**self.actor.state(), "environment": environment.plain}],
      "replays": [manifest],
      "metrics": self.metrics.state(),
    }
    whole_files.write_json(directory / _STATE, content)
    tables = self._tables(environment)
    whole_files.write(directory / _ARRAYS, whole_files.encode(tables))
    whole_files.write(directory / _METRICS, self.metrics.text.encode())

  def _read(self, directory: pathlib.Path) -> None:
    content = _read_state(directory)
    tables = whole_files.decode((directory / _ARRAYS).read_bytes())
    (manifest,), (actor,) = content["replays"], content["actors"]
    self._saver.restore(manifest)
    status = self._trackable.read(str(directory / _AGENT))
    status.assert_consumed()
    self.actor.set_state(
      actor, EnvironmentState(actor["environment"], tables["actions"])
    )
    self.step = self.actor.step
    text = (directory / _METRICS).read_text()
    self.metrics.set_state(content["metrics"], text)
    self.experience.pending = None
    if "priority_ids" in tables:
      self.experience.pending = Priorities(
        tables["priority_ids"], tables["priority_losses"]
      )


def _digest(*parts: Any) -> str:
  """The SHA-256 of arrays and JSON values."""
  sha = hashlib.sha256()
  for part in parts:
    if isinstance(part, np.ndarray):
      sha.update(np.ascontiguousarray(part).tobytes())
    else:
      sha.update(json.dumps(part, sort_keys=True).encode())
  return sha.hexdigest()


def _read_state(directory: pathlib.Path) -> Dict[str, Any]:
  return whole_files.read_json(directory / _STATE)
