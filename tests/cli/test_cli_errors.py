"""What a wrong word on the command line comes to, and how soon."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

from tf_mmdrl import __main__
from tf_mmdrl.cli import main, quiet

# Each with part of what it says; none of them needs TensorFlow.
_MISTAKES = {
  "trian": "unknown command 'trian'; did you mean 'train'?",
  "train --env Brekout": "did you mean 'Breakout'",
  "train --env MinAtar/Brekout": "unknown MinAtar game",
  "train --set environment.name=Brekout": "did you mean 'Breakout'",
  "train --env ale/Brekout": "unknown Atari game",
  "train --agent mmdqm": "did you mean 'mmdqn'",
  "train --preset papr": "did you mean 'paper'",
  "train --agent iqn --steps many": "must be a whole number, got 'many'",
  "train --set optimizer.lr=1": "did you mean 'optimizer.learning_rate'?",
  "train --set learning_rate=1": "did you mean 'optimizer.learning_rate'?",
  "inspect nowhere": "'nowhere' is not a run",
  "evaluate nowhere": "'nowhere' is not a run",
  "watch nowhere -o game.mp4": "'nowhere' is not a run",
  "watch . -o game.avi": "ends in .gif or .mp4",
  "export nowhere": "'nowhere' is not a run",
  "report nowhere -o out": "'nowhere' is not a directory",
  "calibrate nowhere": "'nowhere' is not a directory",
  "tensorboard nowhere": "'nowhere' is not a directory",
  "play nowhere": "there is no directory 'nowhere'",
  "serve nowhere": "there is no directory 'nowhere'",
  "sweep --agents mmdqm": "did you mean 'mmdqn'",
  "sweep --envs Nope": "unknown environment 'Nope'",
  "sweep --set agent.kernel=gausian": "it is a setting of mmdqn",
  "chain --kernel gausian:8": "did you mean 'gaussian'",
  "tune": "a search needs --search",
  "tune --search optimizer.lr=1..2": "did you mean 'optimizer.learning_rate'?",
  "tune --search agent.n_step=2..1": "wants LOW..HIGH with LOW below HIGH",
  "tune --search agent.n_step=0..1": "n_step must be at least 1, got 0",
  "tune --search agent.double=true": "wants two or more values, got 'true'",
  "tune --search agent.n_step=1..2 --env Nope": "unknown environment 'Nope'",
  "train --agent iqn --set agent.kernel=gaussian:1": "it is a setting of mmdqn",
  "train --set agent.kernel=gausian": "did you mean 'gaussian'",
  "train --set agent.kernel=gaussian:wide": "wants a number where 'wide'",
  "train --set agent.exploration=ucv:1": "did you mean 'ucb'",
  "train --set agent.exploration=ucb:-1": "beta must be at least 0, got -1.0",
  "train --set evaluation.score=cvar:2": "level must be in (0, 1], got 2.0",
  "train --set agent.unit=ato": "unit must be 'auto', 'auto:X'",
  "train --set agent.kernel=gaussian:-1": "bandwidths must be positive",
  "train --set agent.kernel=gaussian_mixture:5..1": "at least one value",
  "train --set agent.kernel=gaussian_geometric:8..1": "must go up, got 8..1",
  "train --set agent.kernel=unrectified:3": "alpha must lie in (0, 2], got 3.0",
  "train --set agent.kernel=-1*gaussian:1": "must be non-negative",
  "train --set agent.kernel=gaussian_median:0": "must be positive and finite",
  "train --set schedule.learning_starts=1": "must be at least 128, twice",
  "train --set system.actors=3": "a multiple of system.actors",
  "train --data nowhere --dry-run": "--data plays nothing; leave it out",
  "train --data nowhere": "there is no data set 'nowhere'",
  "train --data nowhere --env CartPole-v1": "there is no data set 'nowhere'",
  "ope --data nowhere --policy random": "there is no data set 'nowhere'",
  "ope --data nowhere --policy nowhere": "there is no policy 'nowhere'",
  "ope --data x --policy random --by men": "did you mean 'mean'?",
  "record nowhere -o data": "there is no policy 'nowhere'",
  "record zoo:cartpole -o data --epsilon 2": "epsilon must be at most 1",
  "evaluate zoo:cartpole --score cvr:1": "did you mean 'cvar'?",
  "evaluate zoo:cartpole --score cvar:0": "level must be in (0, 1], got 0.0",
  "evaluate zoo:cartpole --score thompson": "a score without draws, got 'thom",
  "play zoo:cartpole --score cpw:0.1": "eta must be in [0.3, 1], got 0.1",
  "ope --data x --policy random --score wang:inf": "eta must be finite, got",
  "evaluate zoo:cartpole --episodes 0": "episodes must be at least 1, got 0",
  "evaluate zoo:cartpole -o scores.txt": "scores end in .csv, got 'scores.txt'",
  "evaluate zoo:cartpole -o no/x.csv": "there is no directory 'no' for 'x.csv'",
  "watch zoo:cartpole -o no/game.gif": "there is no directory 'no'",
  "evaluate zoo:cartpole --version 3": "no version 3; there are",
  "evaluate run --version 3": "no version 3; there are 7",
  "evaluate fresh": "has no exported policy yet",
  "cluster join nowhere": "address is HOST:PORT, got 'nowhere'",
  "cluster status": "this machine is part of no cluster",
}
_FLAGS = {
  "train --sed 3": "mmdrl train: unknown flag --sed; did you mean --seed",
  "train --learning-rate=1": "mean --set optimizer.learning_rate=...?",
  "train --lr 1": "--lr; did you mean --set optimizer.learning_rate",
  "train --xyzzy": "unknown flag --xyzzy; see mmdrl train --help-all",
  "train twice": "mmdrl train: there is no place for 'twice'",
  "inspect --setings": "unknown flag --setings; did you mean --settings?",
  "watch --output=x": "required: RUN; see mmdrl watch --help",
  "export": "required: RUN; see mmdrl export --help",
  "export x --format onx": "invalid choice: 'onx'; did you mean 'onnx'?",
  "cluster strat": "invalid choice: 'strat'; did you mean 'start' or 'status'?",
  "cluster start --hst a": "start: unknown flag --hst; did you mean --host",
  "serve x --port many": "invalid int value: 'many'; see mmdrl serve --help",
  "--verbosity=1": "mmdrl: a command is wanted; see mmdrl --help",
  "--versoin": "mmdrl: unknown flag --versoin; did you mean --version?",
}


def test_mistakes_are_told_without_tensorflow(tmp_path):
  for name in ("run", "fresh"):
    _make_run(tmp_path / name)
  (tmp_path / "run" / "export" / "7").mkdir(parents=True)
  before = sorted(tmp_path.rglob("*"))
  code = (
    "import pathlib, sys; from tf_mmdrl.cli import main\n"
    # Whatever clusters this machine is part of.
    "from tf_mmdrl.cluster import connection\n"
    "connection._PLACE = pathlib.Path('none')\n"
    "for line in sys.argv[1:]:\n"
    "  assert main.main(line.split()) == 2, line\n"
    "  assert 'tensorflow' not in sys.modules, line"
  )
  done = subprocess.run(
    [sys.executable, "-c", code, *_MISTAKES],
    capture_output=True,
    text=True,
    cwd=tmp_path,
  )
  assert done.returncode == 0, done.stderr
  lines = done.stderr.splitlines()
  assert len(lines) == len(_MISTAKES)  # one each
  for line, message in zip(lines, _MISTAKES.values()):
    assert line.startswith("mmdrl: ") and message in line, line
  assert sorted(tmp_path.rglob("*")) == before  # and nothing is written


def _make_run(path, game="CartPole-v1"):
  """So much of a run as is read before TensorFlow is loaded."""
  groups = {
    "environment": {"name": game},
    "agent": {"name": "mmdqn"},
    "system": {"seed": 0},
  }
  path.mkdir()
  (path / "config.json").write_text(json.dumps({"config": groups}))


@pytest.mark.parametrize("line", _FLAGS)
def test_wrong_flags_are_one_line(line, capsys):
  with pytest.raises(SystemExit) as stop:
    main.main(line.split())
  assert stop.value.code == main.EXIT_BAD_INPUT
  error = capsys.readouterr().err
  assert _FLAGS[line] in error and error.count("\n") == 1


def test_an_interrupt_is_one_line_from_the_first_moment(monkeypatch, capsys):
  def interrupted(*_):
    raise KeyboardInterrupt

  monkeypatch.setattr(main, "load", interrupted)  # before any option is known
  assert main.main(["ls"]) == main.EXIT_INTERRUPTED
  assert capsys.readouterr().err == "mmdrl: interrupted\n"
  monkeypatch.setattr(main, "main", interrupted)
  assert __main__.main() == main.EXIT_INTERRUPTED
  assert capsys.readouterr().err == "mmdrl: interrupted\n"


@pytest.mark.parametrize("run", [main._outcome, lambda _: __main__.main()])
def test_an_interrupt_has_a_line_of_its_own_below_what_the_terminal_shows(
  monkeypatch, run
):
  def interrupted():
    raise KeyboardInterrupt

  monkeypatch.setattr(main, "main", interrupted)

  ours, terminal = os.openpty()
  with os.fdopen(terminal, "w") as stream:
    monkeypatch.setattr(sys, "stderr", stream)
    assert run(interrupted) == main.EXIT_INTERRUPTED
  said = b""
  while said.count(b"\n") < 2:  # it comes in parts
    said += os.read(ours, 100)
  assert said == b"\r\nmmdrl: interrupted\r\n"
  os.close(ours)


def test_without_a_word_help_is_shown(capsys):
  assert main.main([]) == main.EXIT_OK
  out = capsys.readouterr().out
  assert set(main.COMMANDS) <= set(out.split())
  everyday, _, others = out.partition("others:")
  assert "\n  train " in everyday and "theory" in others


@pytest.mark.parametrize(
  "line, module, extra",
  [
    ("train", "minatar", "minatar"),
    ("train --env LunarLander-v3", "Box2D", "box2d"),
    ("watch . -o game.mp4", "imageio", "plots"),
    ("watch zoo:minatar-breakout -o game.mp4", "minatar", "minatar"),
    ("evaluate zoo:minatar-breakout", "minatar", "minatar"),
    ("evaluate run", "minatar", "minatar"),
    ("play zoo:minatar-breakout", "minatar", "minatar"),
    ("record zoo:minatar-breakout -o data", "minatar", "minatar"),
    ("record zoo:cartpole -o data", "h5py", "offline"),
    ("serve zoo:minatar-breakout --games", "minatar", "minatar"),
    ("serve .", "orjson", "serve"),
    ("calibrate run", "minatar", "minatar"),
    ("sweep --envs CartPole-v1,MinAtar/Asterix", "minatar", "minatar"),
    ("sweep --envs CartPole-v1 --cluster a:1", "ray", "cluster"),
    ("tune --search agent.n_step=1..2", "optuna", "tune"),
    ("cluster start", "ray", "cluster"),
    ("cluster join a:1", "ray", "cluster"),
    ("chain -o out", "matplotlib", "plots"),
    ("theory -o out", "matplotlib", "plots"),
    ("report run -o out", "matplotlib", "report"),
    ("ope --data x --policy random", "matplotlib", "report"),
  ],
)
def test_a_missing_extra_is_told_first(
  line, module, extra, capsys, monkeypatch, tmp_path
):
  """Before TensorFlow is loaded, anything is made or a run is announced."""

  def load():
    raise AssertionError("TensorFlow is loaded")

  monkeypatch.setattr(quiet, "loading", load)
  for name in [
    name for name in sys.modules if name.partition(".")[0] == module
  ]:
    monkeypatch.setitem(sys.modules, name, None)
  monkeypatch.setitem(sys.modules, module, None)
  _make_run(tmp_path / "run", "MinAtar/Breakout")
  (tmp_path / "run" / "export" / "7").mkdir(parents=True)
  before = sorted(tmp_path.rglob("*"))
  monkeypatch.chdir(tmp_path)
  assert main.main(line.split()) == main.EXIT_BAD_INPUT
  said = capsys.readouterr()
  assert f"need {module}" in said.err and "is not installed" in said.err
  assert f"pip install 'tf-mmdrl[{extra}]'" in said.err
  assert ("GPL-3" in said.err) == (module == "minatar")
  assert not said.out and said.err.count("\n") == 1
  assert sorted(tmp_path.rglob("*")) == before


def _command(*words, **keywords):
  return subprocess.run(
    [sys.executable, "-m", "tf_mmdrl", *words],
    stderr=subprocess.PIPE,
    text=True,
    **keywords,
  )


@pytest.mark.skipif(
  not pathlib.Path("/dev/full").exists(), reason="a file that is full"
)
def test_an_output_without_room_is_told():
  with open("/dev/full", "w") as full:
    done = _command("presets", stdout=full)
  assert done.returncode == 2
  assert done.stderr.count("\n") == 1
  assert "No space left" in done.stderr and "room for what" in done.stderr


def test_who_reads_no_more_of_the_output_is_no_error():
  reading, writing = os.pipe()
  os.close(reading)
  with os.fdopen(writing, "w") as pipe:
    done = _command("presets", stdout=pipe)
  assert (done.returncode, done.stderr) == (0, "")


def test_what_the_system_refuses_is_one_line(capsys):
  def refuse():
    os.rmdir("/nowhere at all")

  assert main._outcome(refuse) == 2
  assert capsys.readouterr().err == (
    "mmdrl: the system refuses: No such file or directory: '/nowhere at all'\n"
  )


def test_names_that_cannot_be_printed_are_printed_otherwise(tmp_path):
  odd = os.fsencode(tmp_path) + b"/run-\xff"
  os.mkdir(odd)
  with open(odd + b"/config.json", "w") as file:
    file.write("{}")
  done = _command(
    "ls",
    os.fsdecode(odd),
    stdout=subprocess.PIPE,
    env={**os.environ, "PYTHONIOENCODING": "utf-8:strict"},
  )
  assert "Traceback" not in done.stderr
  assert "run-" in done.stdout + done.stderr


@pytest.mark.parametrize("columns", ["0", "1", "2", "30"])
def test_help_needs_no_wide_terminal(capsys, monkeypatch, columns):
  monkeypatch.setenv("COLUMNS", columns)
  with pytest.raises(SystemExit) as ended:
    main.main(["train", "--help"])
  assert ended.value.code == 0
  assert "usage: mmdrl train" in capsys.readouterr().out
