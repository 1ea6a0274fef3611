"""The names that a TF-Agents script uses, and what answers to each."""

import inspect
import pathlib

import family
import pytest
import tensorflow as tf
from tf_agents.agents.categorical_dqn import categorical_dqn_agent
from tf_agents.agents.dqn import dqn_agent
from tf_agents.networks import categorical_q_network, q_network

from tf_mmdrl import agents
from tf_mmdrl.agents import keywords
from tf_mmdrl.core import errors
from tf_mmdrl.networks import ReturnNetwork

_ROOT = pathlib.Path(__file__).parents[2]
_PAGE = (_ROOT / "docs" / "from_tf_agents.md").read_text()
_TIME_STEP, _ACTION = family.specs()
# A subclass that spells its arguments out, one that takes none of its own, two
# that pass them on, and those that need another optimizer.
_NAMES = ["mmdqn", "c51", "qrdqn", "iqn", "fqf", "adversarial_mmdqn", "dqn"]
_FAMILY = pytest.mark.parametrize("name", _NAMES)
_ONLINE = [k for k, v in keywords.ALIASES.items() if v == "return_network"]
_TARGET = [k for k in keywords.ALIASES if k not in _ONLINE]


def _network(name):
  head = family.FAMILY[name].head
  return ReturnNetwork(
    _TIME_STEP.observation, _ACTION, head, fc_layer_params=(8,)
  )


def _make(name, *args, **options):
  """An agent of that name from arguments that are as they came."""
  agent_class = family.FAMILY[name].agent
  needed = dict(family.FAMILY[name].options)
  if agent_class is agents.FQFAgent:
    needed["fraction_optimizer"] = tf.keras.optimizers.RMSprop(1e-4)
  if agent_class is agents.AdversarialMMDQNAgent:
    needed["kernel_optimizer"] = tf.keras.optimizers.Adam(1e-2)
  return agent_class(_TIME_STEP, _ACTION, *args, **{**needed, **options})


def _class_name(name):
  return family.FAMILY[name].agent.__name__


def _adam():
  return tf.keras.optimizers.Adam(1e-3)


@pytest.mark.parametrize("keyword", ["return_network", *_ONLINE])
@_FAMILY
def test_every_name_of_the_network_is_taken(name, keyword):
  net = _network(name)
  agent = _make(name, optimizer=_adam(), **{keyword: net})
  assert agent.return_network is net


@pytest.mark.parametrize("keyword", ["target_return_network", *_TARGET])
def test_every_name_of_the_target_network_is_taken(keyword):
  target = _network("mmdqn")
  agent = _make("mmdqn", _network("mmdqn"), _adam(), **{keyword: target})
  assert agent._target_network is target


def test_a_name_with_nothing_in_it_is_as_good_as_left_out():
  agent = _make("mmdqn", _network("mmdqn"), _adam(), target_q_network=None)
  assert agent._target_network is not agent.return_network


@pytest.mark.parametrize(
  "theirs", [dqn_agent.DqnAgent, categorical_dqn_agent.CategoricalDqnAgent]
)
def test_every_keyword_of_tf_agents_has_an_answer(theirs):
  known = keywords.accepted(agents.MMDQNAgent) | set(keywords.REPLACED)
  names = set(inspect.signature(theirs.__init__).parameters) - {"self"}
  assert not names - known
  for name in names:
    assert f"`{name}`" in _PAGE  # the page's table has it too


def test_a_keyword_is_taken_or_replaced():
  for name in _NAMES:
    taken = keywords.accepted(family.FAMILY[name].agent)
    assert not taken & set(keywords.REPLACED)


@pytest.mark.parametrize(
  "keyword, advice",
  [
    ("td_errors_loss_fn", "the loss is the algorithm's own; leave it out"),
    ("min_q_value", "the agent finds their unit itself; leave it out"),
    ("max_q_value", r"heads.categorical\(51, v_min, v_max\)"),
    ("num_atoms", "belongs to the network; use .*Network"),
    ("num_quantiles", "belongs to the network; use .*Network"),
    ("fc_layer_params", "belongs to the network; use .*Network"),
    ("learning_rate", "belongs to the optimizer; use"),
    ("batch_size", "belongs to the replay buffer; use"),
    ("td_error_loss_fn", "the loss is the algorithm's own"),  # a slip
  ],
)
@_FAMILY
def test_a_keyword_without_meaning_says_what_replaces_it(name, keyword, advice):
  wanted = f"{_class_name(name)} takes no {keyword}: .*{advice}"
  with pytest.raises(keywords.KeywordError, match=wanted):
    _make(name, _network(name), _adam(), **{keyword: 51})


@pytest.mark.parametrize("keyword", sorted(keywords.REPLACED))
def test_every_replacement_is_a_sentence_about_the_class(keyword):
  with pytest.raises(keywords.KeywordError) as info:
    _make("c51", _network("c51"), _adam(), **{keyword: 51})
  assert "{" not in str(info.value)
  assert str(info.value).startswith(f"C51Agent takes no {keyword}: ")


@_FAMILY
def test_a_misspelt_keyword_says_the_nearest_one(name):
  wanted = f"unknown keyword of {_class_name(name)} 'epsilon_gredy'; did you"
  with pytest.raises(keywords.KeywordError, match=f"{wanted}.*epsilon_greedy"):
    _make(name, _network(name), _adam(), epsilon_gredy=0.1)


def test_a_subclass_keyword_is_known_by_its_class_alone():
  assert "kernel" in keywords.accepted(agents.MMDQNAgent)
  assert "kernel" not in keywords.accepted(agents.QRDQNAgent)
  assert "policy" not in keywords.accepted(agents.MMDQNAgent)  # TFAgent's
  with pytest.raises(keywords.KeywordError, match="did you mean 'kappa'"):
    _make("qrdqn", _network("qrdqn"), _adam(), kapa=0.0)


@pytest.mark.parametrize(
  "args, options, found",
  [
    (1, ["q_network"], "return_network and q_network"),
    (0, _ONLINE[:2], "q_network and categorical_q_network"),
  ],
)
def test_a_network_given_twice(args, options, found):
  given = {name: _network("mmdqn") for name in options}
  with pytest.raises(
    keywords.KeywordError,
    match=f"MMDQNAgent takes one return_network, got 2: {found} are names",
  ):
    _make("mmdqn", *[_network("mmdqn")] * args, optimizer=_adam(), **given)


@_FAMILY
def test_what_is_missing_is_named(name):
  with pytest.raises(
    keywords.KeywordError,
    match=f"{_class_name(name)} needs a network, got none; pass return_network",
  ):
    _make(name, optimizer=_adam())
  with pytest.raises(
    keywords.KeywordError,
    match=f"{_class_name(name)} needs an optimizer, got none; pass optimizer",
  ):
    _make(name, q_network=_network(name))


def test_errors_are_those_of_users_and_of_python():
  with pytest.raises(errors.UserError):
    _make("mmdqn", _network("mmdqn"), _adam(), num_atoms=51)
  with pytest.raises(TypeError):
    _make("mmdqn", _network("mmdqn"), _adam(), num_atoms=51)


@pytest.mark.parametrize(
  "make, gives",
  [
    (categorical_q_network.CategoricalQNetwork, "logits of C51's atoms"),
    (q_network.QNetwork, "one number for each action"),
  ],
)
@pytest.mark.parametrize(
  "name, use",
  [
    ("mmdqn", r"ParticleNetwork\(..., num_particles=200\)"),
    ("dqn", r"ParticleNetwork\(..., num_particles=1\)"),
    ("c51", r"ReturnNetwork\(..., heads.categorical\(51\)\)"),
    ("iqn", r"ReturnNetwork\(..., implicit_heads.implicit\(32\)\)"),
    ("fqf", r"ReturnNetwork\(..., implicit_heads.fractions\(32\)\)"),
  ],
)
def test_networks_of_tf_agents_own_say_which_to_use(name, use, make, gives):
  theirs = make(_TIME_STEP.observation, _ACTION)
  wanted = f"{_class_name(name)} wants .* got {make.__name__}, which gives"
  with pytest.raises(errors.UserError, match=f"{wanted} {gives}; use {use}"):
    _make(name, categorical_q_network=theirs, optimizer=_adam())
  with pytest.raises(errors.UserError, match=wanted):
    _make(name, _network(name), _adam(), target_q_network=theirs)


def test_what_is_no_network_at_all():
  with pytest.raises(errors.UserError, match="got Adam, which is no tf_agents"):
    _make("mmdqn", _adam(), _network("mmdqn"))  # the wrong way round


def test_fqf_checks_its_head_under_every_name():
  with pytest.raises(errors.UserError, match="head that proposes fractions"):
    _make("fqf", q_network=_network("mmdqn"), optimizer=_adam())


@pytest.mark.parametrize(
  "options", [{"td_errors_loss_fn": None}, {"epsilon_gredy": 0.1}]
)
def test_the_page_quotes_what_is_said(options):
  with pytest.raises(keywords.KeywordError) as info:
    _make("mmdqn", _network("mmdqn"), _adam(), **options)
  assert f"\n{info.value}\n" in _PAGE
