"""What optimizers keep follows the unit of return: one step, before and after.

If weights and gradients are multiplied by a factor, an optimizer whose steps
follow the size of gradients or weights makes a step that is multiplied by it
too; the step of one that divides by the size of gradients stays as it was. Both
hold only if all that it keeps has changed by the right power.
"""

import agent_fixtures as fixtures
import numpy as np
import pytest
import tensorflow as tf

from tf_mmdrl.agents import moments, optimizers
from tf_mmdrl.agents import unit as units
from tf_mmdrl.networks import streams

_FACTOR = 0.25
_KERAS, _LEGACY = tf.keras.optimizers, tf.keras.optimizers.legacy
_V1 = tf.compat.v1.train
_TINY = dict(epsilon=1e-30)
# Name -> (what makes it, the power of the factor in its step).
_OPTIMIZERS = {
  "adam": (lambda: _KERAS.Adam(0.1, **_TINY), 0),
  "amsgrad": (lambda: _KERAS.Adam(0.1, amsgrad=True, **_TINY), 0),
  "adamw": (lambda: _KERAS.AdamW(0.1, weight_decay=0.0, **_TINY), 0),
  "adamax": (lambda: _KERAS.Adamax(0.1, **_TINY), 0),
  "nadam": (lambda: _KERAS.Nadam(0.1, **_TINY), 0),
  "adagrad": (lambda: _KERAS.Adagrad(0.1, **_TINY), 0),
  "rmsprop": (lambda: _KERAS.RMSprop(0.1, centered=True, **_TINY), 0),
  "lion": (lambda: _KERAS.Lion(0.1), 0),
  "adadelta": (lambda: _KERAS.Adadelta(0.1, **_TINY), 1),
  "sgd": (lambda: _KERAS.SGD(0.1, momentum=0.9), 1),
  "nesterov": (lambda: _KERAS.SGD(0.1, momentum=0.9, nesterov=True), 1),
  "plain": (lambda: _KERAS.SGD(0.1), 1),
  "ftrl": (lambda: _KERAS.Ftrl(0.1), 0),
  "ftrl-0.3": (lambda: _KERAS.Ftrl(0.1, learning_rate_power=-0.3), 0.4),
  "legacy-adam": (lambda: _LEGACY.Adam(0.1, **_TINY), 0),
  "legacy-amsgrad": (lambda: _LEGACY.Adam(0.1, amsgrad=True, **_TINY), 0),
  "legacy-adamax": (lambda: _LEGACY.Adamax(0.1, **_TINY), 0),
  "legacy-nadam": (lambda: _LEGACY.Nadam(0.1, **_TINY), 0),
  "legacy-adagrad": (lambda: _LEGACY.Adagrad(0.1, **_TINY), 0),
  "legacy-rmsprop": (lambda: _LEGACY.RMSprop(0.1, centered=True, **_TINY), 0),
  "legacy-adadelta": (lambda: _LEGACY.Adadelta(0.1, **_TINY), 1),
  "legacy-sgd": (lambda: _LEGACY.SGD(0.1, momentum=0.9), 1),
  "legacy-ftrl": (lambda: _LEGACY.Ftrl(0.1), 0),
  "v1-adam": (lambda: _V1.AdamOptimizer(0.1, **_TINY), 0),
  "v1-adagrad": (lambda: _V1.AdagradOptimizer(0.1), 0),
  "v1-rmsprop": (lambda: _V1.RMSPropOptimizer(0.1, **_TINY), 0),
  "v1-adadelta": (lambda: _V1.AdadeltaOptimizer(0.1, **_TINY), 1),
  "v1-momentum": (lambda: _V1.MomentumOptimizer(0.1, 0.9), 1),
  "v1-plain": (lambda: _V1.GradientDescentOptimizer(0.1), 1),
  "v1-ftrl": (lambda: _V1.FtrlOptimizer(0.1), 0),
}
if hasattr(_KERAS, "Adafactor"):
  _OPTIMIZERS["adafactor"] = (
    lambda: _KERAS.Adafactor(0.1, epsilon_1=1e-30, epsilon_2=1e-30),
    1,
  )


def _kept(optimizer):
  """All variables of an optimizer that belong to weights, known or not."""
  variables = optimizer.variables
  variables = variables() if callable(variables) else variables
  return [variable for variable in variables if variable.shape.rank]


def _weights():
  rng = np.random.default_rng(0)
  return [
    tf.Variable(rng.normal(size=shape), dtype=tf.float32)
    for shape in ([3, 4], [4])
  ]


def _ready(make, weights):
  """An optimizer that has seen something, the same whenever it is made."""
  optimizer = make()
  optimizers.build(optimizer, weights)
  _fill(optimizer)
  return optimizer


def _fill(optimizer):
  rng = np.random.default_rng(1)
  for variable in _kept(optimizer):
    # Squares of averages are below averages of squares, as they must be.
    value = rng.uniform(0.5, 0.7, variable.shape)
    variable.assign(tf.constant(value, tf.float32))


def _change(optimizer, weights, is_first=False):
  """What a unit that is 1 / _FACTOR times as large does."""
  for weight in weights:
    changed = streams.Change(weight, lambda value: _FACTOR * value)
    weight.assign(changed.new(weight))
    moments.change(optimizer, changed, tf.constant(is_first))


def _step(optimizer, weights, factor=1.0):
  """The steps of the weights under the same gradients times a factor."""
  rng = np.random.default_rng(2)
  before = [weight.numpy() for weight in weights]
  gradients = [
    tf.constant(factor * rng.normal(size=weight.shape), tf.float32)
    for weight in weights
  ]
  optimizer.apply_gradients(zip(gradients, weights))
  return [now.numpy() - old for now, old in zip(weights, before)]


@pytest.mark.parametrize("name", _OPTIMIZERS)
def test_the_next_step_is_of_the_right_size(name):
  make, power = _OPTIMIZERS[name]
  weights, others = _weights(), _weights()
  optimizer, other = _ready(make, weights), _ready(make, others)
  for pair in ((optimizer, weights), (other, others)):
    _step(*pair)  # because Ftrl's weights are what it keeps
  _change(other, others)
  plain = _step(optimizer, weights)
  changed = _step(other, others, _FACTOR)
  for one, two in zip(plain, changed):
    assert np.all(one != 0)
    np.testing.assert_allclose(two, _FACTOR**power * one, rtol=2e-5, atol=2e-7)


@pytest.mark.parametrize("make", [_KERAS.RMSprop, _LEGACY.RMSprop])
def test_momentum_of_normalised_steps(make):
  """What is left of old steps scales as weights do, new steps do not."""
  weights = _weights()
  optimizer = _ready(lambda: make(0.1, momentum=0.9), weights)
  old = [variable.numpy() for variable in _kept(optimizer)]
  _change(optimizer, weights)
  now = [variable.numpy() for variable in _kept(optimizer)]
  powers = sorted(
    float(np.log(new / before).mean() / np.log(_FACTOR))
    for before, new in zip(old, now)
  )
  np.testing.assert_allclose(powers, [1, 1, 2, 2], rtol=1e-5)


def test_averages_of_weights_follow_even_where_moments_do_not():
  weights = _weights()
  optimizer = _ready(lambda: _KERAS.SGD(0.1, use_ema=True), weights)
  averages = optimizer._model_variables_moving_average
  before = [average.numpy() for average in averages]
  for weight in weights:
    shifted = streams.Change(weight, lambda value: value + 3, moments=False)
    moments.change(optimizer, shifted, tf.constant(False))
  for old, new in zip(before, averages):
    np.testing.assert_array_equal(new, old + 3)


@pytest.mark.parametrize("name", ["adam", "legacy-adamax", "v1-momentum"])
def test_the_first_unit_leaves_all_as_it_was(name):
  weights = _weights()
  optimizer = _ready(_OPTIMIZERS[name][0], weights)
  before = [variable.numpy() for variable in _kept(optimizer)]
  _change(optimizer, weights, is_first=True)
  for old, new in zip(before, _kept(optimizer)):
    np.testing.assert_array_equal(new, old)


def test_a_factor_whose_square_is_beyond_float32():
  weights = [tf.Variable([1.0])]
  optimizer = _ready(lambda: _KERAS.Adam(0.1), weights)
  velocity = optimizer._velocities[0]
  velocity.assign([2.0**-100])
  changed = streams.Change(weights[0], lambda value: 2.0**80 * value)
  moments.change(optimizer, changed, tf.constant(False))
  np.testing.assert_array_equal(velocity, [2.0**60])


@pytest.mark.parametrize(
  "name", ["adam", "adadelta", "legacy-adamax", "v1-adam"]
)
def test_only_what_belongs_to_the_last_layer_changes(name):
  agent = fixtures.make_agent(optimizer=_OPTIMIZERS[name][0]())
  _fill(agent._optimizer)
  both = (agent._network, agent._target_network)
  last = {id(c.variable) for c in agent._network.unit_changes(1.0)}
  assert len(last) == 2
  kept = {
    id(weight): list(moments.of(agent._optimizer, weight))
    for weight in agent._network.trainable_weights
  }
  old = {
    key: [m.variable.numpy() for m in found] for key, found in kept.items()
  }
  units.change(both, agent._groups(), tf.constant(4.0), tf.constant(False))
  for key, found in kept.items():
    assert len(found) == 2
    for moment, before in zip(found, old[key]):
      factor = 0.25**moment.power if key in last else 1.0
      np.testing.assert_array_equal(moment.variable, factor * before)


class _Own(_KERAS.Optimizer):
  """An optimizer of a user's own, with something in a list."""

  def __init__(self):
    super().__init__(name="own")
    self._learning_rate = self._build_learning_rate(0.1)

  def build(self, var_list):
    super().build(var_list)
    self.traces = [
      self.add_variable_from_reference(weight, "trace") for weight in var_list
    ]

  def update_step(self, gradient, variable):
    variable.assign_sub(self.learning_rate * gradient)

  def get_config(self):
    return {}


class _OwnAdam(_KERAS.Adam):
  """One that keeps what Adam keeps."""


class _OwnSlots(_LEGACY.SGD):
  """One with a slot of its own."""

  def _create_slots(self, var_list):
    for weight in var_list:
      self.add_slot(weight, "trace")


@pytest.mark.parametrize("make, what", [(_Own, "trace/"), (_OwnSlots, "trace")])
def test_what_is_not_known_is_said_once(capfd, make, what):
  fixtures.make_agent(optimizer=make(), unit="auto")
  told = capfd.readouterr().err
  assert told.count("warning: ") == 1
  assert f"MMDQNAgent does not know what {make.__name__} keeps in" in told
  assert what in told
  fixtures.make_agent(optimizer=make(), unit=1.0)  # which never changes
  assert "warning: " not in capfd.readouterr().err


def test_what_is_known_is_not_spoken_of(capfd):
  weights = _weights()
  makers = [make for make, _ in _OPTIMIZERS.values()]
  ema = [lambda: _KERAS.Adam(0.1, use_ema=True)]
  for make in [*makers, *ema, _OwnAdam]:
    optimizer = make()
    optimizers.build(optimizer, weights)
    moments.tell_unknown("MMDQNAgent", optimizer, weights)
  assert "warning: MMDQN" not in capfd.readouterr().err
