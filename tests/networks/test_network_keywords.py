"""The keywords of TF-Agents' networks, and what answers to each."""

import inspect
import pathlib

import pytest
import tensorflow as tf
from tf_agents.networks import categorical_q_network, q_network, q_rnn_network
from tf_agents.specs import tensor_spec

from tf_mmdrl.core import arguments, errors
from tf_mmdrl.networks import (
  ParticleNetwork,
  ReturnNetwork,
  heads,
  return_network,
)

_ROOT = pathlib.Path(__file__).parents[2]
_PAGE = (_ROOT / "docs" / "from_tf_agents.md").read_text()
_SPECS = (
  tf.TensorSpec([4], tf.float32),
  tensor_spec.BoundedTensorSpec([], tf.int32, 0, 2),
)


def _message(make, *args, **options):
  with pytest.raises(arguments.KeywordError) as info:
    make(*_SPECS, *args, **options)
  assert isinstance(info.value, errors.UserError)
  assert isinstance(info.value, TypeError)
  assert "\n" not in str(info.value)
  return str(info.value)


@pytest.mark.parametrize(
  "theirs",
  [
    categorical_q_network.CategoricalQNetwork,
    q_network.QNetwork,
    q_rnn_network.QRnnNetwork,
  ],
)
def test_every_keyword_of_tf_agents_has_an_answer(theirs):
  taken = set(inspect.signature(ParticleNetwork.__init__).parameters)
  taken |= set(inspect.signature(ReturnNetwork.__init__).parameters)
  for name in set(inspect.signature(theirs.__init__).parameters) - taken:
    message = _message(ParticleNetwork, **{name: None})
    assert message.startswith(f"ParticleNetwork takes no {name}: ")
    assert return_network.REPLACED[name] in message
    assert theirs is q_rnn_network.QRnnNetwork or f"`{name}`" in _PAGE


@pytest.mark.parametrize(
  "keyword, advice",
  [
    ("num_atoms", "num_particles=200"),
    ("num_atom", "num_particles=200"),  # a slip
    ("activation_fn", "use activation"),
    ("kernel_initializer", "use make_initializer"),
    ("lstm_size", "recurrent networks are not supported"),
  ],
)
def test_a_keyword_without_meaning_says_what_replaces_it(keyword, advice):
  assert advice in _message(ParticleNetwork, **{keyword: 51})
  message = _message(ReturnNetwork, heads.particles(5), **{keyword: 51})
  assert message.startswith(f"ReturnNetwork takes no {keyword}: ")


def test_a_head_that_is_missing():
  assert "heads.categorical(51)" in _message(ReturnNetwork, num_atoms=51)
  assert "needs a head, got none" in _message(ReturnNetwork)


@pytest.mark.parametrize(
  "keyword, near",
  [("num_particle", "num_particles"), ("activaton", "activation")],
)
def test_a_misspelt_keyword_says_the_nearest_one(keyword, near):
  wanted = f"unknown keyword of ParticleNetwork {keyword!r}; did you mean"
  message = _message(ParticleNetwork, **{keyword: 5})
  assert message.startswith(f"{wanted} {near!r}")


def test_the_page_quotes_what_is_said():
  message = _message(ParticleNetwork, activation_fn=tf.nn.relu)
  assert f"\n{message}\n" in _PAGE


def test_copies_of_copies_keep_their_options():
  net = ParticleNetwork(*_SPECS, 5, fc_layer_params=(7,), name="one")
  copy = net.copy(name="two").copy(fc_layer_params=(9,), name="three")
  copy.create_variables()
  assert copy.name == "three" and copy.num_particles == 5
  assert copy.variables[0].shape == [4, 9]
  head = heads.categorical(5)
  copy = ReturnNetwork(*_SPECS, head, dueling=True).copy().copy()
  copy.create_variables()
  assert copy.head.support == (-10.0, 10.0) and len(copy.variables) == 9
