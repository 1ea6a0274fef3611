"""Networks: a torso of Keras layers and a head that emits returns."""

from tf_mmdrl.networks.particle_network import ParticleNetwork

__all__ = ["ParticleNetwork"]
