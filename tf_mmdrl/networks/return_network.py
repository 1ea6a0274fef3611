"""The network: a torso of Keras layers and a head that emits returns."""

from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence

import tensorflow as tf
from tf_agents.networks import network, utils
from tf_agents.utils import nest_utils

from tf_mmdrl.core import arguments, errors, specs
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.networks import convolutions, heads, streams, torsos, units

_HEAD = (
  "use ParticleNetwork(..., num_particles=200), or a head, for C51"
  " ReturnNetwork(..., heads.categorical(51))"
)
_RECURRENT = (
  "recurrent networks are not supported; put the last few observations into"
  " one, and use fc_layer_params"
)
# What to do about keywords of TF-Agents' networks that have no meaning here.
REPLACED: Dict[str, str] = {
  "num_atoms": _HEAD,
  "num_particles": _HEAD,
  "num_quantiles": _HEAD,
  "activation_fn": "use activation",
  "q_layer_activation_fn": "the last layer gives returns as they are; leave it"
  " out",
  "kernel_initializer": "use make_initializer, a function that makes one for"
  " each layer",
  "dropout_layer_params": "layers here have no dropout; leave it out, or use a"
  " network of your own that ends with a reshape to [B, A, N]",
  "batch_squash": "outer dimensions are always taken as one batch; leave it"
  " out",
  "dtype": "layers compute as tf.keras.mixed_precision's policy says; leave it"
  " out",
  "input_fc_layer_params": _RECURRENT,
  "output_fc_layer_params": _RECURRENT,
  "lstm_size": _RECURRENT,
  "rnn_construction_fn": _RECURRENT,
  "rnn_construction_kwargs": _RECURRENT,
}


def spread(options: Mapping[str, Any], name: str) -> Dict[str, Any]:
  """The keywords that a network collected as `**name`.

  TF-Agents keeps all arguments for `copy`, and hands the collected ones over
  as one, by its name.

  Args:
    options: the keywords as they came.
    name: the name of what collects them.

  Returns:
    The keywords by their own names.
  """
  while name in options:
    others = {key: value for key, value in options.items() if key != name}
    options = {**options[name], **others}
  return dict(options)


class ReturnNetwork(network.Network):
  """observation -> the return distribution of each action, `[B, A, N]`.

  Its layers work in units of return; what it gives is in natural rewards. With
  a head of D dimensions it gives joint distributions, `[B, A, N, D]`.

  Attributes:
    unit: [] variable, how many natural rewards one unit is, or [D], one of each
      return. Agents set it.
  """

  def __init__(
    self,
    input_tensor_spec,
    action_spec,
    head: Optional[heads.MakeHead] = None,
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
    output_scale: float = 0.1,
    dueling: bool = False,
    noisy_layers: bool = False,
    noise: float = 0.5,
    name: str = "ReturnNetwork",
    **others,
  ):
    """Makes the network.

    Args:
      input_tensor_spec: the observation's spec, which may be nested.
      action_spec: a scalar, discrete action from 0.
      head: what makes the head; see `heads` and `implicit_heads`.
      preprocessing_layers: for a nested observation, a layer for each part (in
        the observation's structure); each must give the same shape.
      preprocessing_combiner: a layer that makes one tensor of their outputs.
      conv_layer_params: (filters, kernel size, stride) of each convolution;
        `torsos.NATURE_CONV`, `torsos.MINATAR_CONV` or your own.
      fc_layer_params: units of each dense layer; the last one is the head's,
        so a dueling head has two of it, and an implicit one comes before it.
      padding: the padding of the convolutions, "valid" or the authors' "same".
      activation: the activation of every layer but the last.
      make_initializer: makes the initialiser of each layer's kernel; the
        authors' by default. Noisy layers have their own.
      output_scale: what multiplies the last layer's first weights. With the
        authors' 1, the first particles lie about a unit apart; bootstrapped
        from each other, some of them then run far away from any return before
        rewards bring them back.
      dueling: separate streams for value and advantage.
      noisy_layers: noise in the weights of the head's dense layers, for
        exploration.
      noise: sigma_0, its first size.
      name: the name of the network.
      **others: none; an error says what replaces those of TF-Agents' networks.
    """
    _check_keywords(type(self), spread(others, "others"))
    if not callable(head):
      raise arguments.KeywordError(
        f"{type(self).__name__} needs a head, got"
        f" {'none' if head is None else repr(head)}; pass for example"
        " heads.categorical(51), or use ParticleNetwork(..., num_particles=200)"
      )
    super().__init__(input_tensor_spec, state_spec=(), name=name)
    fc_layer_params = tuple(fc_layer_params or ())
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
    self.num_actions = specs.num_actions(action_spec)
    plain = torsos.Builder(activation, make_initializer, padding)
    self._torso = plain.torso(conv_layer_params, fc_layer_params[:-1])
    # Noise in what comes before would shake every action's value alike.
    builder = plain._replace(
      noise=noise if noisy_layers else None, output_scale=output_scale
    )

    def make_stream(width: int, **options) -> streams.ActionStream:
      return streams.ActionStream(
        self.num_actions,
        width,
        builder,
        fc_layer_params=fc_layer_params[-1:],
        dueling=dueling,
        **options,
      )

    self._head = _checked(head(make_stream))
    self._noisy_layers = noisy_layers
    self.unit = units.variable(self.dimensions)

  @property
  def num_particles(self) -> int:
    """N, where a call does not say."""
    return self._head.num_particles

  @property
  def dimensions(self) -> Optional[int]:
    """D, if particles are vectors; None if they are numbers."""
    return getattr(self._head, "dimensions", None)

  @property
  def head(self) -> tf.keras.layers.Layer:
    """The layer from features [B, F] to distributions [B, A, N]."""
    return self._head

  @property
  def is_implicit(self) -> bool:
    """Whether particles are draws, as many as a call asks for."""
    return getattr(self._head, "is_implicit", False)

  @property
  def is_noisy(self) -> bool:
    """Whether a seed makes noise in the weights."""
    return self._noisy_layers

  @property
  def is_random(self) -> bool:
    """Whether a seed makes a difference, by noise or by draws."""
    return self.is_noisy or self.is_implicit

  @property
  def is_small(self) -> bool:
    """Whether all its convolutions are, and no layer is a user's own."""
    return not self._own_layers and all(self._convolutions_are_small())

  @property
  def is_large(self) -> bool:
    """Whether some convolution is, and no layer is a user's own."""
    return not self._own_layers and not all(self._convolutions_are_small())

  @property
  def _own_layers(self) -> bool:
    return bool(self._preprocessing or self._combiner)

  def _convolutions_are_small(self) -> List[bool]:
    kind = convolutions.FastConv2D
    return [one.is_small for one in self._torso if isinstance(one, kind)]

  def call(
    self,
    observation,
    step_type=None,
    network_state=(),
    training=False,
    seed: Optional[tf.Tensor] = None,
    num_particles: Optional[int] = None,
    even_levels: bool = False,
  ):
    """Distributions `[B, A, N]` (any outer dims for B), and the state.

    Args:
      observation: nest of [B, ...].
      step_type: not used.
      network_state: not used.
      training: passed on to layers that care.
      seed: int [2], of noise and draws; None: mean weights, even levels.
      num_particles: N of an implicit head.
      even_levels: whether an implicit head draws nothing though there is a
        seed, which then makes noise alone.

    Returns:
      Particles of equal weight as a tensor, others as a `ReturnDistribution`
      with `()` for what it lacks; `ReturnDistribution.of` reads both.
    """
    del step_type
    outer_rank = nest_utils.get_outer_rank(observation, self.input_tensor_spec)
    squash = utils.BatchSquash(outer_rank)
    observation = tf.nest.map_structure(squash.flatten, observation)
    features = self.features(observation, training)
    options: Dict[str, Any] = {}
    if num_particles is not None:
      options["num_particles"] = num_particles
    if even_levels and self.is_implicit:
      options["even_levels"] = True
    returns = ReturnDistribution.of(  # which a head may give as bare particles
      self._head(features, training=training, seed=seed, **options)
    )
    output = returns.map_values(lambda z: self.unit * z).as_nest()
    return tf.nest.map_structure(squash.unflatten, output), network_state

  def unit_changes(self, unit: tf.Tensor) -> List[streams.Change]:
    """What to change so that another unit gives the same natural rewards.

    Exact for powers of two, but for C51's head, whose probabilities belong to
    other atoms then.

    Args:
      unit: [] the new unit, or [D] units.

    Returns:
      The changes of weights; that of the unit is not among them.
    """
    return self._head.changes(self.unit / unit)

  def features(self, observation, training=False) -> tf.Tensor:
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
    features = self._combiner(parts) if self._combiner else parts[0]
    for layer in self._torso:
      features = layer(features, training=training)
    return features


def _checked(head: Any) -> tf.keras.layers.Layer:
  """A head, if it has what networks and agents ask a head for."""
  lacks = [
    name for name in ("num_particles", "changes") if not hasattr(head, name)
  ]
  if not isinstance(head, tf.keras.layers.Layer) or lacks:
    raise errors.UserError(
      "a head must be a Keras layer from features to a ReturnDistribution with"
      " num_particles and changes(factor), as in networks/heads.py, got a"
      f" {type(head).__name__}"
      + (f" without {' and '.join(lacks)}" if lacks else "")
    )
  return head


def _check_keywords(cls: type, others: Mapping[str, Any]) -> None:
  for name in others:
    known = arguments.accepted(cls, network.Network)
    raise arguments.no_such_keyword(cls, name, REPLACED, known)
