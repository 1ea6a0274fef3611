"""What optimizers keep of gradients, and how it follows the unit of return.

Where a unit changes, the last layer's weights are multiplied by old unit / new
unit. Near its minimum a loss in units has gradients that scale as the weights
do, and so what an optimizer keeps scales with a power of that factor: averages
of gradients and of steps with the first, those of squares with the second.
Keras' optimizers of both generations and those of tf.compat.v1.train are known
by their class and by the names that they give to what they keep.
"""

import functools
from typing import Dict, Iterator, List, NamedTuple, Optional, Sequence

import tensorflow as tf

from tf_mmdrl.core import notices
from tf_mmdrl.networks import streams

# Class -> what it keeps -> power. Keras has lists of variables (attributes),
# older optimizers have slots.
_ADAM: Dict[str, float] = {
  "_momentums": 1,
  "_velocities": 2,
  "_velocity_hats": 2,
  "m": 1,
  "v": 2,
  "vhat": 2,
}
_POWERS: Dict[str, Dict[str, float]] = {
  "Adam": _ADAM,
  "AdamW": _ADAM,
  "Nadam": _ADAM,
  "AdamOptimizer": _ADAM,
  # Its second moment is a maximum of gradients, not of their squares.
  "Adamax": {"_m": 1, "_u": 1, "m": 1, "v": 1},
  # It averages the squares of its steps, which are in units of the weights.
  "Adadelta": {
    "_accumulated_grads": 2,
    "_accumulated_delta_vars": 2,
    "accum_grad": 2,
    "accum_var": 2,
  },
  "AdadeltaOptimizer": {"accum": 2, "accum_update": 2},
  "Adagrad": {"_accumulators": 2, "accumulator": 2},
  "AdagradOptimizer": {"accumulator": 2},
  "ProximalAdagradOptimizer": {"accumulator": 2},
  "AdagradDAOptimizer": {
    "gradient_accumulator": 1,
    "gradient_squared_accumulator": 2,
  },
  "Adafactor": {"_r": 2, "_c": 2, "_v": 2},
  # Its "linear" follows from the learning rate's power; see `_power`.
  "Ftrl": {"_accumulators": 2, "accumulator": 2},
  "FtrlOptimizer": {"accum": 2},
  "Lion": {"momentums": 1},
  "RMSprop": {
    "_velocities": 2,
    "_momentums": 1,
    "_average_gradients": 1,
    "rms": 2,
    "momentum": 1,
    "mg": 1,
  },
  "RMSPropOptimizer": {"rms": 2, "momentum": 1, "mg": 1},
  "SGD": {"momentums": 1, "momentum": 1},
  "MomentumOptimizer": {"momentum": 1},
}
_LINEAR = ("_linears", "linear")  # Ftrl's
_LACKING = {"_r": -1, "_c": -2}  # the axis over which Adafactor averages
_AVERAGES = "_model_variables_moving_average"  # of weights, if use_ema


class Moment(NamedTuple):
  """What an optimizer keeps of one weight's gradients.

  Attributes:
    variable: what the optimizer keeps; it has the weight's shape, but for the
      axis that it lacks.
    power: it scales with this power of the factor that multiplies the weight.
    lacks: the axis that it lacks, or None.
  """

  variable: tf.Variable
  power: float
  lacks: Optional[int] = None


def change(optimizer, changed: streams.Change, is_first: tf.Tensor) -> None:
  """Rescales what an optimizer keeps of a weight, when the weight is rescaled.

  Args:
    optimizer: what moves the weight.
    changed: the change.
    is_first: whether weights stay, and this too.
  """
  for average in _listed(optimizer, changed.variable, _AVERAGES):
    assign_unless(is_first, average, changed.new)
  if not changed.moments:
    return
  factor = changed.new(tf.ones_like(changed.variable))
  for moment in of(optimizer, changed.variable):
    scaled = functools.partial(_scaled, factor=factor, moment=moment)
    assign_unless(is_first, moment.variable, scaled)


def assign_unless(condition: tf.Tensor, variable: tf.Variable, new) -> None:
  """Gives a variable the value new(value) if a condition does not hold."""
  now = tf.convert_to_tensor(variable)
  variable.assign(tf.where(condition, now, new(now)))


def _scaled(value: tf.Tensor, factor: tf.Tensor, moment: Moment) -> tf.Tensor:
  if moment.lacks is not None:
    factor = tf.reduce_mean(factor, axis=moment.lacks)
  # One by one: the factor's own square may be beyond float32's range.
  for _ in range(int(moment.power)):
    value *= factor
  rest = moment.power % 1
  return value * factor**rest if rest else value


def of(optimizer, weight: tf.Variable) -> Iterator[Moment]:
  """What an optimizer keeps of a weight, as far as it is known by name."""
  powers = _powers(optimizer)
  if hasattr(optimizer, "get_slot_names"):  # Keras' legacy, tf.compat.v1
    for name in optimizer.get_slot_names():
      if name in powers:
        yield Moment(optimizer.get_slot(weight, name), powers[name])
    return
  for name, power in powers.items():
    lacks = _LACKING.get(name)
    if lacks is None or weight.shape.rank >= 2:  # others are not factored
      for variable in _listed(optimizer, weight, name):
        yield Moment(variable, power, lacks)


def tell_unknown(agent: str, optimizer, weights: Sequence[tf.Variable]) -> None:
  """Warns in one line if an optimizer keeps what is not known.

  Args:
    agent: the class that the user made.
    optimizer: an optimizer whose variables exist.
    weights: the weights that it moves.
  """
  unknown = _unknown(optimizer, weights)
  if unknown:
    notices.show(
      f"warning: {agent} does not know what {type(optimizer).__name__} keeps in"
      f" {', '.join(unknown)}. Where the unit of return changes, it stays as it"
      " is, and the next updates may be too large or too small. Use an"
      " optimizer of tf.keras, or pass a number as the unit.\n"
    )


def _powers(optimizer) -> Dict[str, float]:
  """The powers of the nearest class that is known."""
  for cls in type(optimizer).__mro__:
    if cls.__name__ in _POWERS:
      powers = dict(_POWERS[cls.__name__])
      if cls.__name__.startswith("Ftrl"):
        powers.update(dict.fromkeys(_LINEAR, _linear_power(optimizer)))
      return powers
  return {}


def _linear_power(optimizer) -> float:
  """Ftrl's weights are -linear / accumulator^(-p), which must scale as they do.

  Up to its regularisation, which has a size of its own.
  """
  if hasattr(optimizer, "get_config"):
    power = optimizer.get_config()["learning_rate_power"]
  else:
    power = optimizer._learning_rate_power
  return 1 - 2 * float(power)


def _listed(optimizer, weight: tf.Variable, name: str) -> List[tf.Variable]:
  """One of Keras' lists at a weight's place: one variable, or none."""
  places = getattr(optimizer, "_index_dict", {})
  listed = getattr(optimizer, name, None)
  if not places or not isinstance(listed, list) or not listed:
    return []
  key = optimizer._var_key(weight)
  return [listed[places[key]]] if key in places else []


def _unknown(optimizer, weights: Sequence[tf.Variable]) -> List[str]:
  """The names of what an optimizer keeps of weights beyond what is known."""
  powers = _powers(optimizer)
  if hasattr(optimizer, "get_slot_names"):
    return [name for name in optimizer.get_slot_names() if name not in powers]
  known = set()
  for weight in weights:
    known |= {id(moment.variable) for moment in of(optimizer, weight)}
    known |= {id(one) for one in _listed(optimizer, weight, _AVERAGES)}
  variables = getattr(optimizer, "variables", [])
  variables = variables() if callable(variables) else variables
  return [
    variable.name
    for variable in variables
    if variable.shape.rank and id(variable) not in known
  ][:1]
