import argparse
import json

import pytest

from tf_mmdrl.cli import main, train_command
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import presets


def test_presets_are_listed(capsys):
  assert main.main(["presets"]) == 0
  lines = capsys.readouterr().out.splitlines()
  names = [line.split()[0] for line in lines if line[0] != " "]
  assert names == list(presets.PRESETS)


@pytest.mark.parametrize("columns", [80, 160])
@pytest.mark.parametrize("name", presets.PRESETS)
def test_a_preset_is_printed_in_full(name, columns, capsys, monkeypatch):
  monkeypatch.setenv("COLUMNS", str(columns))
  assert main.main(["presets", name]) == 0
  lines = capsys.readouterr().out.splitlines()
  assert columns > 80 or max(map(len, lines)) <= columns
  settings = [line.split()[0] for line in lines if not line.startswith("#")]
  wanted = presets.get(name).completed()
  assert configs.change(configs.Config(), settings) == wanted


def test_a_preset_as_json_is_a_configuration(capsys):
  assert main.main(["presets", "minatar", "--json"]) == 0
  content = json.loads(capsys.readouterr().out)
  assert configs.from_json(content) == presets.get("minatar").completed()


def test_a_misspelt_preset_is_one_line(capsys):
  assert main.main(["presets", "papr"]) == main.EXIT_BAD_INPUT
  error = capsys.readouterr().err
  assert error == "mmdrl: unknown preset 'papr'; did you mean 'paper'?\n"


def test_the_published_preset_is_the_agents_own(capsys):
  assert main.main(["presets", "published", "--agent", "rainbow"]) == 0
  settings = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
  assert "agent.name=rainbow" in settings
  assert "schedule.learning_starts=20000" in settings  # 80k frames
  assert main.main(["presets", "published"]) == 0
  last = capsys.readouterr().out.replace("\n# ", " ")
  assert last.endswith(
    " these are mmdqn's; --agent takes dqn, double_dqn, c51, qrdqn, iqn, fqf,"
    " rainbow, mmdqn\n"
  )


@pytest.mark.parametrize("preset", ["published", "minatar"])
def test_set_agent_name_is_agent(preset):
  """It brings the algorithm's own hyperparameters, not those of mmdqn."""
  parser = argparse.ArgumentParser()
  train_command.add_arguments(parser)
  lines = (
    ["--agent", "rainbow"],
    ["--set", "agent.name=rainbow"],
    [
      "--agent",
      "dqn",
      "--set",
      "agent.name=c51",
      "--set",
      "agent.name=rainbow",
    ],
  )
  found = [
    train_command.wanted(parser.parse_args(["--preset", preset, *line]))
    for line in lines
  ]
  assert found[0] == found[1] == found[2]
  assert found[0][1].network.noisy
  own = ["--preset", preset, "--set", "agent.name=rainbow"]
  changed = parser.parse_args([*own, "--set", "network.noisy=false"])
  assert not train_command.wanted(changed)[1].network.noisy


def test_agents_show_what_their_paper_published(capsys):
  assert main.main(["agents", "iqn"]) == 0
  out = capsys.readouterr().out
  assert "--preset published --agent iqn:\n" in out
  assert "\n       optimizer.learning_rate=5e-05\n" in out
  assert main.main(["agents", "weighted_mmdqn"]) == 0
  assert "published" not in capsys.readouterr().out


@pytest.mark.parametrize(
  "command", ["presets published", "train --preset published"]
)
def test_agents_without_published_hyperparameters_are_refused(command, capsys):
  arguments = [*command.split(), "--agent", "weighted_mmdqn"]
  assert main.main(arguments) == main.EXIT_BAD_INPUT
  assert capsys.readouterr().err == (
    "mmdrl: weighted_mmdqn has no published Atari hyperparameters, which preset"
    " 'published' takes; these have: dqn, double_dqn, c51, qrdqn, iqn, fqf,"
    " rainbow, mmdqn\n"
  )


def test_absls_flags_may_come_before_the_command(capsys):
  assert main.main(["--verbosity", "1", "presets"]) == 0
  assert "quickstart" in capsys.readouterr().out
