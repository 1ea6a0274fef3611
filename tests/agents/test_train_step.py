"""A step in pieces, as one piece, and several in turn are the same."""

import functools

import agent_fixtures as fixtures
import family
import numpy as np
import pytest
import tensorflow as tf
from tf_agents.specs import tensor_spec

from tf_mmdrl.agents import compiling, sight
from tf_mmdrl.networks import ParticleNetwork, torsos
from tf_mmdrl.ops import convolution

_MODES = pytest.mark.parametrize("jit_compile", [False, True])
_K = 6


@functools.cache
def _made(jit_compile, **options):
  """An agent, what trains it K times, and its variables at first."""
  agent = family.make(
    "dqn", jit_compile=jit_compile, target_update_period=2, **options
  )
  in_turn = agent.train_in_turn(lambda kept: kept["batch"])
  train = tf.function(lambda batch, weights: in_turn({"batch": batch}, weights))
  return agent, train, [v.numpy() for v in agent.state_variables()]


def _fresh(jit_compile, **options):
  agent, train, initial = _made(jit_compile, **options)
  for variable, value in zip(agent.state_variables(), initial, strict=True):
    variable.assign(value)
  return agent, train


def _values(agent):
  return [np.array(variable) for variable in agent.state_variables()]


def _batches(growth=3.0):
  """[K, B, ...], with rewards that grow, so that the unit changes."""
  parts = []
  for k in range(_K):
    batch = fixtures.experience(seed=k)
    parts.append(batch._replace(reward=growth**k * batch.reward))
  return parts, tf.nest.map_structure(lambda *part: tf.stack(part), *parts)


_WEIGHTS = tf.constant(
  np.random.default_rng(1).uniform(size=[_K, 6]), "float32"
)


def _follows(agent):
  """Whether the target network is the online network."""
  nets = agent.return_network, agent._target_network
  pairs = zip(*(net.trainable_weights for net in nets), strict=True)
  return all(np.array_equal(one, other) for one, other in pairs)


@_MODES
def test_steps_in_turn_are_as_many_calls(jit_compile):
  parts, batches = _batches()
  agent, _ = _fresh(False, unit="auto")
  infos = [agent.train(*pair) for pair in zip(parts, _WEIGHTS)]
  wanted, unit = _values(agent), float(agent.unit)
  assert unit > 50 and agent.train_step_counter.numpy() == _K
  assert _follows(agent)  # since every second step
  agent, train = _fresh(jit_compile, unit="auto")
  found = train(batches, _WEIGHTS)
  assert float(agent.unit) == unit
  # As a graph to the bit.
  close = dict(rtol=1e-4, atol=1e-6) if jit_compile else dict(rtol=0, atol=0)
  for one, other in zip(_values(agent), wanted, strict=True):
    np.testing.assert_allclose(one, other, **close)
  losses = tf.nest.map_structure(lambda *part: tf.stack(part), *infos)
  for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(losses)):
    np.testing.assert_allclose(one, other, **close)


def test_a_single_step_as_one_piece_is_a_step():
  parts, _ = _batches()
  agent, _ = _fresh(False, unit="auto")
  wanted_info, wanted = agent.train(parts[0], _WEIGHTS[0]), _values(agent)
  agent, _ = _fresh(True, unit="auto")
  assert agent._train_step._is_one_piece()
  found_info = agent.train(parts[0], _WEIGHTS[0])
  for one, other in zip(_values(agent), wanted, strict=True):
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-6)
  np.testing.assert_allclose(found_info.loss, wanted_info.loss, rtol=1e-4)
  assert not _follows(agent)
  before = _values(agent)
  bad = parts[1]._replace(reward=np.nan * parts[1].reward)
  with pytest.raises(
    tf.errors.InvalidArgumentError, match="(?s)train step.*1.*rewards"
  ):
    agent.train(bad, _WEIGHTS[1])
  for variable, value in zip(agent.state_variables(), before, strict=True):
    if "average" not in variable.name and "batches" not in variable.name:
      np.testing.assert_array_equal(variable, value)


@_MODES
def test_xla_compiles_a_step_as_one_piece(jit_compile):
  """One step and several: that which changes weights is in XLA's hands."""
  agent, in_turn = _fresh(jit_compile)
  (batch, *_), batches = _batches()
  for train, *arguments in (
    (tf.function(agent.train), batch, _WEIGHTS[0]),
    (in_turn, batches, _WEIGHTS),
  ):
    graph = train.get_concrete_function(*arguments).graph.as_graph_def()
    compiled = [
      function
      for function in graph.library.function
      if function.attr["_XlaMustCompile"].b
    ]
    holds = ("AssignSubVariableOp", "AssignAddVariableOp", "Adam", "While")
    changing = [
      function
      for function in compiled
      if any(any(word in n.op for word in holds) for n in function.node_def)
    ]
    assert bool(changing) == jit_compile


@_MODES
def test_what_is_not_finite_stops_all_that_follow(jit_compile):
  parts, batches = _batches(growth=1.0)
  agent, _ = _fresh(False)
  for part in parts[:3]:
    agent.train(part)
  wanted = _values(agent)
  agent, train = _fresh(jit_compile)
  observation = batches.observation.numpy()
  observation[3, 0, 1] = np.inf
  bad = batches._replace(observation=tf.constant(observation))
  with pytest.raises(
    tf.errors.InvalidArgumentError,
    match="(?s)needs finite numbers.*train step.*3.*observations.*4",
  ):
    train(bad, tf.ones([_K, 6]))
  for variable, other in zip(agent.state_variables(), wanted, strict=True):
    if "average" not in variable.name and "batches" not in variable.name:
      np.testing.assert_allclose(variable, other, rtol=1e-4, atol=1e-6)
  train(batches, _WEIGHTS)  # it can go on
  assert agent.train_step_counter.numpy() == 3 + _K


@_MODES
def test_a_first_update_that_fails_copies_nothing(jit_compile):
  agent, train = _fresh(jit_compile)
  for weight in agent._target_network.trainable_weights:
    weight.assign(0.5 * weight)
  before = _values(agent)
  _, batches = _batches()
  bad = batches._replace(reward=np.nan * batches.reward)
  with pytest.raises(tf.errors.InvalidArgumentError, match="rewards"):
    train(bad, _WEIGHTS)
  for variable, value in zip(agent.state_variables(), before, strict=True):
    if "average" not in variable.name and "batches" not in variable.name:
      np.testing.assert_array_equal(variable, value)


@_MODES
@pytest.mark.parametrize(
  "scale, words",
  [(1e6, "warning: DQNAgent learns little"), (0.0, "note: DQNAgent has seen")],
)
def test_warnings_come_once_from_within(
  capfd, monkeypatch, jit_compile, scale, words
):
  monkeypatch.setattr(sight, "PERIOD", 2)
  # Its own agent: the period is compiled in.
  agent, train = _fresh(jit_compile, seed=7)
  _, batches = _batches(growth=1.0)
  batches = batches._replace(reward=scale * batches.reward)
  for _ in range(9):
    train(batches, tf.ones([_K, 6]))
  told = capfd.readouterr().err
  assert told.count(words) == 1
  # The sixteenth look is at the update after the thirtieth.
  assert "31" in told[told.index(words) :]


def test_replicas_take_steps_in_pieces():
  """They exchange gradients; also with an agent that was made before."""
  agent, _ = _fresh(True)
  assert agent._train_step._is_one_piece()
  with tf.distribute.OneDeviceStrategy("CPU:0").scope():
    assert not agent._train_step._is_one_piece()


def _pictures(shape, **options):
  spec = tensor_spec.BoundedTensorSpec(shape, tf.uint8, 0, 255)
  net = ParticleNetwork(spec, fixtures.ACTION, 5, **options)
  net.create_variables()
  return net


def test_what_is_compiled(monkeypatch):
  on_gpu = bool(tf.config.list_physical_devices("GPU"))
  small = fixtures.small_network()
  small.create_variables()
  minatar = _pictures([10, 10, 4], conv_layer_params=torsos.MINATAR_CONV)
  nature = _pictures([84, 84, 4], conv_layer_params=torsos.NATURE_CONV)
  own = _pictures(
    [4], preprocessing_layers=tf.keras.layers.Lambda(lambda x: x / 2)
  )
  table = fixtures.TableNetwork(fixtures.OBSERVATION, np.zeros([2, 3, 4]))
  whole = compiling.Plan(whole=True)
  pieces = compiling.Plan(networks=on_gpu, pieces=True)
  networks = compiling.Plan(networks=True, pieces=True)
  is_new = not tf.__version__.startswith("2.15")
  fastest = whole if is_new or on_gpu else pieces
  for has_onednn in (False, True):
    monkeypatch.setattr(convolution, "has_onednn", lambda h=has_onednn: h)
    for net, by_itself, wanted in [
      (small, fastest, whole),
      (minatar, fastest, whole),
      (nature, networks if is_new and not has_onednn else pieces, networks),
      (own, pieces, networks),
      (table, pieces, networks),
    ]:
      assert compiling.resolve(None, net) == by_itself
      assert compiling.resolve(True, net) == wanted
      assert compiling.resolve(False, net) == compiling.Plan()
  with tf.distribute.OneDeviceStrategy("CPU:0").scope():
    assert compiling.resolve(True, small) == networks
    assert compiling.resolve(None, small) == pieces
