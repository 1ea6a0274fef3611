"""The algorithm that docs/adding_an_algorithm.md adds."""

import pathlib
import re

import family
import numpy as np
import tensorflow as tf
from agent_fixtures import experience

from tf_mmdrl.networks import ParticleNetwork

_PAGE = pathlib.Path(__file__).parents[2] / "docs" / "adding_an_algorithm.md"


def test_the_algorithm_added_in_the_docs_learns():
  scope = {}
  code = re.search(r"```python\n(.*?)```", _PAGE.read_text(), re.DOTALL)[1]
  exec(code, scope)
  assert len(code.splitlines()) < 120
  time_step_spec, action_spec = family.specs()
  net = ParticleNetwork(time_step_spec.observation, action_spec, 7)
  agent = scope["ERDQNAgent"](
    time_step_spec,
    action_spec,
    net,
    tf.keras.optimizers.Adam(1e-2),
    jit_compile=False,
  )
  batch = experience(batch=16, discount=np.zeros([16, 2]))
  losses = [float(agent.train(batch).loss) for _ in range(100)]
  assert losses[-1] < 0.2 * losses[0]
