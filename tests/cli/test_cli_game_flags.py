"""The flags that `mmdrl evaluate`, `play` and `watch` share."""

import argparse
import importlib
import types

import pytest

from tf_mmdrl.cli import evaluate_command, game_flags
from tf_mmdrl.core import errors
from tf_mmdrl.evaluation import evaluator
from tf_mmdrl.train import config as configs


def _parse(command, *flags):
  parser = argparse.ArgumentParser()
  module = importlib.import_module(f"tf_mmdrl.cli.{command}_command")
  module.add_arguments(parser)
  output = ["-o", "game.gif"] if command == "watch" else []
  return parser.parse_args(["there", *output, *flags])


def _policy(config):
  return types.SimpleNamespace(config=config)


@pytest.mark.parametrize("command", ["evaluate", "play", "watch"])
def test_all_three_take_the_same_flags(command):
  given = {
    "--version": "7",
    "--env": "MinAtar/Asterix",
    "--episodes": "3",
    "--epsilon": "0.25",
    "--seed": "5",
    "--score": "cvar:0.5",
  }
  args = _parse(command, *(part for pair in given.items() for part in pair))
  before = configs.Config().completed()
  config = game_flags.wanted(_policy(before), args)
  assert set(configs.differences(before, config)) == {
    'environment.name: "MinAtar/Breakout" -> "MinAtar/Asterix"',
    "evaluation.epsilon: 0.001 -> 0.25",
    'evaluation.score: "mean" -> "cvar:0.5"',
    "system.seed: 0 -> 5",
  }
  assert (args.version, int(args.episodes)) == (7, 3)


@pytest.mark.parametrize("command", ["evaluate", "play", "watch"])
def test_what_is_left_out_is_the_runs(command):
  config = configs.change(configs.Config(), ["system.seed=9"])
  assert game_flags.wanted(_policy(config), _parse(command)) == config


def test_a_policy_of_unknown_origin_needs_an_environment():
  with pytest.raises(errors.UserError, match="pass --env"):
    game_flags.wanted(_policy(None), _parse("evaluate"))
  args = _parse("evaluate", "--env", "CartPole-v1")
  config = game_flags.wanted(_policy(None), args)
  assert config.environment.name == "CartPole-v1"


@pytest.mark.parametrize(
  "scores, lines",
  [
    ([4.0], ["policy of step 7, 1 game", "score: 4.00", "steps: 3"]),
    (
      [1.0, 2.0, 6.0],  # variance 7 of a sample; sqrt(7 / 3) = 1.53
      [
        "policy of step 7, 3 games",
        "score: mean 3.00 +- 1.53 (standard error)",
        "       median 2.00",
        "       from 1.00 to 6.00",
        "steps: mean 3",
      ],
    ),
  ],
)
def test_scores_are_shown_with_their_error(scores, lines, capsys):
  """One game has none: +- 0.00 would say that all games are alike."""
  played = evaluator.Evaluation(scores, [3] * len(scores))
  evaluate_command._show(7, played)
  assert capsys.readouterr().out.splitlines() == lines
