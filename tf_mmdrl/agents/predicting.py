"""Calls of networks in an update: which noise, how many draws."""

import dataclasses
import enum
from typing import Any, Dict, NamedTuple, Optional

import tensorflow as tf
from tf_agents.networks import network
from tf_agents.typing import types

from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.policies import player


class Use(enum.IntEnum):
  """What a network is called for; each has its own noise and draws."""

  TAKEN = 0
  TARGET = 1
  CHOICE = 2
  BONUS = 3


class Samples(NamedTuple):
  """How many particles an implicit head draws for each use.

  Attributes:
    taken: N, of the action taken.
    target: N', of the target.
    choice: K, to choose the target's action by.
  """

  taken: int = 64
  target: int = 64
  choice: int = 32


@dataclasses.dataclass(frozen=True)
class Predictor:
  """Observations -> return distributions.

  Attributes:
    splitter: observation -> (the network's part, mask), or None.
    samples: how many draws implicit heads make; None for other heads.
    seed: the seed of noise and draws.
    step: the train step, which decides them too: a run cut anywhere draws the
      same when it goes on.
  """

  splitter: Optional[types.Splitter]
  samples: Optional[Samples]
  seed: int
  step: tf.Variable

  def __call__(
    self, net: network.Network, observation, use: Use, training: bool = False
  ) -> ReturnDistribution:
    """Distributions [B, A, N] of a (possibly masked) observation, in units."""
    observation, _ = player.split(observation, self.splitter)
    options: Dict[str, Any] = {}
    if self.samples is not None:
      options["num_particles"] = self.samples[min(use, Use.CHOICE)]
    if getattr(net, "is_random", False):
      number = self.step * len(Use) + use
      options["seed"] = tf.stack([tf.constant(self.seed, tf.int64), number])
    output, _ = net(observation, training=training, **options)
    return ReturnDistribution.of(output).map_values(lambda z: z / net.unit)

  def mask(self, observation) -> Optional[tf.Tensor]:
    """[B, A] actions allowed; None if all are."""
    return player.split(observation, self.splitter)[1]
