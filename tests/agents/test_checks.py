"""What agents refuse when they are made, in one line that says why."""

import agent_fixtures as fixtures
import family
import pytest
import tensorflow as tf
from tf_agents.networks import sequential
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import agents
from tf_mmdrl.core import errors
from tf_mmdrl.networks import ReturnNetwork, heads, implicit_heads

_TIME_STEP, _ACTION = family.specs()
_SPARSE = tf.SparseTensorSpec([4], tf.float32)


def _network(head, **options):
  options = {"fc_layer_params": (8,), **options}
  return ReturnNetwork(_TIME_STEP.observation, _ACTION, head, **options)


def _adam():
  return tf.keras.optimizers.Adam(1e-3)


def _make(agent_class, net, **options):
  if agent_class is agents.FQFAgent:
    options["fraction_optimizer"] = _adam()
  time_step = options.pop("time_step_spec", _TIME_STEP)
  return agent_class(time_step, _ACTION, net, _adam(), **options)


def _message(agent_class, net, **options):
  with pytest.raises(errors.UserError) as info:
    _make(agent_class, net, **options)
  message = str(info.value)
  assert "\n" not in message and message.startswith(agent_class.__name__)
  return message


@pytest.mark.parametrize(
  "agent_class, online, target, found",
  [
    (
      agents.C51Agent,
      heads.categorical(11),
      heads.categorical(7),
      "got N = 7 particles where the network has N = 11 particles",
    ),
    (
      agents.C51Agent,
      heads.categorical(11),
      heads.categorical(11, -1.0, 1.0),
      "got atoms from -1.0 to 1.0 where the network has atoms from -10.0 to",
    ),
    (
      agents.MMDQNAgent,
      heads.particles(5),
      heads.particles(7),
      "got N = 7 particles where the network has N = 5 particles",
    ),
    (
      agents.MMDQNAgent,
      heads.weighted_particles(5),
      heads.categorical(5),
      "got atoms from -10.0 to 10.0 where the network has free particles",
    ),
    (
      agents.QRDQNAgent,
      heads.particles(5),
      heads.categorical(5),
      "got particles with a weight where the network has particles of equal",
    ),
    (
      agents.FQFAgent,
      implicit_heads.fractions(5),
      implicit_heads.fractions(7),
      "got N = 7 particles where the network has N = 5 particles",
    ),
  ],
)
def test_a_target_network_of_another_kind(agent_class, online, target, found):
  target = _network(target)
  message = _message(agent_class, _network(online), target_q_network=target)
  assert found in message and "leave the target network out" in message


@pytest.mark.parametrize(
  "options, found",
  [
    ({"dueling": True}, "got 9 variables where the network has 5 variables"),
    ({"fc_layer_params": (6,)}, "got the shapes (4, 6), (6,), (6, 15), (15,)"),
  ],
)
def test_a_target_network_of_other_layers(options, found):
  head = heads.particles(5)
  target = _network(head, **options)
  assert found in _message(
    agents.MMDQNAgent, _network(head), target_return_network=target
  )


def test_implicit_heads_may_differ_in_what_they_are_not_asked_for():
  online, target = (_network(implicit_heads.implicit(n)) for n in (8, 4))
  _make(agents.IQNAgent, online, target_return_network=target)


@pytest.mark.parametrize(
  "observation, splitter",
  [
    (_SPARSE, None),
    ({"state": _TIME_STEP.observation, "words": _SPARSE}, None),
    (
      {"state": _TIME_STEP.observation, "mask": _SPARSE},
      lambda o: (o["state"], o["mask"]),
    ),
    (tf.RaggedTensorSpec([None, 4], tf.float32), None),
  ],
)
@pytest.mark.parametrize("agent_class", [agents.MMDQNAgent, agents.QRDQNAgent])
def test_sparse_observations(agent_class, observation, splitter):
  message = _message(
    agent_class,
    _network(heads.particles(5)),
    time_step_spec=fixtures.TIME_STEP._replace(observation=observation),
    observation_and_action_constraint_splitter=splitter,
  )
  assert "dense tensors, got" in message and "not supported" in message


def test_sparse_observations_of_a_network_made_for_them():
  net = ReturnNetwork(_SPARSE, _ACTION, heads.particles(5))
  message = _message(
    agents.MMDQNAgent, net, time_step_spec=ts.time_step_spec(_SPARSE)
  )
  assert "got SparseTensorSpec" in message


def test_recurrent_networks():
  net = sequential.Sequential(
    [tf.keras.layers.LSTM(4, return_state=True, return_sequences=True)],
    input_spec=_TIME_STEP.observation,
  )
  message = _message(agents.MMDQNAgent, net)
  assert "got Sequential with 2 tensors of it" in message
