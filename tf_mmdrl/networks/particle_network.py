"""The network that emits N particles for each action."""

from typing import Any, Callable, Optional, Sequence

import tensorflow as tf
from tf_agents.networks import network, utils
from tf_agents.utils import nest_utils

from tf_mmdrl.core import errors, specs
from tf_mmdrl.networks import torsos


class ParticleNetwork(network.Network):
  """observation -> particles `[B, A, N]`.

  The last layer has |A| x N outputs, as in QR-DQN (paper, Appendix B), but the
  particles are in no order.
  """

  def __init__(
    self,
    input_tensor_spec,
    action_spec,
    num_particles: int = 200,
    *,
    preprocessing_layers=None,
    preprocessing_combiner: Optional[tf.keras.layers.Layer] = None,
    conv_layer_params: Optional[torsos.ConvParams] = None,
    fc_layer_params: Optional[Sequence[int]] = (512,),
    padding: str = "valid",
    activation: Any = "relu",
    make_initializer: Callable[
      [], tf.keras.initializers.Initializer
    ] = torsos.authors_initializer,
    dueling: bool = False,
    name: str = "ParticleNetwork",
  ):
    """Makes the network.

    Args:
      input_tensor_spec: the observation's spec, which may be nested.
      action_spec: a scalar, discrete action from 0.
      num_particles: N.
      preprocessing_layers: for a nested observation, a layer for each part (in
        the observation's structure); each must give the same shape.
      preprocessing_combiner: a layer that makes one tensor of their outputs.
      conv_layer_params: (filters, kernel size, stride) of each convolution;
        `torsos.NATURE_CONV`, `torsos.MINATAR_CONV` or your own.
      fc_layer_params: units of each dense layer.
      padding: of the convolutions, "valid" or the authors' "same".
      activation: of every layer but the last.
      make_initializer: makes the initialiser of each layer's kernel; the
        authors' by default.
      dueling: particles = V + (A - mean over the actions of A), V and A each
        with a hidden layer of the last `fc_layer_params` of its own.
      name: of the network.
    """
    super().__init__(input_tensor_spec, state_spec=(), name=name)
    if num_particles < 1:
      raise errors.UserError(
        f"num_particles must be at least 1, got {num_particles}"
      )
    self._num_actions = specs.num_actions(action_spec)
    self._num_particles = num_particles
    fc_layer_params = tuple(fc_layer_params or ())
    if dueling and not fc_layer_params:
      raise errors.UserError(
        "dueling needs a hidden layer for value and advantage, got no"
        " fc_layer_params; pass for example (512,)"
      )
    self._preprocessing = [
      type(layer).from_config(layer.get_config())
      for layer in tf.nest.flatten(preprocessing_layers)
      if preprocessing_layers is not None
    ]
    self._combiner = preprocessing_combiner and type(
      preprocessing_combiner
    ).from_config(preprocessing_combiner.get_config())
    if len(tf.nest.flatten(input_tensor_spec)) > 1 and not self._combiner:
      raise errors.UserError(
        "a nested observation needs preprocessing_layers and a"
        f" preprocessing_combiner, got the observation {input_tensor_spec}"
      )

    def make_layers(conv, fc):
      return torsos.layers(
        conv,
        fc,
        padding=padding,
        activation=activation,
        make_initializer=make_initializer,
      )

    def make_head(units, head_name):
      # float32 whatever the policy: returns need the digits.
      return tf.keras.layers.Dense(
        units,
        kernel_initializer=make_initializer(),
        dtype="float32",
        name=head_name,
      )

    shared = fc_layer_params[:-1] if dueling else fc_layer_params
    own = fc_layer_params[-1:] if dueling else ()
    self._torso = make_layers(conv_layer_params, shared)
    self._advantage = make_layers(None, own)[1:]
    self._advantage.append(
      make_head(self._num_actions * num_particles, "particles")
    )
    self._value = None
    if dueling:
      self._value = [
        *make_layers(None, own)[1:],
        make_head(num_particles, "value"),
      ]

  @property
  def num_particles(self) -> int:
    """N."""
    return self._num_particles

  def call(self, observation, step_type=None, network_state=(), training=False):
    """Particles `[B, A, N]` (any outer dims for B), and the state."""
    del step_type
    outer_rank = nest_utils.get_outer_rank(observation, self.input_tensor_spec)
    squash = utils.BatchSquash(outer_rank)
    observation = tf.nest.map_structure(squash.flatten, observation)
    features = self._features(observation, training)
    particles = self._particles(features, training)
    return squash.unflatten(particles), network_state

  def _features(self, observation, training) -> tf.Tensor:
    """One [B, F] tensor of a (nested) observation."""
    parts = [
      torsos.as_float(part, spec, self.compute_dtype)
      for part, spec in zip(
        tf.nest.flatten(observation), tf.nest.flatten(self.input_tensor_spec)
      )
    ]
    if self._preprocessing:
      pairs = zip(self._preprocessing, parts)
      parts = [layer(part, training=training) for layer, part in pairs]
    joint = self._combiner(parts) if self._combiner else parts[0]
    return _through(self._torso, joint, training)

  def _particles(self, features, training) -> tf.Tensor:
    """[B, A, N] particles of [B, F] features."""
    particles = _through(self._advantage, features, training)
    shape = [-1, self._num_actions, self._num_particles]
    particles = tf.reshape(particles, shape)
    if self._value is None:
      return particles
    value = _through(self._value, features, training)[:, tf.newaxis]
    return value + particles - tf.reduce_mean(particles, axis=1, keepdims=True)


def _through(layers, inputs, training) -> tf.Tensor:
  for layer in layers:
    inputs = layer(inputs, training=training)
  return inputs
