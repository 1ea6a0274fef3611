"""The scripts of `mmdrl completion`, in the shells that are here."""

import re
import shutil
import subprocess

import pytest

from tf_mmdrl import zoo
from tf_mmdrl.cli import completion_command, main


@pytest.fixture(scope="module")
def flags():
  return completion_command.every_flag()


def _shell(*command):
  if shutil.which(command[0]) is None:
    pytest.skip(f"no {command[0]}")
  done = subprocess.run(command, capture_output=True, text=True)
  assert done.returncode == 0 and not done.stderr, done.stderr
  return done.stdout.split("\n")[:-1]


_ASKED = [
  (["mmdrl", "tr"], ["train"]),
  (["mmdrl", "train", "--pre"], ["--preset"]),
  (["mmdrl", "train", "--agent", "iq"], ["iqn"]),
  (["mmdrl", "export", "x", "--format", ""], ["onnx", "tflite"]),
  (["mmdrl", "serve", "--max-b"], ["--max-batch", "--max-body"]),
  (["mmdrl", "watch", "zoo:cart"], ["zoo:cartpole"]),
  (["mmdrl", "watch", "zo"], [f"zoo:{name}" for name in zoo.entries()]),
]


@pytest.mark.parametrize("words, completed", _ASKED)
def test_bash(flags, words, completed, tmp_path):
  (tmp_path / "it").write_text(completion_command.bash(flags))
  # As bash itself does: a colon ends a word, and is one.
  parts = [part for word in words for part in re.split("(:)", word)]
  typed = " ".join(part or "''" for part in parts)
  code = (
    f"source {tmp_path / 'it'}; COMP_WORDS=({typed});"
    f" COMP_CWORD={len(parts) - 1}; COMP_LINE='{' '.join(words)}';"
    " COMP_POINT=${#COMP_LINE};"
    ' _mmdrl; printf "%s\\n" "${COMPREPLY[@]}"'
  )
  kept = words[-1].rpartition(":")[0]  # what stands before a colon stays
  assert [
    f"{kept}:{found}" if kept else found for found in _shell("bash", "-c", code)
  ] == completed


@pytest.mark.parametrize("words, completed", _ASKED)
def test_fish(flags, words, completed, tmp_path):
  (tmp_path / "it").write_text(completion_command.fish(flags))
  code = f"source {tmp_path / 'it'}; complete -C '{' '.join(words)}'"
  found = [line.partition("\t")[0] for line in _shell("fish", "-c", code)]
  assert sorted(found) == completed


def test_zsh(flags, tmp_path):
  """Its syntax; what it completes only a terminal shows."""
  (tmp_path / "it").write_text(completion_command.zsh(flags))
  code = (
    f"autoload -U compinit; compinit -u -d {tmp_path / 'dump'};"
    f" source {tmp_path / 'it'}; print $_comps[mmdrl]"
  )
  assert _shell("zsh", "-fc", code) == ["_mmdrl"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_command_prints_a_script(shell, capsys):
  assert main.main(["completion", shell]) == 0
  assert "Completes mmdrl in " + shell in capsys.readouterr().out
