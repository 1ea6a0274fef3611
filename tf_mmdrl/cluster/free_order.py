"""Chunks enter as they come: for machines that come, go and differ.

Only the learner keeps account. A chunk that arrives is credit for updates, and
a round of updates uses it up, so updates per step are what the settings say
whoever is faster. Where the learner is the slower one, slots wait until their
credit is used up; where actors are, the learner waits for chunks. A slot is
given the newest weights with every call. No round of updates is made that would
make the weights of a chunk under way older than `system.staleness` rounds.

No run repeats another one bit for bit.
"""

import pathlib
import time
from typing import (
  Any,
  Callable,
  Dict,
  Iterable,
  List,
  NamedTuple,
  Optional,
  Protocol,
)

import ray
import tensorflow as tf

from tf_mmdrl.cluster.waiting import Clock, LateError
from tf_mmdrl.core import whole_files
from tf_mmdrl.train import factories
from tf_mmdrl.train.run_state import RunState

_COLUMNS = ("step", "slot", "steps", "staleness", "updates")


class FreeSlot(Protocol):
  """What is asked of a slot; see `crew.RaySlot`."""

  @property
  def name(self) -> str:
    """Who plays it."""

  def submit(self, state: Any, weights: Any, num_steps: int) -> Any:
    """Begins to play; None if nobody is there."""

  def receive(self, state: Any, reference: Any) -> Any:
    """What was played; None if it is lost."""

  def lose(self, why: str) -> None:
    """Lets go of the actor."""


class _Call(NamedTuple):
  """A chunk under way.

  Attributes:
    slot: whose.
    state: where it began.
    rounds: of updates that had been made.
  """

  slot: int
  state: Any
  rounds: int


class FreeRounds:
  """Takes a run on, by whatever has arrived; as `train.rounds.Rounds`."""

  def __init__(
    self,
    state: RunState,
    slots: List[Any],
    clock: Callable[[], Clock],
  ):
    """Asks nobody to play yet.

    Args:
      state: of the run.
      slots: the actors of all slots.
      clock: begins to count a wait.
    """
    self._state = state
    self._slots: List[FreeSlot] = slots
    self._clock = clock
    config = state.config
    self._round_updates = config.round_updates
    self._per_update = config.schedule.steps_per_update
    self._starts = config.schedule.learning_starts
    self._steps = config.schedule.collect_steps
    self._oldest = config.system.staleness
    self._calls: Dict[Any, _Call] = {}
    self._rounds = 0
    self._log = Log(state.directory / "chunks.csv", state.step)

  @property
  def credit(self) -> float:
    """Updates that the steps in replay allow and that were not made."""
    steps = max(0, self._state.step - self._starts)
    return steps / self._per_update - self._state.updates

  def play_and_learn(
    self, writer: Optional[tf.summary.SummaryWriter] = None
  ) -> Optional[float]:
    """Waits for a chunk, or makes a round of updates if there is credit.

    Args:
      writer: for the summaries of this round, if any.

    Returns:
      The mean loss, or None if nothing was learnt.
    """
    self._ask()
    if self._may_learn():
      self._receive(timeout=0)
      return self._learn(writer)
    self._wait()
    return None

  def settle(self) -> None:
    """Waits for what is under way, so that a checkpoint has it.

    For as long as it takes to say so; who is later plays it again.
    """
    clock = self._clock()
    while self._calls:
      is_late = False
      try:
        if not self._receive(clock.next()):
          clock.look(self._waited_for())
          is_late = clock.has_told
      except LateError:
        is_late = True
      if is_late:
        self._let_go(self._calls)

  def close(self) -> None:
    """Lets go of what is under way."""
    self._calls.clear()
    self._log.close()

  def _ask(self) -> None:
    """Lets every slot play that is there, unless there is much to learn."""
    if self.credit >= 2 * self._round_updates:
      return
    busy = {call.slot for call in self._calls.values()}
    weights = None
    for slot in range(len(self._slots)):
      if slot in busy:
        continue
      weights = weights or self._state.learner.weights()
      where = self._state.slots[slot]
      reference = self._slots[slot].submit(where, weights, self._steps)
      if reference is not None:
        self._calls[reference] = _Call(slot, where, self._rounds)

  def _may_learn(self) -> bool:
    """Whether there is credit, and no chunk under way would be too old."""
    if self._state.step < self._starts or self.credit < self._round_updates:
      return False
    first = min((c.rounds for c in self._calls.values()), default=self._rounds)
    return self._rounds + 1 - first <= self._oldest

  def _learn(self, writer: Optional[tf.summary.SummaryWriter]) -> float:
    state = self._state
    beta = factories.beta(state.config, state.step)
    state.experience.prepare(beta)
    batches = state.experience.take(beta)
    learnt = state.learner.learn(batches, state.step, writer)
    state.experience.learnt(batches, learnt.losses)
    state.metrics.add_loss(learnt.loss)
    self._rounds += 1
    return learnt.loss

  def _wait(self) -> None:
    """Until a chunk has come, or nothing keeps from learning any more.

    The latter is so when an actor is lost whose chunk would have been too old.
    """
    clock = self._clock()
    while not self._receive(clock.next()) and not self._may_learn():
      try:
        clock.look(self._waited_for())
      except LateError:
        clock.give_up(self._waited_for())
        return
      if clock.has_told and self.credit >= self._round_updates:
        # All others wait for them alone: their weights are old.
        too_old = self._rounds + 1 - self._oldest
        self._let_go(
          one for one, call in self._calls.items() if call.rounds < too_old
        )
      self._ask()

  def _let_go(self, references: Iterable[Any]) -> None:
    for reference in list(references):
      call = self._calls.pop(reference)
      self._slots[call.slot].lose("does not answer")

  def _waited_for(self) -> str:
    busy = {call.slot for call in self._calls.values()}
    late = [self._slots[slot].name for slot in busy]
    return ", ".join(sorted(late)) or "any actor of any slot"

  def _receive(self, timeout: float) -> int:
    """Stores the chunks that have come; how many there were."""
    if not self._calls:
      time.sleep(timeout)
      return 0
    references = list(self._calls)
    ready, _ = ray.wait(references, num_returns=1, timeout=timeout)
    more, _ = ray.wait(references, num_returns=len(references), timeout=0)
    received = 0
    for reference in dict.fromkeys([*ready, *more]):
      call = self._calls.pop(reference)
      result = self._slots[call.slot].receive(call.state, reference)
      if result is not None:
        received += 1
        self._store(call, *result)
    return received

  def _store(self, call: _Call, chunk: Any, where: Any) -> None:
    state, staleness = self._state, self._rounds - call.rounds
    state.receive(call.slot, chunk, where)
    self._log.add(
      state.step, call.slot, chunk.num_steps, staleness, state.updates
    )


class Log:
  """A line for each chunk: who played it, and how old its weights were."""

  def __init__(self, path: pathlib.Path, step: int):
    """Goes on with a file, from which chunks that were lost are removed.

    Args:
      path: the file.
      step: at which the run goes on.
    """
    lines = path.read_text().splitlines(keepends=True) if path.exists() else []
    kept = [line for line in lines if _is_of(line, step)]
    text = "".join([",".join(_COLUMNS) + "\n", *kept])
    whole_files.write(path, text.encode())
    # By lines: whoever reads it, or is left after a kill, has whole ones.
    self._file = path.open("a", buffering=1)

  def add(self, *values: int) -> None:
    """Appends a line."""
    self._file.write(",".join(map(str, values)) + "\n")

  def close(self) -> None:
    """Writes what is left."""
    self._file.close()


def _is_of(line: str, step: int) -> bool:
  """Whether it is a whole line, of a chunk up to a step of the run."""
  values = line.rstrip("\n").split(",")
  whole = line.endswith("\n") and len(values) == len(_COLUMNS)
  return whole and values[0].isdecimal() and int(values[0]) <= step
