"""The network that emits N particles for each action."""

from typing import Optional

from tf_mmdrl.networks import heads, return_network


class ParticleNetwork(return_network.ReturnNetwork):
  """observation -> particles `[B, A, N]`.

  The last layer has |A| x N outputs, as in QR-DQN (paper, Appendix B), but the
  particles are in no order.
  """

  def __init__(
    self,
    input_tensor_spec,
    action_spec,
    num_particles: int = 200,
    dimensions: Optional[int] = None,
    **options,
  ):
    """Makes the network.

    Args:
      input_tensor_spec: the observation's spec, which may be nested.
      action_spec: a scalar, discrete action from 0.
      num_particles: N.
      dimensions: D, for particles `[B, A, N, D]` that are vectors of D returns.
      **options: those of `ReturnNetwork`.
    """
    options = return_network.spread(options, "options")
    super().__init__(
      input_tensor_spec,
      action_spec,
      heads.particles(num_particles, dimensions),
      **{"name": "ParticleNetwork", **options},
    )
