"""What all slots of a learner share: the weights, and who may play."""

import threading
from typing import Any, Optional, Set, Tuple

import numpy as np
import ray

from tf_mmdrl.cluster.slot_player import Introduction, SlotPlayer
from tf_mmdrl.cluster.waiting import PATIENCE, Patience
from tf_mmdrl.core import errors, notices
from tf_mmdrl.train import machine
from tf_mmdrl.train.actor import Weights
from tf_mmdrl.train.config import Config
from tf_mmdrl.train.stopping import Stop


class Office:
  """What all slots of a learner share."""

  def __init__(
    self,
    config: Config,
    stop: Stop,
    *,
    patience: Patience = PATIENCE,
    strict: bool = False,
    num_cpus: float = 1,
  ):
    """Hires nobody yet.

    Args:
      config: of the run.
      stop: tells whether the run shall stop, and is told so.
      patience: how long to wait.
      strict: whether to refuse machines that compute other last bits.
      num_cpus: CPUs that Ray sets aside for each actor.
    """
    self.config = config
    self.stop = stop
    self.is_free = config.system.order == "free"
    # Then a slot may stay idle, and nothing waits for it for long.
    self.patience = patience
    if self.is_free:
      self.call_patience = patience._replace(give_up=patience.tell)
    else:
      self.call_patience = patience
    self._strict = strict
    self._around = machine.surroundings()
    mine = self._around["machine"]
    threads = (mine["threads"], mine["operations_at_a_time"])
    kind: Any = ray.remote(SlotPlayer)
    kind = kind.options(num_cpus=num_cpus, max_restarts=0, max_task_retries=0)
    self.hire = lambda slot: kind.remote(config, slot, threads)
    self._lock = threading.Lock()
    self._weights: Tuple[Optional[Weights], Any] = (None, None)
    self._known: Set[str] = set()

  def put(self, weights: Weights) -> Any:
    """A reference to the weights; they are copied once for all slots."""
    with self._lock:
      if self._weights[0] is not weights:
        values = [np.asarray(value) for value in weights.values]
        copy = Weights(values, np.asarray(weights.progress))
        self._weights = (weights, ray.put(copy))
      return self._weights[1]

  def check(self, slot: int, who: Introduction) -> None:
    """Raises if an actor would play otherwise than this process."""
    changes = machine.changes_of_bits(self._around, who.surroundings)
    if not changes:
      return
    versions = who.surroundings["versions"]
    other = [c for c in changes if c.partition(":")[0] in versions]
    if other or self._strict:
      raise errors.UserError(
        f"the actor of slot {slot} on {who.host} has others than the learner:"
        f" {'; '.join(other or changes)}; install the same on all machines"
      )
    with self._lock:
      if who.host not in self._known:
        self._known.add(who.host)
        notices.note(
          f"{who.host} computes with others than the learner"
          f" ({'; '.join(changes)}), so last bits may differ from those of a"
          " run on one machine; --strict refuses this"
        )
