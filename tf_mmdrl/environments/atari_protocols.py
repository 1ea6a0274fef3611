"""How Atari games are played: three protocols, and what they consist of."""

import dataclasses

from tf_mmdrl.core import errors

# The last two frames of a step are looked at. A console may need two before
# them to draw all of its screen, which a saved state does not hold.
_LEAST_SKIP = 4


@dataclasses.dataclass(frozen=True)
class Protocol:
  """How a game is played and shown (Machado et al., 2018, discuss each).

  Attributes:
    frame_skip: frames each action lasts.
    max_pool: whether a picture is the maximum of its last two frames, against
      the console's flicker.
    screen_size: height and width of the grey pictures.
    stack: how many pictures an observation holds, the newest last.
    noop_max: the most no-ops a game may start with; their number is drawn
      from 0 to this, in frames.
    sticky_actions: the probability, at each frame, that the console repeats
      its previous action.
    clip_rewards: whether rewards are clipped to [-1, 1]; `raw_reward` is not.
    life_loss: whether a lost life has discount 0. The step is MID and the game
      goes on: only learning sees an end.
    max_frames: where a game is cut off (LAST, discount 1); no-ops not counted.
    full_action_space: all 18 actions instead of those the game reacts to.
    exact: whether the code of MMDQN's authors is followed in what ale-py's
      vector environment cannot do, at less speed: no-ops are agent steps, from
      1 to `noop_max`; `life_loss` also stops the frame skip and clears the
      stack; `max_frames` are counted in agent steps, and a game cut off there
      has discount 0.
    split_rewards: whether rewards are vectors, a part for each of the game's
      sources of reward; see `reward_parts`. Each part is clipped by itself.
  """

  frame_skip: int = 4
  max_pool: bool = True
  screen_size: int = 84
  stack: int = 4
  noop_max: int = 0
  sticky_actions: float = 0.0
  clip_rewards: bool = False
  life_loss: bool = False
  max_frames: int = 108_000
  full_action_space: bool = False
  exact: bool = False
  split_rewards: bool = False

  def __post_init__(self):
    for name in ("frame_skip", "screen_size", "stack", "max_frames"):
      if getattr(self, name) < 1:
        raise errors.UserError(
          f"{name} must be at least 1, got {getattr(self, name)}"
        )
    if self.noop_max < 0:
      raise errors.UserError(
        f"noop_max must be at least 0, got {self.noop_max}"
      )
    if not 0 <= self.sticky_actions <= 1:
      raise errors.UserError(
        f"sticky_actions must lie within [0, 1], got {self.sticky_actions}"
      )
    if self.exact and not (self.max_pool and self.frame_skip >= _LEAST_SKIP):
      raise errors.UserError(
        f"an exact protocol needs max_pool and a frame_skip of {_LEAST_SKIP} or"
        f" more, got max_pool={self.max_pool} and frame_skip={self.frame_skip};"
        " pass exact=False, or leave these as they are"
      )


PAPER_TRAINING = Protocol(noop_max=30, clip_rewards=True, life_loss=True)
PAPER_EVALUATION = Protocol(noop_max=30)
AUTHORS_TRAINING = dataclasses.replace(PAPER_TRAINING, exact=True)
# In the authors' code lost lives clear stacks in evaluations, too.
AUTHORS_EVALUATION = dataclasses.replace(
  PAPER_EVALUATION, life_loss=True, exact=True
)
STICKY_TRAINING = Protocol(sticky_actions=0.25, clip_rewards=True)
STICKY_EVALUATION = Protocol(sticky_actions=0.25)

# Name -> (training, evaluation), for commands.
PROTOCOLS = {
  "paper": (PAPER_TRAINING, PAPER_EVALUATION),
  "authors": (AUTHORS_TRAINING, AUTHORS_EVALUATION),
  "sticky": (STICKY_TRAINING, STICKY_EVALUATION),
}
