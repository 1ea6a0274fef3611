"""The same words go on with a run, whatever their defaults have become."""

import json

import pytest
import train_fixtures

from tf_mmdrl.cli import main
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import left_open, presets

# Nothing is learnt: where the run begins and goes on is what matters.
_WORDS = (
  "train --env CartPole-v1 --steps 192 --set schedule.learning_starts=192"
  " --set schedule.collect_steps=4 --set evaluation.episodes=2"
  " --set evaluation.num_envs=2 --set evaluation.period=192"
  " --set system.xla=off --set network.num_particles=5"
)


def _train(directory, *others):
  return main.main([*_WORDS.split(), *others, "--run-dir", str(directory)])


def _change_the_preset(monkeypatch):
  preset = presets.PRESETS["classic"]
  changed = configs.change(
    preset.config,
    ["agent.kernel=laplace:2", "agent.gamma=0.5", "network.num_particles=9"],
  )
  monkeypatch.setitem(
    presets.PRESETS, "classic", preset._replace(config=changed)
  )


def test_a_run_goes_on_though_its_presets_defaults_have_changed(
  tmp_path, monkeypatch, capfd
):
  run = tmp_path / "run"
  assert _train(run) == main.EXIT_OK
  before = json.loads((run / "config.json").read_text())
  _change_the_preset(monkeypatch)
  capfd.readouterr()

  assert _train(run) == main.EXIT_OK
  shown = capfd.readouterr().err
  (note,) = [line for line in shown.splitlines() if "keeps settings" in line]
  assert 'agent.gamma is 0.99 (by default 0.5); agent.kernel is "gaus' in note
  assert '(by default "laplace:2")' in note
  assert "num_particles" not in note  # typed, the same as then
  after = json.loads((run / "config.json").read_text())
  assert after["config"] == before["config"]

  # What is typed may conflict, and so may what was typed and is not now.
  assert _train(run, "--set", "agent.gamma=0.5") == main.EXIT_BAD_INPUT
  shown = capfd.readouterr().err
  assert "configuration: agent.gamma: 0.99 -> 0.5; give it" in shown
  less = _WORDS.rpartition(" --set")[0].split()
  assert main.main([*less, "--run-dir", str(run)]) == main.EXIT_BAD_INPUT
  assert "network.num_particles: 5 -> 9" in capfd.readouterr().err
  assert _train(run, "--preset", "minatar") == main.EXIT_BAD_INPUT
  assert "agent.n_step: 10 -> 3" in capfd.readouterr().err


@pytest.mark.parametrize(
  "changes, kept",
  [
    (["agent.gamma=0.5"], {"agent.gamma"}),
    (["agent.gamma=0.5", "schedule.steps=9000"], {"agent.gamma"}),
    (["schedule.steps=9000", "agent.double=true"], {"agent.double"}),
    (["agent.gamma=0.5", "system.seed=3"], set()),
    (["agent.gamma=0.5", "environment.name=Pong"], set()),
  ],
)
def test_a_run_of_before_has_no_words(changes, kept):
  """Then another seed or game is another run; its length may change."""
  before = train_fixtures.small().completed()
  now = configs.change(before, changes)
  words = left_open.Words("quickstart", [])
  told = []
  found = left_open.as_begun(before, now, None, words, told.append)
  changed = {line.split(":")[0] for line in configs.differences(now, found)}
  assert changed == kept
  assert len(told) == bool(kept)
  typed = left_open.Words(
    "quickstart", [text.split("=")[0] for text in changes]
  )
  assert left_open.as_begun(before, now, None, typed, told.append) == now


def test_a_length_that_was_not_typed_stays():
  before = train_fixtures.small().completed()
  now = configs.change(before, ["schedule.steps=9000"])
  words = left_open.Words("quickstart", ["agent.name"])
  found = left_open.as_begun(before, now, words, words, lambda text: None)
  assert found == before
  typed = left_open.Words("quickstart", ["schedule.steps"])
  for then, new in ((words, typed), (typed, words)):
    assert left_open.as_begun(before, now, then, new, lambda text: None) == now
