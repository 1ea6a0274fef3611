import json

import pytest

from tf_mmdrl.cli import main
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import presets


def test_presets_are_listed(capsys):
  assert main.main(["presets"]) == 0
  lines = capsys.readouterr().out.splitlines()
  assert [line.split()[0] for line in lines] == list(presets.PRESETS)


@pytest.mark.parametrize("name", presets.PRESETS)
def test_a_preset_is_printed_in_full(name, capsys):
  assert main.main(["presets", name]) == 0
  lines = capsys.readouterr().out.splitlines()
  settings = [line.split()[0] for line in lines]
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


def test_absls_flags_may_come_before_the_command(capsys):
  assert main.main(["--verbosity", "1", "presets"]) == 0
  assert "quickstart" in capsys.readouterr().out
