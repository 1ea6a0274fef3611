"""A run's actors on Ray, for `trainer.train`."""

from concurrent import futures
from typing import Callable, List

from tf_mmdrl.cluster import free_order
from tf_mmdrl.cluster.office import Office
from tf_mmdrl.cluster.ray_slot import RaySlot
from tf_mmdrl.cluster.waiting import PATIENCE, Clock, Patience
from tf_mmdrl.train.config import Config
from tf_mmdrl.train.slot_actors import Crew
from tf_mmdrl.train.stopping import Stop


def hire(
  *, strict: bool = False, patience: Patience = PATIENCE, num_cpus: float = 1
) -> Callable[[Config, Stop], Crew]:
  """What `trainer.train` finds a run's actors with; Ray is connected.

  Args:
    strict: whether to refuse machines that compute other last bits.
    patience: how long to wait for actors.
    num_cpus: CPUs that are set aside for each actor.
  """

  def found(config: Config, stop: Stop) -> Crew:
    office = Office(
      config, stop, patience=patience, strict=strict, num_cpus=num_cpus
    )
    return crew(office)

  return found


def crew(office: Office) -> Crew:
  """Actors for all slots; they start at the same time."""
  number = office.config.system.actors
  slots: List[RaySlot] = [RaySlot(slot, office) for slot in range(number)]
  pool = futures.ThreadPoolExecutor(number, "mmdrl-slot")
  if office.config.system.order == "exact":
    return Crew(slots, pool.map)
  clock = lambda: Clock(office.patience, office.stop)  # noqa: E731
  return Crew(
    slots, pool.map, lambda state: free_order.FreeRounds(state, slots, clock)
  )
