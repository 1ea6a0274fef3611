"""The algorithms by name: each is a head, an agent and its usual settings.

An entry is all that `mmdrl train --agent NAME` needs; see
docs/adding_an_algorithm.md.
"""

from typing import Any, Dict, Mapping, NamedTuple, Sequence

from tf_mmdrl.core import errors


class Algorithm(NamedTuple):
  """What a name stands for.

  Attributes:
    paper: who and when.
    summary: one line.
    settings: `group.field` -> value, which choosing it sets, `--set` may
      change.
  """

  paper: str
  summary: str
  settings: Mapping[str, Any] = {}

  def assignments(self) -> Sequence[str]:
    """The settings as `group.field=value`."""
    return [f"{name}={value}" for name, value in self.settings.items()]


_MMDQN = "Nguyen-Tang, Gupta and Venkatesh, 2021"
_PROPOSED = f"{_MMDQN}, proposed in the discussion"
# Rainbow's parts but for the head: the noise explores, so epsilon is 0.
_RAINBOW: Dict[str, Any] = {
  "agent.double": True,
  "agent.n_step": 3,
  "network.dueling": True,
  "network.noisy": True,
  "replay.prioritized": True,
  "schedule.epsilon_start": 0.0,
  "schedule.epsilon_end": 0.0,
}

ALGORITHMS: Dict[str, Algorithm] = {
  "dqn": Algorithm(
    "Mnih et al., 2015",
    "expected returns by Q-learning",
    {"network.num_particles": 1},
  ),
  "double_dqn": Algorithm(
    "van Hasselt, Guez and Silver, 2016",
    "DQN whose online network chooses the target's action",
    {"network.num_particles": 1, "agent.double": True},
  ),
  "c51": Algorithm(
    "Bellemare, Dabney and Munos, 2017",
    "weights of 51 fixed returns by projection and cross-entropy",
    {"network.num_particles": 51},
  ),
  "qrdqn": Algorithm(
    "Dabney, Rowland, Bellemare and Munos, 2018",
    "quantiles at even levels by quantile regression",
  ),
  "iqn": Algorithm(
    "Dabney, Ostrovski, Silver and Munos, 2018",
    "the quantile function at random levels",
    {"network.num_particles": 64},
  ),
  "fqf": Algorithm(
    "Yang et al., 2019",
    "quantiles at levels that the network proposes",
    {"network.num_particles": 32},
  ),
  "rainbow": Algorithm(
    "Hessel et al., 2018",
    "C51, double, dueling, prioritised, n-step and noisy",
    {"network.num_particles": 51, **_RAINBOW},
  ),
  "mmdqn": Algorithm(_MMDQN, "free particles by moment matching"),
  "implicit_mmdqn": Algorithm(
    _PROPOSED,
    "particles as images of draws, any number of them",
    {"network.num_particles": 64},
  ),
  "weighted_mmdqn": Algorithm(_PROPOSED, "particles with learnt weights"),
  "adversarial_mmdqn": Algorithm(
    _PROPOSED,
    "the kernel learns to tell prediction and target apart",
    # The map would only grow steeper under a kernel with a tail.
    {"agent.kernel": "gaussian_mixture:1..10"},
  ),
  "rainbow_mmdqn": Algorithm(
    f"{_MMDQN}, and Hessel et al., 2018",
    "MMDQN, double, dueling, prioritised by MMD, n-step and noisy",
    # An action's particles share their noise, so less of it explores as much.
    {**_RAINBOW, "network.noise": 0.1},
  ),
}


def get(name: str) -> Algorithm:
  """The algorithm of that name."""
  if name not in ALGORITHMS:
    raise errors.unknown_name("agent", name, ALGORITHMS)
  return ALGORITHMS[name]
