"""What every agent owes: one suite over the whole family."""

import agent_fixtures as fixtures
import family
import numpy as np
import pytest
import tensorflow as tf
from tf_agents.policies import policy_saver
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import agents
from tf_mmdrl.agents import auxiliary, transitions
from tf_mmdrl.core import errors
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.networks import ReturnNetwork, implicit_heads
from tf_mmdrl.ops import kernels, mmd

_FAMILY = pytest.mark.parametrize("name", family.FAMILY)
# Convolutions come before all that an agent adds: two agents show it.
_WITH_IMAGES = ("mmdqn", "iqn")
# XLA compiles for seconds; these have an operation that no other one has.
_WITH_XLA = ("dqn", "c51", "qrdqn", "fqf", "mmdqn", "implicit_mmdqn")

# A policy knows a network and no loss; the others' heads are among these, but
# for a number of particles or the kind of draws.
_WITH_HEADS_OF_THEIR_OWN = (
  "c51",
  "rainbow",
  "iqn",
  "fqf",
  "mmdqn",
  "implicit_mmdqn_normal",
  "weighted_mmdqn",
  "rainbow_mmdqn",
)


def _batch(size=6, length=2, num_actions=3, image=False, **replaced):
  rng = np.random.default_rng(1)
  made = fixtures.experience(
    batch=size,
    length=length,
    action=rng.integers(num_actions, size=[size, length]),
    **replaced,
  )
  if image:
    pictures = rng.integers(256, size=[size, length, 10, 10, 2])
    made = made._replace(observation=tf.constant(pictures, tf.uint8))
  return made


def _expected(name, agent, batch, n=1):
  data = transitions.as_transition(batch, n=n, gamma=family.GAMMA)
  losses, means = family.expected_losses(
    name,
    agent,
    data.observation,
    data.action.numpy(),
    np.float64(data.reward),
    np.float64(data.discount),
    data.next_observation,
  )
  return losses * data.mask.numpy(), means * data.mask.numpy()


def _fast_for(names):
  return [
    pytest.param(name, marks=[] if name in names else pytest.mark.slow)
    for name in family.FAMILY
  ]


@_FAMILY
def test_loss_and_target_equal_the_oracle(name):
  _check_against_the_oracle(name, family.shared(name), _batch())


@pytest.mark.parametrize("name", _fast_for(_WITH_IMAGES))
def test_images_equal_the_oracle(name):
  shape = dict(num_actions=2, image=True)
  _check_against_the_oracle(name, family.make(name, **shape), _batch(**shape))


@pytest.mark.parametrize("name", _fast_for(_WITH_XLA))
def test_xla_equals_the_oracle(name):
  agent = family.make(name, jit_compile=True)
  _check_against_the_oracle(name, agent, _batch())


def _check_against_the_oracle(name, agent, batch):
  for weight in agent._target_network.trainable_weights:  # not the online's
    weight.assign(0.8 * weight)
  losses, means = _expected(name, agent, batch)
  predicted = agent._predict(
    agent._network, batch.observation[:, 0], family.Use.TAKEN
  ).at(batch.action[:, 0])
  info = agent.train(batch)
  np.testing.assert_allclose(info.extra.td_loss, losses, rtol=2e-4, atol=2e-6)
  np.testing.assert_allclose(info.loss, losses.mean(), rtol=1e-4, atol=1e-6)
  np.testing.assert_allclose(
    info.extra.td_error, means - predicted.mean(), rtol=1e-4, atol=1e-5
  )


@_FAMILY
def test_a_boundary_is_masked_and_the_end_has_no_future(name):
  step_type, discount = np.full([6, 2], fixtures.MID), np.ones([6, 2])
  step_type[0, 0] = fixtures.LAST
  discount[1, 0] = 0.0
  batch = _batch(step_type=step_type, discount=discount)
  agent = family.shared(name)
  info = agent.loss(batch)
  assert info.extra.td_loss[0] == 0 and info.extra.td_error[0] == 0
  losses, _ = _expected(name, agent, batch)
  np.testing.assert_allclose(info.extra.td_loss, losses, rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize("name", _fast_for(("dqn", "mmdqn", "fqf")))
def test_importance_weights_scale_the_examples(name):
  agent = family.make(name)
  weights = tf.constant([0.0, 1.0, 2.0, 0.5, 1.0, 3.0])
  batch = _batch()
  per_example = agent.loss(batch).extra.td_loss.numpy()
  info = agent.train(batch, weights=weights)
  np.testing.assert_allclose(info.loss, np.mean(weights * per_example), 1e-5)
  np.testing.assert_allclose(info.extra.td_loss, per_example, 1e-5)


@_FAMILY
def test_n_step_by_hand(name):
  # 1 + 0.9 x 2 + 0.81 x 4, then 0.729 z; the second example ends after two.
  reward = np.tile([1.0, 2.0, 4.0, 8.0], [6, 1])
  step_type, discount = np.full([6, 4], fixtures.MID), np.ones([6, 4])
  discount[1, 1], step_type[1, 2] = 0.0, fixtures.LAST
  batch = _batch(
    length=4, reward=reward, step_type=step_type, discount=discount
  )
  agent = family.make(name, n_step_update=3)
  sums, factors = np.full(6, 6.04), np.full(6, 0.729)
  sums[1], factors[1] = 2.8, 0.0
  losses, _ = family.expected_losses(
    name,
    agent,
    batch.observation[:, 0],
    batch.action[:, 0].numpy(),
    sums,
    factors,
    batch.observation[:, 3],
  )
  got = agent.loss(batch).extra.td_loss
  np.testing.assert_allclose(got, losses, rtol=5e-4, atol=2e-6)


@_FAMILY
def test_training_lowers_the_loss_on_a_fixed_batch(name):
  agent = family.shared(name)
  batch = _batch(discount=np.zeros([6, 2]))  # regression on rewards
  losses = [float(agent.train(batch).loss) for _ in range(150)]
  # Cross-entropies and quantile losses of a point do not end at 0.
  assert np.mean(losses[-20:]) < 0.75 * np.mean(losses[:5])


@_FAMILY
def test_only_allowed_actions_are_taken_and_backed_up(name):
  observation, _ = family.specs()
  spec = {
    "state": observation.observation,
    "mask": tf.TensorSpec([3], tf.int32),
  }
  agent = family.make(
    name,
    time_step_spec=ts.time_step_spec(spec),
    observation_and_action_constraint_splitter=lambda o: (
      o["state"],
      o["mask"],
    ),
  )
  plain = _batch()
  masks = np.ones([6, 2, 3])
  masks[:, 1] = [0, 0, 1]
  batch = plain._replace(
    observation={
      "state": plain.observation,
      "mask": tf.constant(masks, tf.int32),
    }
  )
  following = agent._predict(
    agent._target_network,
    tf.nest.map_structure(lambda part: part[:, 1], batch.observation),
    family.Use.TARGET,
  ).mean()[:, 2]
  predicted = agent._predict(
    agent._network,
    tf.nest.map_structure(lambda part: part[:, 0], batch.observation),
    family.Use.TAKEN,
  ).at(batch.action[:, 0])
  wanted = batch.reward[:, 0] + family.GAMMA * following - predicted.mean()
  got = agent.loss(batch).extra.td_error
  np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)
  step = ts.restart(
    {"state": plain.observation[:, 0], "mask": tf.constant([[0, 1, 0]] * 6)}, 6
  )
  for policy in (agent.policy, agent.collect_policy):
    assert set(policy.action(step).action.numpy()) == {1}


@_FAMILY
def test_a_checkpoint_brings_all_back(name, tmp_path, eager_or_graph):
  agent, batch = family.shared(name), _batch()
  for _ in range(2):
    agent.train(batch)
  path = tf.train.Checkpoint(agent=agent).write(str(tmp_path / "at_2"))
  wanted = [float(agent.train(batch).loss) for _ in range(2)]
  other = family.make(name)
  tf.train.Checkpoint(agent=other).read(path).assert_consumed()
  got = [float(other.train(batch).loss) for _ in range(2)]
  assert got == wanted  # draws and noise included
  pairs = zip(agent.state_variables(), other.state_variables())
  for ours, theirs in pairs:
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("name", _fast_for(_WITH_HEADS_OF_THEIR_OWN))
def test_policy_saver_round_trip(name, tmp_path):
  agent = family.shared(name)
  agent.train(_batch())
  policy_saver.PolicySaver(agent.policy, batch_size=None).save(str(tmp_path))
  loaded = tf.saved_model.load(str(tmp_path))
  step = ts.restart(_batch(size=32).observation[:, 0], 32)
  np.testing.assert_array_equal(
    loaded.action(step, ()).action, agent.policy.action(step).action
  )


@_FAMILY
def test_no_loss_moves_the_other_ones_weights(name):
  """Each optimizer's weights move by its own loss alone."""
  agent, batch = family.shared(name), _batch()
  groups = agent._groups()
  trained = [weight for group in groups for weight in group.weights]
  assert len({weight.ref() for weight in trained}) == len(trained)
  with tf.GradientTape(persistent=True) as tape:
    update = agent._learning.forward(batch, None, training=True)
  none = tf.UnconnectedGradients.ZERO
  for index, group in enumerate(groups):
    own = [update.loss_info.loss, update.auxiliary_loss][index]
    other = [update.auxiliary_loss, update.loss_info.loss][index]
    strong = tape.gradient(own, group.weights, unconnected_gradients=none)
    weak = tape.gradient(other, group.weights, unconnected_gradients=none)
    assert any(np.any(part != 0) for part in strong)
    assert all(np.all(part == 0) for part in weak)
  assert len(groups) == (2 if name in ("fqf", "adversarial_mmdqn") else 1)


@pytest.mark.parametrize("name", ["dqn", "c51", "qrdqn", "mmdqn", "iqn"])
def test_munchausen_backs_up_the_soft_policy(name):
  """M-DQN, equation 2, in NumPy; the mean of the target is its own."""
  agent = family.make(name, munchausen=family.MUNCHAUSEN)
  batch = _batch()
  target = agent._target_network
  now, after = batch.observation[:, 0], batch.observation[:, 1]
  soft, bonus = [], []
  for observation, use in ((after, family.Use.TARGET), (now, family.Use.BONUS)):
    values, weights, _ = family.outputs(agent, target, observation, use)
    q = np.sum(values * weights, -1)
    logits = (q - q.max(1, keepdims=True)) / 0.03
    log_policy = logits - np.log(np.exp(logits).sum(1, keepdims=True))
    soft.append(np.sum(np.exp(log_policy) * (q - 0.03 * log_policy), 1))
    bonus.append(0.9 * np.clip(0.03 * log_policy, -1, 0))
  taken = bonus[1][np.arange(6), batch.action[:, 0]]
  wanted = batch.reward[:, 0] + taken + family.GAMMA * soft[0]
  predicted = agent._predict(agent._network, now, family.Use.TAKEN)
  predicted = predicted.at(batch.action[:, 0]).mean()
  got = agent.loss(batch).extra.td_error
  np.testing.assert_allclose(got, wanted - predicted, rtol=1e-4, atol=1e-5)
  assert np.isfinite(agent.train(batch).loss)


@pytest.mark.parametrize("stratified", [True, False])
def test_implicit_draws_leave_the_spread_alone(stratified):
  """The MMD between draws of one law has its least value at that law."""
  head = implicit_heads.implicit(64, stratified=stratified)
  time_step_spec, action_spec = family.specs(num_actions=1)
  net = ReturnNetwork(time_step_spec.observation, action_spec, head)

  def draws(seed):
    output, _ = net(tf.zeros([250, 4]), seed=tf.constant([0, seed]))
    return tf.math.ndtri(ReturnDistribution.of(output).levels[:, 0])

  # 2,000 pairs of draws, in parts that take little memory.
  parts = [(draws(2 * part), draws(2 * part + 1)) for part in range(8)]

  def slope(spread):
    slopes = []
    for ones, others in parts:
      variable = tf.Variable(spread)
      with tf.GradientTape() as tape:
        losses = mmd.mmd_squared(
          variable * 0.1 * ones,
          0.1 * others,
          kernel=kernels.gaussian_mixture(),
        )
        loss = tf.reduce_mean(losses)
      slopes.append(float(tape.gradient(loss, variable)))
    return np.mean(slopes)

  if stratified:
    assert slope(0.5) < 0
    assert abs(slope(1.0)) < 0.05 * abs(slope(0.5))
  else:  # why the agent does not take such a head
    assert slope(1.0) > 0 and slope(0.5) > 0


def test_noise_does_not_reach_fqfs_fractions():
  agent = family.make("fqf", network_options=dict(noisy_layers=True))
  batch = _batch()
  data = transitions.as_transition(batch, n=1, gamma=family.GAMMA)
  losses = []
  for step in (0, 1):
    agent.train_step_counter.assign(step)
    predicted = agent._predict(
      agent._network, data.observation, family.Use.TAKEN
    ).at(data.action)
    losses.append(
      agent._auxiliary.loss(
        agent._network,
        auxiliary.Batch(
          data.observation, data.action, predicted, predicted, tf.constant(step)
        ),
      )
    )
  np.testing.assert_array_equal(*losses)


@pytest.mark.parametrize(
  "make, message",
  [
    (
      lambda: family.make("dqn", munchausen=family.MUNCHAUSEN, double=True),
      "double = False .* got 1 and True",
    ),
    (
      lambda: family.make(
        "mmdqn", munchausen=family.MUNCHAUSEN, n_step_update=3
      ),
      "n_step_update = 1 .* got 3 and False",
    ),
    (
      lambda: family.make("mmdqn", samples=family.SAMPLES),
      "an implicit head is wanted",
    ),
    (
      lambda: family.make("qrdqn", agent_class=agents.C51Agent),
      r"C51Agent learns weights of fixed returns, got ReturnNetwork, whose head"
      r" gives particles that move; use .*heads.categorical\(51\)",
    ),
    *(
      (
        lambda agent=agent: family.make("c51", agent_class=agent),
        "Agent learns where particles lie, got ReturnNetwork, whose head gives"
        " weights of fixed returns; use ParticleNetwork",
      )
      for agent in (agents.MMDQNAgent, agents.QRDQNAgent)
    ),
    (
      lambda: family.make(
        "mmdqn", agent_class=agents.FQFAgent, fraction_optimizer=None
      ),
      "head that proposes fractions",
    ),
    (lambda: family.make("qrdqn", kappa=-1.0), "kappa must be at least 0"),
    (
      lambda: family.make("adversarial_mmdqn", knots=(1.0, 0.0)),
      "increasing knots",
    ),
    (lambda: agents.Munchausen(temperature=0.0), "temperature > 0"),
    (
      lambda: family.make("iqn", agent_class=agents.ImplicitMMDQNAgent),
      "wants stratified draws",
    ),
  ],
)
def test_bad_input_says_what_was_wanted(make, message):
  with pytest.raises(errors.UserError, match=message):
    make()
