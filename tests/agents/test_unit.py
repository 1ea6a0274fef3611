"""The unit of return: found from rewards, exact, and not seen by users."""

import agent_fixtures as fixtures
import family
import numpy as np
import pytest
import tensorflow as tf
from tf_agents.policies import policy_saver
from tf_agents.trajectories import time_step as ts

from tf_mmdrl.agents import sight
from tf_mmdrl.agents import unit as units
from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.networks.units import InUnits
from tf_mmdrl.ops import bandwidths, kernels

_FAMILY = pytest.mark.parametrize("name", family.FAMILY)
_OBSERVATIONS = np.random.default_rng(5).normal(size=[16, 4]).astype("f")


def _returns(net):
  output, _ = net(_OBSERVATIONS)
  return ReturnDistribution.of(output)


def _batch(scale=1.0, size=16, seed=0):
  batch = fixtures.experience(batch=size, seed=seed)
  return batch._replace(reward=scale * batch.reward)


def _change(agent, unit):
  both = (agent._network, agent._target_network)
  units.change(
    both, agent._groups(), tf.constant(unit), is_first=tf.constant(False)
  )


@_FAMILY
def test_a_change_leaves_what_networks_represent(name, eager_or_graph):
  agent = family.make(name)
  agent.train(_batch(size=6))
  before = [_returns(n) for n in (agent._network, agent._target_network)]
  for unit in (2.0**-9, 0.5, 64.0):
    _change(agent, unit)
    assert float(agent.unit) == unit
    for net, old in zip((agent._network, agent._target_network), before):
      new = _returns(net)
      if name in ("c51", "rainbow"):
        continue  # its atoms lie elsewhere; see the next test
      np.testing.assert_array_equal(new.values, old.values)
      np.testing.assert_array_equal(new.weights(), old.weights())


@pytest.mark.parametrize("name", ["c51", "rainbow"])
def test_atoms_move_and_their_mean_nearly_stays(name):
  agent = family.make(name)
  # A distribution well inside the atoms, whatever the observation.
  for change in agent._network.unit_changes(tf.constant(1.0)):
    variable, is_value = (
      change.variable,
      "advantage" not in change.variable.name,
    )
    bump = -4 * np.square(np.linspace(-3, 3, 11) - 0.6)
    is_bias = "bias:" in variable.name and is_value
    value = np.tile(bump, variable.shape[-1] // 11) if is_bias else 0.0
    variable.assign(tf.broadcast_to(tf.cast(value, tf.float32), variable.shape))
  before = _returns(agent._network).mean()
  np.testing.assert_allclose(before, 0.6, atol=0.01)
  for unit in (2.0, 1.0, 0.5, 1.0):
    _change(agent, unit)
    np.testing.assert_allclose(
      _returns(agent._network).mean(), before, atol=0.15
    )


def _learnt(name, scale, jit_compile):
  """Losses, unit, weights and returns after 12 updates on growing rewards."""
  agent = family.shared(name, unit="auto", jit_compile=jit_compile)
  losses = [
    # So that the unit changes, too.
    agent.train(_batch(scale * 3.0**step, seed=step)).loss.numpy()
    for step in range(12)
  ]
  weights = [weight.numpy() for weight in agent._network.trainable_weights]
  return losses, float(agent.unit), weights, _returns(agent._network).values


@pytest.mark.parametrize(
  "name, jit_compile",
  [
    *((name, False) for name in ("mmdqn", "qrdqn", "iqn", "c51", "dqn", "fqf")),
    ("mmdqn", True),
  ],
)
def test_powers_of_two_change_no_bit_of_learning(name, jit_compile):
  losses, unit, weights, returns = _learnt(name, 1.0, jit_compile)
  assert unit > 1000
  for scale in (2.0**-12, 2.0**5):
    others = _learnt(name, scale, jit_compile)
    assert others[0] == losses
    assert others[1] == unit * scale
    for one, other in zip(weights, others[2], strict=True):
      np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(others[3], scale * returns)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6, 1e30])
@pytest.mark.parametrize(
  "unit, wanted, jit_compile",
  [("auto", 6, False), ("auto", 6, True), ("auto:1.5", 1.5, False)],
)
def test_returns_are_of_a_few_units(scale, unit, wanted, jit_compile):
  agent = family.shared("mmdqn", unit=unit, jit_compile=jit_compile)
  for seed in range(5):
    agent.train(_batch(scale, seed=seed))
  size = float(agent.return_size())
  # Standard normal rewards, discount 0.9: a root mean square of 2.3 or so, and
  # the rewards' own.
  assert 1.5 * scale < size < 5 * scale
  assert 1 / 2 <= size / float(agent.unit) / wanted <= 8 / 3
  assert np.log2(float(agent.unit)) % 1 == 0


def test_zeros_say_nothing_and_the_first_reward_sets_the_unit():
  agent = family.shared("mmdqn", unit="auto")
  for _ in range(3):
    agent.train(_batch(0.0))
  assert float(agent.unit) == 1 and float(agent.return_size()) == 0
  weights = [w.numpy() for w in agent._target_network.trainable_weights]
  agent.train(_batch(1e4))
  assert float(agent.unit) > 1000
  for before, now in zip(weights, agent._target_network.trainable_weights):
    np.testing.assert_array_equal(now, before)  # in units, as they were


@pytest.mark.parametrize("jit_compile", [False, True])
def test_batches_are_measured_now_and_then_once_rewards_are_known(jit_compile):
  agent = family.shared("mmdqn", unit="auto", jit_compile=jit_compile)

  def measured(scale, batch):
    before = np.array(agent._unit._average)
    agent.train(_batch(scale, seed=batch))
    return (np.array(agent._unit._average) != before).any()

  assert all(measured(1.0, k) for k in range(64))
  assert [k for k in range(64, 140) if measured(1.0, k)] == [64, 96, 128]
  # Rewards of another size are seen all the same, and the unit follows them.
  unit = float(agent.unit)
  for k in range(140, 400):
    measured(64.0, k)
  assert float(agent.unit) >= 16 * unit


def test_the_first_reward_is_seen_however_late_it_comes():
  agent = family.shared("mmdqn", unit="auto")
  for _ in range(67):
    agent.train(_batch(0.0))
  agent.train(_batch(1e4))
  assert float(agent.unit) > 1000


def test_an_outlier_does_not_take_the_rest_out_of_sight():
  agent = family.shared("mmdqn", unit="auto")
  for seed in range(300):
    batch = _batch(size=64, seed=seed)
    if seed == 20:
      reward = batch.reward.numpy()
      reward[0, 0] = 1e9
      batch = batch._replace(reward=tf.constant(reward))
    assert np.isfinite(agent.train(batch).loss)
  assert float(agent.unit) <= 4


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_an_update_that_fails_leaves_no_trace(bad):
  agent = family.shared("mmdqn", unit="auto")
  agent.train(_batch(100.0))
  before = [np.array(variable) for variable in agent.state_variables()]
  batch = _batch(100.0)
  reward = batch.reward.numpy()
  reward[0, 0] = bad
  with pytest.raises(tf.errors.InvalidArgumentError, match="finite numbers"):
    agent.train(batch._replace(reward=tf.constant(reward)))
  unit = float(agent.unit)
  for old, now in zip(before, agent.state_variables()):
    if "average" not in now.name and "batches" not in now.name:
      np.testing.assert_array_equal(now, old)
  agent.train(_batch(100.0))
  assert float(agent.unit) == unit and np.isfinite(agent.return_size())


def test_batches_that_teach_nothing_do_not_count():
  agent = family.shared("mmdqn", unit="auto")
  step_type = np.full([16, 2], fixtures.LAST)
  over = fixtures.experience(batch=16, step_type=step_type)
  for seed in range(3):
    agent.train(_batch(seed=seed))
    size = float(agent.return_size())
    agent.train(over)
    assert float(agent.return_size()) == size


def test_a_number_stays():
  agent = family.make("mmdqn", unit=3.0)
  agent.train(_batch(1e5))
  assert float(agent.unit) == 3


@pytest.mark.parametrize(
  "unit",
  [
    0,
    True,
    -1.0,
    1e-50,
    "large",
    None,
    float("nan"),
    "auto:",
    "auto:-2",
    "auto:x",
  ],
)
def test_a_bad_unit_is_said(unit):
  with pytest.raises(errors.UserError, match="unit must be 'auto', 'auto:X'"):
    family.make("mmdqn", unit=unit)


def test_losses_are_those_of_rewards_in_units():
  """unit = 4 on rewards of 4 x equals unit = 1 on x."""
  agents = [family.shared("mmdqn"), family.make("mmdqn", unit=4.0)]
  infos = [agent.train(_batch(unit)) for agent, unit in zip(agents, (1.0, 4.0))]
  np.testing.assert_array_equal(infos[0].loss, infos[1].loss)
  np.testing.assert_allclose(
    infos[1].extra.td_error, 4 * infos[0].extra.td_error, rtol=1e-6
  )


def _train_to_a_judgement(agent, batch, updates=72):
  """Enough updates, of which every fourth is looked at; see `looks`."""
  train = tf.function(agent.train)
  for _ in range(updates):
    train(batch)


@pytest.fixture
def looks(monkeypatch):
  """Lets an agent look at more of its updates: a judgement takes 16 looks."""
  monkeypatch.setattr(sight, "PERIOD", 4)


def test_a_network_of_ones_own_keeps_its_first_unit(capfd, looks):
  table = np.zeros([2, 3, 4])
  net = fixtures.TableNetwork(fixtures.OBSERVATION, table)
  agent = fixtures.make_agent(net, unit="auto")
  assert isinstance(agent.return_network, InUnits)
  agent.train(_batch(100.0))
  first = float(agent.unit)
  assert first >= 32
  _train_to_a_judgement(agent, _batch(1e6))
  assert float(agent.unit) == first
  told = capfd.readouterr().err
  assert told.count("warning") == 1 and "use a ReturnNetwork" in told


def test_policies_exports_and_checkpoints_carry_it(tmp_path):
  agent = family.shared("mmdqn", unit="auto")
  for seed in range(3):
    agent.train(_batch(1e3, seed=seed))
  unit = float(agent.unit)
  assert unit > 100
  path = tf.train.Checkpoint(agent=agent).write(str(tmp_path / "agent"))
  other = family.make("mmdqn", unit="auto")
  tf.train.Checkpoint(agent=other).read(path).assert_consumed()
  assert float(other.unit) == unit
  assert float(other.return_size()) == float(agent.return_size())
  for one, two in zip(agent.state_variables(), other.state_variables()):
    np.testing.assert_array_equal(one, two)
  policy_saver.PolicySaver(agent.policy, batch_size=None).save(
    str(tmp_path / "policy")
  )
  loaded = tf.saved_model.load(str(tmp_path / "policy"))
  assert unit in [float(v) for v in loaded.model_variables if v.shape == []]
  step = ts.restart(_OBSERVATIONS, 16)
  np.testing.assert_array_equal(
    loaded.action(step, ()).action, agent.policy.action(step).action
  )


@pytest.mark.parametrize(
  "period", [4, pytest.param(sight.PERIOD, marks=pytest.mark.slow)]
)
def test_a_blind_kernel_says_so_once(capfd, monkeypatch, period):
  monkeypatch.setattr(sight, "PERIOD", period)
  agent = fixtures.make_agent(
    unit=1.0, learning_rate=1e-5, kernel=kernels.gaussian_mixture()
  )
  batch = _batch()
  batch = batch._replace(reward=1e6 + 0 * batch.reward)
  _train_to_a_judgement(agent, batch, updates=22 * period)
  told = capfd.readouterr().err
  assert told.count("warning: MMDQNAgent") == 1
  assert "100 % of the error of predictions" in told and 'unit="auto"' in told
  assert float(agent.beyond_reach) == 1


@pytest.mark.parametrize(
  "kernel",
  [
    kernels.gaussian_mixture(),
    bandwidths.annealed(10.0, 1.0, 100),
    # A tail that pulls with a ten thousandth of the Gaussian.
    kernels.weighted_sum(
      [kernels.gaussian(1.0), kernels.smooth_energy(1.0)], [1.0, 1e-4]
    ),
  ],
  ids=["mixture", "annealed", "faint-tail"],
)
def test_a_kernel_that_is_blind_for_few_but_far_says_so(capfd, looks, kernel):
  """As at the ends of CartPole's episodes: all other returns follow theirs."""
  agent = fixtures.make_agent(unit=1.0, learning_rate=1e-5, kernel=kernel)
  reward, discount = np.full([16, 2], 1.5), np.zeros([16, 2])
  reward[3] = 10
  batch = fixtures.experience(batch=16, reward=reward, discount=discount)
  _train_to_a_judgement(agent, batch, updates=260)
  assert 0.2 < float(agent.beyond_reach) < 0.45
  told = capfd.readouterr().err
  assert told.count("warning: MMDQNAgent learns little, or wrongly") == 1
  assert "of the error of predictions is of particles that are" in told


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_a_unit_far_from_returns_is_said_once(capfd, looks, scale):
  agent = fixtures.make_agent(unit=1.0)
  _train_to_a_judgement(agent, _batch(scale))
  told = capfd.readouterr().err
  assert told.count("warning: MMDQNAgent") == 1
  assert "one unit of return is 1 " in told


def test_a_kernel_that_sees_says_nothing(capfd, looks):
  kernel = kernels.gaussian_mixture()
  agent = fixtures.make_agent(unit="auto", kernel=kernel)
  # Much is out of reach at first, and the average remembers it.
  _train_to_a_judgement(agent, _batch(1e6), updates=300)
  assert "warning" not in capfd.readouterr().err
  assert float(agent.look(_batch(1e6)).beyond_reach) < 0.2  # of the error
