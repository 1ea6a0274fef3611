"""What a run asks of those who play for it, wherever they are."""

from typing import (
  Any,
  Callable,
  Dict,
  Iterable,
  NamedTuple,
  Optional,
  Protocol,
  Sequence,
  Tuple,
)

from tf_mmdrl.train.actor import Chunk, Weights
from tf_mmdrl.train.environment_states import EnvironmentState

Each = Callable[[Callable[[int], Any], Sequence[int]], Iterable[Any]]
SavedActor = Tuple[Dict[str, Any], EnvironmentState]


class State(Protocol):
  """Where a slot is, as far as a run looks at it; an actor knows the rest."""

  @property
  def step(self) -> int:
    """Steps that it has taken, over its environments."""


class SlotActor(Protocol):
  """What a run asks of the actor of a slot: `Actor`, or one elsewhere."""

  @property
  def problem(self) -> Optional[str]:
    """Why a run could not go on exactly from the newest state, if so."""

  @property
  def replayed_because(self) -> Optional[str]:
    """Why the environments' state cannot be saved; None if it can."""

  def begin(self) -> Any:
    """The state before the first step."""

  def play(
    self, state: Any, weights: Weights, num_steps: int
  ) -> Tuple[Chunk, Any]:
    """Takes `num_steps` of each environment, from `state` on."""

  def save(self, state: Any) -> Tuple[Dict[str, Any], EnvironmentState]:
    """`state` as JSON values, and that of the environments."""

  def restored(
    self, plain: Dict[str, Any], environment: EnvironmentState
  ) -> Any:
    """The state that `save` gave these of."""

  def close(self) -> None:
    """Ends what it holds."""


class Crew(NamedTuple):
  """Who plays.

  Attributes:
    actors: one for each slot.
    each: calls a function with each of some numbers of slots, as `map` does.
    rounds: takes the run on, if not `train.rounds.Rounds`; from its state.
  """

  actors: Sequence[SlotActor]
  each: Each = map
  rounds: Optional[Callable[[Any], Any]] = None
