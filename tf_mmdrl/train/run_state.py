"""All that a run is at one moment: made, saved, restored, compared."""

import contextlib
import hashlib
import json
import pathlib
from typing import (
  Any,
  Callable,
  Dict,
  List,
  Optional,
  Sequence,
  Tuple,
)

import numpy as np
import tensorflow as tf

from tf_mmdrl import replay
from tf_mmdrl.core import errors, full_disk, run_records, whole_files
from tf_mmdrl.environments.snapshot import sources
from tf_mmdrl.replay import DamagedFileError, ReplaySaver, ShardedReplay
from tf_mmdrl.train import checkpoints, devices, factories, regrouped_actors
from tf_mmdrl.train import config as configs
from tf_mmdrl.train.actor import Chunk, Weights
from tf_mmdrl.train.config import Config
from tf_mmdrl.train.environment_states import EnvironmentState
from tf_mmdrl.train.experience import Experience, Priorities
from tf_mmdrl.train.learner import Learner
from tf_mmdrl.train.metrics import Metrics
from tf_mmdrl.train.run_directory import RunDirectory
from tf_mmdrl.train.slot_actors import Crew, Each, SavedActor, State

_AGENT = "agent"
_STATE = run_records.STATE
_METRICS = run_records.METRICS
_ARRAYS = "arrays"
_REPLAY = "replay"


class RunState:
  """The parts of a run that change as it goes on.

  Attributes:
    config: its settings.
    directory: where it is saved.
    agent: what learns.
    actors: what plays, one for each slot; in threads, or elsewhere.
    slots: the state of each of them.
    experience: what they played, and the batches that were drawn of it.
    learner: what updates.
    metrics: what was measured.
    unseeded: what the environment's code asks that no seed decides, in words.
    is_evaluated: whether games are played to evaluate it.
    step: steps taken, over all environments, that are in replay.
  """

  is_evaluated = True

  def __init__(
    self, config: Config, directory: RunDirectory, crew: Optional[Crew] = None
  ):
    """Makes the parts as they are at step 0.

    Args:
      config: its settings.
      directory: where it is saved.
      crew: who plays, if not actors in this process.
    """
    self.config = config
    self.directory, self._files = directory.path, directory
    env = factories.environment(config)
    self.unseeded = [f"{s.name} ({s.place})" for s in sources.found(env)]
    where = devices.strategy(config)
    with where.scope():
      self.agent = factories.agent(config, env)
    data_spec = self.agent.collect_data_spec
    self._make_replay = lambda config: factories.replay_shards(
      config, env, data_spec
    )
    shards = self._make_replay(config)
    if crew is None:
      others = range(1, config.system.actors)
      batches = [env, *(factories.environment(config, n) for n in others)]
      actors = [factories.actor(config, b, n) for n, b in enumerate(batches)]
      crew = Crew(actors)
    else:
      env.close()  # it told what is played
    self.actors = crew.actors
    self._each, self.make_rounds = crew.each, crew.rounds
    self.slots: List[State] = list(
      self._each(lambda slot: self.actors[slot].begin(), self._numbers)
    )
    size = dict(
      num_updates=config.round_updates, batch_size=config.schedule.batch_size
    )
    self.experience = Experience(shards, **size)
    self.learner = Learner(
      self.agent,
      shards.shards[0],
      all_updates=config.num_updates,
      where=where,
    )
    self.step = 0
    self.metrics = Metrics(
      directory.metrics,
      config.environment.name,
      factories.dimensions(env),
      config.own_settings.worth,
    )
    self._checkpoints = checkpoints.Checkpoints(directory.checkpoints)
    self._place = directory.checkpoints
    self._savers = self._make_savers(shards)
    self._trackable = tf.train.Checkpoint(agent=self.agent)

  @property
  def replay(self) -> replay.ShardedReplay:
    """The replay of all slots."""
    return self.experience.replay

  @property
  def _numbers(self) -> Sequence[int]:
    return range(len(self.actors))

  @property
  def steps_played(self) -> int:
    """Steps taken, over all slots; during a round more than `step`."""
    return sum(slot.step for slot in self.slots)

  @property
  def is_finished(self) -> bool:
    """Whether all steps were played, or all phases that make up these steps."""
    config = self.config
    if config.evaluation.at == "game":
      phases = self.metrics.evaluations
      return phases * config.evaluation.period >= config.schedule.steps
    return self.step >= config.schedule.steps

  @property
  def problem(self) -> Optional[str]:
    """Why a run could not go on exactly from the newest checkpoint, if so."""
    problems = (actor.problem for actor in self.actors)
    return next((problem for problem in problems if problem), None)

  @property
  def updates(self) -> int:
    """How many updates were done."""
    return int(self.agent.train_step_counter.numpy())

  def play(
    self, weights: Weights, num_steps: int, each: Each = map
  ) -> List[Chunk]:
    """Plays by these weights into replay; another thread may learn.

    Args:
      weights: what all actors play by.
      num_steps: how many steps each environment takes.
      each: calls a function with each of some numbers of slots, as `map` does.

    Returns:
      What each slot played, in the slots' order, in which it is stored.
    """

    def play(slot):
      return self.actors[slot].play(self.slots[slot], weights, num_steps)

    chunks, slots = zip(*each(play, self._numbers))
    self.experience.add(chunks)
    self.slots = list(slots)
    return list(chunks)

  def receive(self, slot: int, chunk: Chunk, where: State) -> None:
    """Stores and counts what a slot played by itself, in free order."""
    self.experience.add_to(slot, chunk)
    self.slots[slot] = where
    self.count([chunk])

  def count(self, chunks: Sequence[Chunk]) -> None:
    """Counts what was played, once it is in replay."""
    # Slots play at the same time: all of them were as far as the one whose game
    # ended.
    last_end = max(chunk.last_end for chunk in chunks) * len(chunks)
    for chunk in chunks:
      self.metrics.add_games(chunk.scores, self.step + last_end)
    self.step += sum(chunk.num_steps for chunk in chunks)

  def save(self) -> None:
    """Makes a checkpoint, and removes those that are too old."""
    self.experience.rewind()
    try:
      manifests = [saver.save() for saver in self._savers]
    except OSError as error:
      raise errors.UserError(
        f"cannot write the replay of step {self.step}:"
        f" {full_disk.reason(error)}; {full_disk.room(self.directory)}: make"
        f" room, and {run_records.what_is_left(self._files)}"
      ) from error
    variables = self.agent.state_variables()
    self._checkpoints.save(
      self.step,
      lambda directory: self._write(directory, manifests),
      sum(v.dtype.size * v.shape.num_elements() for v in variables),
    )
    kept = self._checkpoints.prune(self.config.system.checkpoints_kept)
    paths = map(self._checkpoints.path, kept)
    # If an older checkpoint is damaged, nothing goes until that one has.
    with contextlib.suppress(DamagedFileError):
      self._prune_replay([_read_state(path)["replays"] for path in paths])

  def restore(self, warn: Callable[[str], None], *, clean: bool) -> bool:
    """Goes back to the newest whole checkpoint, if there is any.

    Args:
      warn: told of damaged checkpoints.
      clean: whether to remove leftovers of a crash; only for the run's owner.

    Returns:
      Whether there was one.
    """
    if clean:
      for step in self._checkpoints.recover():
        warn(f"the checkpoint of step {step} was complete, but for its name")
    found = checkpoints.restore_newest(self._checkpoints, self._read, warn)
    if clean:
      self._checkpoints.clean(self.step)
    return found

  def _make_savers(self, shards: ShardedReplay) -> List[ReplaySaver]:
    return [
      ReplaySaver(shard, self._place / _named(_REPLAY, slot))
      for slot, shard in enumerate(shards.shards)
    ]

  def _prune_replay(self, kept: Sequence[Sequence[str]]) -> None:
    """Removes what no checkpoint names; each may have had other slots."""
    for slot, saver in enumerate(self._savers):
      saver.prune([names[slot] for names in kept if slot < len(names)])
    slot = max(map(len, kept))
    while (place := self._place / _named(_REPLAY, slot)).exists():
      whole_files.remove(place)
      slot += 1

  def fingerprints(self) -> Dict[str, str]:
    """A SHA-256 of each part that decides how the run goes on.

    Two runs with equal fingerprints are the same, whatever cut them.
    """
    self.experience.rewind()
    variables = map(np.asarray, self.agent.state_variables())
    saved = self._saved_actors()
    tables = self._tables(saved)
    plain = {
      "actors": [actor for actor, _ in saved],
      "metrics": self.metrics.state(),
    }
    return {
      "weights and optimizer": _digest(*variables),
      "replay": replay.fingerprint(*self.replay.shards),
      "environments": _digest(*(state.of_environment for _, state in saved)),
      "counters and generators": _digest(
        plain, *(tables[name] for name in sorted(tables))
      ),
      "metrics": _digest(self.metrics.text),
    }

  def fingerprint(self) -> str:
    """One SHA-256 over all of `fingerprints`."""
    return _digest(self.fingerprints())

  def close(self) -> None:
    """Closes the environments."""
    for actor in self.actors:
      actor.close()

  def _saved_actors(self) -> List[SavedActor]:
    def save(slot):
      return self.actors[slot].save(self.slots[slot])

    return list(self._each(save, self._numbers))

  def _restored_slots(
    self, saved: Sequence[Dict[str, Any]], tables: Dict[str, np.ndarray]
  ) -> List[State]:

    def restored(slot):
      actions = tables[_named("actions", slot)]
      environment = EnvironmentState(saved[slot]["environment"], actions)
      return self.actors[slot].restored(saved[slot], environment)

    return list(self._each(restored, self._numbers))

  def _tables(self, saved: Sequence[SavedActor]) -> Dict[str, np.ndarray]:
    tables = {
      _named("actions", slot): state.actions
      for slot, (_, state) in enumerate(saved)
    }
    if self.experience.pending is not None:
      tables["priority_ids"] = self.experience.pending.ids
      tables["priority_losses"] = self.experience.pending.losses
    return tables

  def _write(self, directory: pathlib.Path, manifests: List[str]) -> None:
    try:
      self._trackable.write(str(directory / _AGENT))
    except tf.errors.OpError as error:  # TensorFlow's own word for a full disk
      raise OSError(full_disk.reason(error)) from error
    saved = self._saved_actors()
    content = {
      "actors": [
        {**plain, "environment": state.plain} for plain, state in saved
      ],
      "replays": manifests,
      "metrics": self.metrics.state(),
      "config": configs.to_json(self.config),
    }
    whole_files.write_json(directory / _STATE, content)
    tables = self._tables(saved)
    whole_files.write(directory / _ARRAYS, whole_files.encode(tables))
    whole_files.write(directory / _METRICS, self.metrics.text.encode())

  def _read(self, directory: pathlib.Path) -> None:
    self.experience.rewind()  # what was drawn is of another moment
    content = _read_state(directory)
    tables = whole_files.decode((directory / _ARRAYS).read_bytes())
    if len(content["actors"]) == len(self.actors):
      for saver, name in zip(self._savers, content["replays"], strict=True):
        saver.restore(name)
    else:
      content, tables = self._regrouped(content, tables)
    status = self._trackable.read(str(directory / _AGENT))
    status.assert_consumed()
    self.slots = self._restored_slots(content["actors"], tables)
    self.step = self.steps_played
    text = (directory / _METRICS).read_text()
    self.metrics.set_state(content["metrics"], text)
    self.experience.pending = None
    if "priority_ids" in tables:
      self.experience.pending = Priorities(
        tables["priority_ids"], tables["priority_losses"]
      )

  def _regrouped(
    self, content: Dict[str, Any], tables: Dict[str, np.ndarray]
  ) -> Tuple[Dict[str, Any], Dict[str, np.ndarray]]:
    """A checkpoint of other slots as one of these; restores replay.

    Args:
      content: the state that was saved.
      tables: its arrays.

    Returns:
      The same for the slots of this run.
    """
    names, number = content["replays"], len(self.actors)
    before = self.config.replace(system={"actors": len(names)})
    shards = self._make_replay(before)
    savers = self._make_savers(shards)
    heads = [saver.head(name) for saver, name in zip(savers, names)]

    def restored():
      while shards.shards:  # one at a time is in memory
        slot = len(names) - len(shards.shards)
        savers.pop(0).restore(names[slot])
        shard = shards.shards.pop(0)
        if "priority_ids" in tables:
          local, owned = np.divmod(tables["priority_ids"], len(names))
          own = owned == slot
          losses = tables["priority_losses"][own]
          shard.replay.update_priorities(local[own], losses)
        yield shard

    replay.regroup(self.replay, restored(), max(heads))
    # What these had written is of other rows.
    self._savers = self._make_savers(self.replay)
    envs, actions = self.config.slot_envs, tables["actions"]
    none = np.zeros([0, envs], actions.dtype)
    return (
      {**content, "actors": regrouped_actors.actors(content["actors"], number)},
      {_named("actions", slot): none for slot in range(number)},
    )


def _named(name: str, slot: int) -> str:
  """What a slot calls its own; the first one's has no number."""
  return f"{name}_{slot}" if slot else name


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
