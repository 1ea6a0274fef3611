"""tf_mmdrl: distributional reinforcement learning via moment matching.

The subpackages are imported by name, `from tf_mmdrl.agents import MMDQNAgent`;
importing `tf_mmdrl` itself only makes sure that TensorFlow will run Keras 2,
which TF-Agents is written for.
"""

from tf_mmdrl import _keras2
from tf_mmdrl.version import __version__

_keras2.require()

__all__ = ["__version__"]
