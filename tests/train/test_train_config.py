import dataclasses
import json
import re

import pytest

from tf_mmdrl.core import algorithms, errors
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import presets


@pytest.mark.parametrize("name", presets.PRESETS)
def test_json_gives_a_preset_back(name):
  config = presets.get(name)
  text = json.dumps(configs.to_json(config))
  assert configs.from_json(json.loads(text)) == config


@pytest.mark.parametrize("name", presets.PRESETS)
def test_every_setting_of_a_preset_can_be_set_from_its_text(name):
  config = presets.get(name).completed()
  texts = [f"{field}={value}" for field, value in configs.fields(config)]
  assert configs.change(configs.Config(), texts) == config


def test_a_change_reaches_its_field_in_its_type():
  changed = configs.change(
    configs.Config(),
    ["schedule.steps=2e5", "agent.double=yes", "optimizer.epsilon=1e-3"],
  )
  assert changed.schedule.steps == 200_000
  assert type(changed.schedule.steps) is int
  assert changed.agent.double is True
  assert configs.differences(configs.Config().completed(), changed) == [
    "agent.double: false -> true",
    "optimizer.epsilon: 0.00015 -> 0.001",
    "schedule.steps: 1000000 -> 200000",
  ]


def test_large_seeds_keep_all_their_digits():
  changed = configs.change(configs.Config(), ["system.seed=9007199254740993"])
  assert changed.system.seed == 9007199254740993


@pytest.mark.parametrize(
  "text, message",
  [
    ("schedule.stepss=3", "did you mean 'schedule.steps'"),
    ("stepss", "group.field=value"),
    ("schedule.steps=many", "steps must be a whole number, got 'many'"),
    ("schedule.steps=1.5", "steps must be a whole number, got '1.5'"),
    ("schedule.steps=inf", "steps must be a whole number, got 'inf'"),
    ("schedule.steps=0", "steps must be at least 1, got 0"),
    ("agent.gamma=1.1", "gamma must be at most 1, got 1.1"),
    ("agent.gamma=nan", "gamma must be a number, got 'nan'"),
    ("agent.double=perhaps", "double must be true or false, got 'perhaps'"),
    ("optimizer.learning_rate=0", "learning_rate must be above 0, got 0.0"),
    ("optimizer.learning_rate=inf", "learning_rate must be finite"),
    ("network.torso=natur", "did you mean 'nature'"),
    ("environment.num_envs=3", "multiple of schedule.steps_per_update"),
    ("schedule.learning_starts=1", "learning_starts must be at least 32"),
    ("replay.capacity=10", "capacity must be at least 32"),
  ],
)
def test_bad_settings_say_what_is_wrong(text, message):
  with pytest.raises(errors.UserError, match=message):
    configs.change(configs.Config(), [text])


def test_settings_that_fit_only_together_are_taken_together():
  changed = configs.change(
    configs.Config(), ["environment.num_envs=3", "schedule.steps_per_update=1"]
  )
  assert changed.round_updates == 3


def test_a_setting_that_a_run_was_made_before_has_its_default():
  content = configs.to_json(configs.Config())
  del content["agent"]["gamma"]
  config = configs.from_json(content)
  assert config == configs.Config()
  assert configs.missing(content, config) == ["agent.gamma"]


def test_configurations_of_0_1_are_read():
  """They had every algorithm's own settings, all at once."""
  content = configs.to_json(configs.Config().completed())
  content["agent"].update(name="iqn", kappa=0.5, v_min=-10.0, knots="")
  content["network"]["embedding"] = 32
  config = configs.from_json(content)
  assert config.own == {"kappa": 0.5, "embedding": 32}
  assert config.completed().own["choice_particles"] == 32


def test_unknown_settings_of_a_run_are_named():
  content = configs.to_json(configs.Config())
  content["schedule"]["stepss"] = 1
  with pytest.raises(errors.UserError, match="did you mean 'schedule.steps'"):
    configs.from_json(content)
  content = configs.to_json(configs.Config())
  content["agent"]["gama"] = 1
  with pytest.raises(errors.UserError, match="did you mean 'agent.gamma'"):
    configs.from_json(content).completed()


def test_settings_belong_to_their_algorithm():
  config = configs.change(presets.get("paper"), ["agent.name=qrdqn"])
  assert config.own == {"kappa": 1.0}  # not the preset's kernel
  with pytest.raises(errors.UserError) as info:
    configs.change(config, ["agent.kernel=gaussian:1"])
  assert str(info.value) == (
    "unknown setting of qrdqn 'agent.kernel'; it is a setting of mmdqn,"
    " implicit_mmdqn, weighted_mmdqn, adversarial_mmdqn, rainbow_mmdqn,"
    " joint_mmdqn: leave it out, or choose one of these agents"
  )
  with pytest.raises(errors.UserError, match="did you mean 'agent.kappa'"):
    configs.change(config, ["agent.kapa=1"])
  with pytest.raises(errors.UserError, match="kappa must be at least 0"):
    configs.change(config, ["agent.kappa=-1"])


def _every_help_line():
  lines = dict(configs.help_lines(configs.Config()))
  for name in algorithms.names():
    for field in dataclasses.fields(algorithms.get(name).settings):
      lines[f"{name}: agent.{field.name}"] = field.metadata["help"]
  return lines


def test_help_lines_stand_alone():
  """They are read one by one: none goes on from the line above it."""
  leaning = re.compile(r"^(of|and|or|such|that|those|it|its|as)\b|\bthat map")
  for name, line in _every_help_line().items():
    assert len(line.split()) >= 5, f"{name}: {line}"
    assert not leaning.search(line), f"{name}: {line}"


def test_schedules_over_the_run_end_with_its_updates():
  config = presets.get("minatar")
  changed = configs.change(config, ["schedule.steps=10000"])
  assert changed.num_updates == (10_000 - 5_000) // 4
  assert configs.change(config, ["schedule.steps=10"]).num_updates == 1


def test_configurations_are_frozen():
  with pytest.raises(dataclasses.FrozenInstanceError):
    configs.Config().agent.gamma = 0.5  # type: ignore[misc]


def test_the_paper_preset_follows_the_paper():
  paper = presets.get("paper")
  assert paper.optimizer.learning_rate == 0.00005
  assert paper.optimizer.epsilon == 0.0003125
  assert paper.network.num_particles == 200
  assert paper.network.padding == "same"
  assert paper.schedule.steps == 200 * 250_000
  assert paper.round_updates == 1 and paper.round_steps == 4
  assert not paper.agent.double and paper.agent.n_step == 1


def test_the_paper_is_what_mmdqn_published():
  assert presets.get("published", "mmdqn") == presets.get("paper")
  assert presets.get("published") == presets.get("paper")


# The papers' hyperparameters, by hand, from the public configurations that
# docs/algorithms/README.md names: learning rate, Adam's epsilon, particles,
# frames before learning, frames between targets, last epsilon, epsilon of
# evaluation, n of n-step returns.
_PUBLISHED = {
  "c51": (0.00025, 0.0003125, 51, 200_000, 40_000, 0.01, 0.001, 1),
  # RMSProp's 0.01 as Adam's epsilon: sqrt(0.01) / 32.
  "dqn": (0.00025, 0.003125, 1, 200_000, 40_000, 0.1, 0.05, 1),
  "double_dqn": (0.00025, 0.003125, 1, 200_000, 40_000, 0.1, 0.05, 1),
  "fqf": (0.00005, 0.0003125, 32, 200_000, 40_000, 0.01, 0.001, 1),
  "iqn": (0.00005, 0.0003125, 64, 200_000, 40_000, 0.01, 0.001, 1),
  "mmdqn": (0.00005, 0.0003125, 200, 200_000, 40_000, 0.01, 0.001, 1),
  "qrdqn": (0.00005, 0.0003125, 200, 200_000, 40_000, 0.01, 0.001, 1),
  "rainbow": (0.0000625, 0.00015, 51, 80_000, 32_000, 0.0, 0.0, 3),
}


@pytest.mark.parametrize("name", _PUBLISHED)
def test_published_hyperparameters_are_those_of_public_configurations(name):
  config = presets.get("published", name)
  schedule, optimizer = config.schedule, config.optimizer
  found = (
    optimizer.learning_rate,
    optimizer.epsilon,
    config.network.num_particles,
    4 * schedule.learning_starts,
    4 * schedule.target_period,
    schedule.epsilon_end,
    config.evaluation.epsilon,
    config.agent.n_step,
  )
  assert found == _PUBLISHED[name]
  assert config.agent.name == name and config.agent.unit == "1"
  assert config.replay.capacity == 1_000_000
  assert (schedule.batch_size, schedule.steps_per_update) == (32, 4)
  assert 4 * schedule.steps == 200_000_000


def test_those_with_published_hyperparameters_are_known():
  assert sorted(algorithms.published_names()) == sorted(_PUBLISHED)


def test_published_hyperparameters_win_over_what_choosing_the_agent_makes():
  rainbow = presets.get("published", "rainbow")
  assert rainbow.network.noisy and rainbow.replay.prioritized
  assert rainbow.network.noise == 0.5
  # Elsewhere choosing the agent changes the preset, as it did.
  assert presets.get("minatar", "dqn").network.num_particles == 1


def test_an_unknown_preset_offers_the_nearest():
  with pytest.raises(errors.UserError, match="did you mean 'paper'"):
    presets.get("papr")
