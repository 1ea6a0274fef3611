"""MMDQN whose particles have learnt weights, which the paper proposes in its
discussion. The agent is MMDQN's own; the head gives the weights.
"""

import dataclasses

from tf_mmdrl.agents import mmdqn_agent
from tf_mmdrl.core import algorithms
from tf_mmdrl.networks import heads


@dataclasses.dataclass(frozen=True)
class Settings(mmdqn_agent.Settings):
  """MMDQN's, with another head."""

  def head(self, run: algorithms.Run) -> heads.MakeHead:
    """N particles and their weights."""
    return heads.weighted_particles(run.num_particles)


ALGORITHM = algorithms.Algorithm(
  summary="particles with learnt weights",
  paper=mmdqn_agent.PROPOSED,
  url=mmdqn_agent.ALGORITHM.url,
  agent=mmdqn_agent.MMDQNAgent,
  settings=Settings,
)
