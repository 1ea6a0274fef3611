"""Networks: a torso of Keras layers and a head that emits returns."""

from tf_mmdrl.networks import heads, implicit_heads
from tf_mmdrl.networks.particle_network import ParticleNetwork
from tf_mmdrl.networks.return_network import ReturnNetwork

__all__ = ["ParticleNetwork", "ReturnNetwork", "heads", "implicit_heads"]
