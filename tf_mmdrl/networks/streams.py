"""The last layers: from features to some numbers for each action."""

from typing import Callable, List, NamedTuple, Optional, Sequence

import tensorflow as tf

from tf_mmdrl.core import draws, errors
from tf_mmdrl.networks import noisy, torsos


class Change(NamedTuple):
  """How a weight changes with the unit of return.

  Attributes:
    variable: the weight.
    new: its value -> the new one.
    moments: whether an optimizer's moments of it change alike.
  """

  variable: tf.Variable
  new: Callable[[tf.Tensor], tf.Tensor]
  moments: bool = True


class ActionStream(tf.keras.layers.Layer):
  """Features `[B, F]` -> `[B, A, W]`, with a dueling value if asked."""

  def __init__(
    self,
    num_actions: int,
    width: int,
    builder: torsos.Builder,
    *,
    fc_layer_params: Sequence[int] = (),
    dueling: bool = False,
    share_noise: bool = False,
    name: str = "actions",
  ):
    """Makes the layers.

    Args:
      num_actions: A.
      width: W, numbers for each action.
      builder: makes layers.
      fc_layer_params: units of the hidden layers before the last one.
      dueling: V + (A - mean over the actions of A), V and A each with hidden
        layers of its own (Wang et al., 2016, equation 9).
      share_noise: whether the W numbers of an action share one noise, if the
        last layer is noisy.
      name: the name of the layer.
    """
    super().__init__(name=name)
    if dueling and not fc_layer_params:
      raise errors.UserError(
        "dueling needs a hidden layer for value and advantage, got no"
        " fc_layer_params; pass for example (512,)"
      )
    self._shape = [-1, num_actions, width]
    share = width if share_noise else 1
    self._advantage = [
      *builder.hidden(fc_layer_params),
      builder.output(
        num_actions * width, "advantage" if dueling else "output", share
      ),
    ]
    self._value = None
    if dueling:
      self._value = [
        *builder.hidden(fc_layer_params),
        builder.output(width, "value", share),
      ]

  def call(
    self,
    features: tf.Tensor,
    training: bool = False,
    seed: Optional[tf.Tensor] = None,
  ) -> tf.Tensor:
    """[B, A, W], float32."""

    def run(layers, number):
      return noisy.through(
        layers, features, training=training, seed=draws.fold(seed, number)
      )

    outputs = tf.reshape(run(self._advantage, 0), self._shape)
    if self._value is None:
      return outputs
    value = run(self._value, 1)[:, tf.newaxis]
    return value + outputs - tf.reduce_mean(outputs, axis=1, keepdims=True)

  def changes(
    self,
    linear: Callable[[tf.Tensor], tf.Tensor],
    shift: Optional[tf.Tensor] = None,
  ) -> List[Change]:
    """What makes the stream emit `linear(outputs) + shift` from now on.

    Args:
      linear: [..., W] -> [..., W].
      shift: [W], or None for no shift.

    Returns:
      The changes of the last layers' weights.
    """
    # A shift of all advantages would cancel; the value's does not.
    shifted = self._value or self._advantage
    found = []
    for layers in (self._advantage, self._value or ()):
      for weight in layers[-1].weights if layers else ():
        add = shift if layers is shifted and "bias:" in weight.name else None
        found.append(self._change(weight, linear, add, shift is None))
    return found

  def _change(self, weight, linear, shift, moments) -> Change:
    width = self._shape[-1]

    def new(value):
      value = linear(tf.reshape(value, [-1, width]))
      if shift is not None:
        value += shift
      return tf.reshape(value, weight.shape)

    return Change(weight, new, moments)
