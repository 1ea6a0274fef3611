"""Games beside the return distribution of each action, as a video."""

import collections
import io
import os
import pathlib
import tempfile
from typing import Any, Callable, Deque, Dict, Iterator, List

import numpy as np
import tensorflow as tf
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import environments
from tf_mmdrl.core import full_disk, whole_files
from tf_mmdrl.environments import atari, minatar
from tf_mmdrl.evaluation.evaluator import Turn
from tf_mmdrl.report import return_histograms
from tf_mmdrl.report.return_histograms import Moment
from tf_mmdrl.train import factories, playing
from tf_mmdrl.train.config import Config
from tf_mmdrl.train.playing import ExportedPolicy

_FRAMES_PER_SECOND = 15
_GLIMPSE_AFTER = 30  # steps, when most games are under way

# What Gymnasium's own tasks call their actions in their documentation.
_ACTIONS = {
  "CartPole-v1": ("left", "right"),
  "MountainCar-v0": ("left", "nothing", "right"),
  "Acrobot-v1": ("torque -1", "nothing", "torque 1"),
  "LunarLander-v3": ("nothing", "left engine", "main engine", "right engine"),
  "deep-sea-treasure-v0": ("up", "down", "left", "right"),
}


class Glimpse:
  """Three consecutive observations of a game that is being evaluated."""

  def __init__(self):
    self._seen: Deque[np.ndarray] = collections.deque(
      maxlen=return_histograms.CONSECUTIVE
    )
    self._steps = 0
    self._over = False

  def add(self, time_step: ts.TimeStep) -> None:
    """Looks at the first environment, until its game ends or goes well on."""
    if self._over:
      return
    self._seen.append(np.array(time_step.observation[0]))
    self._steps += 1
    self._over = self._steps >= _GLIMPSE_AFTER or bool(time_step.is_last()[0])

  def observations(self) -> np.ndarray:
    """[up to 3, ...], the oldest first."""
    return np.stack(self._seen)


def play(
  policy: ExportedPolicy, config: Config, episodes: int, max_steps: int
) -> Iterator[Moment]:
  """Plays games one after another.

  Args:
    policy: who plays.
    config: what to play, and how.
    episodes: games to play.
    max_steps: where to stop, over all games.

  Yields:
    A moment for each step.
  """
  single = config.replace(evaluation=dict(num_envs=1))
  environment = factories.environment(
    single, evaluation=True, **rendering(single)
  )
  try:
    evaluator = playing.evaluator(policy, single, environment)
    score, games, shown = 0.0, 0, 0
    for turn in evaluator.turns(policy.number):
      score += float(np.sum(turn.reward[0]))
      if turn.time_step.is_last()[0]:
        games, score = games + 1, 0.0
      if games == episodes or shown == max_steps:
        return
      if not turn.time_step.is_last()[0]:
        yield _moment(policy, environment, turn, score)
        shown += 1
  finally:
    environment.close()


def _moment(
  policy: ExportedPolicy,
  environment: Any,
  turn: Turn,
  score: float,
) -> Moment:
  observation = turn.time_step.observation
  returns = policy.returns(tf.convert_to_tensor(observation))
  return Moment(
    picture(environment, observation),
    returns.values[0].numpy(),
    returns.weights()[0].numpy(),
    int(turn.actions[0]),
    score,
  )


def pictured(config: Config) -> bool:
  """Whether observations are pictures."""
  return environments.family(config.environment.name) in ("atari", "minatar")


def frame(config: Config, observation: np.ndarray) -> np.ndarray:
  """An observation [H, W, C] as a picture, [H, W] or [H, W, 3]."""
  if environments.family(config.environment.name) == "minatar":
    return minatar.picture(observation)
  return observation[..., -1]  # Atari's newest frame


def rendering(config: Config) -> Dict[str, Any]:
  """What an environment that is to be drawn is made with."""
  os.environ.setdefault("SDL_AUDIODRIVER", "dummy")  # pygame seeks a speaker
  os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
  if environments.family(config.environment.name) == "atari":
    return {}
  return {"render_mode": "rgb_array"}


def picture(environment: Any, observation: np.ndarray) -> np.ndarray:
  """[H, W] or [H, W, 3] of the first game, as it is now."""
  if isinstance(environment, atari.AtariEnvironment):
    return observation[0, ..., -1]
  return environment.render()[0]


def names_of_actions(config: Config, num_actions: int) -> List[str]:
  """What actions are called, where that is known."""
  family = environments.family(config.environment.name)
  if family == "atari":
    with atari.load(config.environment.name, num_envs=1) as game:
      return game.action_meanings()
  if family == "minatar":
    return ["nothing", "left", "up", "right", "down", "fire"]
  if family == "maze":
    return ["up", "left", "down", "right"]
  if config.environment.name in _ACTIONS:
    return list(_ACTIONS[config.environment.name])
  return [f"action {index}" for index in range(num_actions)]


def write_video(
  moments: List[Moment],
  names: List[str],
  path: pathlib.Path,
  done: Callable[[int], None] = lambda count: None,
) -> None:
  """Writes a .gif or .mp4, one picture for each moment.

  Args:
    moments: in order.
    names: of the actions.
    path: of the file.
    done: told how many have been drawn.
  """
  imageio = return_histograms.require("imageio.v2")
  draw = return_histograms.drawer(moments, names)
  # Over and over; and ffmpeg's own lines are for those who know it.
  own: Dict[str, Dict[str, Any]] = {
    ".gif": {"loop": 0},
    ".mp4": {"ffmpeg_log_level": "quiet"},
  }
  options: Dict[str, Any] = {"format": path.suffix, **own[path.suffix]}
  with tempfile.TemporaryDirectory() as folder:
    # ffmpeg wants a file. The writer of GIFs takes memory as well, and would
    # try again, when nobody listens, to write a file that it could not.
    beside = pathlib.Path(folder, f"video{path.suffix}")
    target: Any = io.BytesIO() if path.suffix == ".gif" else beside
    try:
      with imageio.get_writer(
        target, fps=_FRAMES_PER_SECOND, **options
      ) as video:
        for count, moment in enumerate(moments, 1):
          video.append_data(draw([moment]))
          done(count)
      if target is beside:
        _require_whole(beside, len(moments))
      content = beside.read_bytes() if target is beside else target.getvalue()
    except OSError as error:
      raise full_disk.refused(beside, error) from None
  _write(path, content)


def _require_whole(path: pathlib.Path, num_pictures: int) -> None:
  """Raises if ffmpeg left something out: it says so to the terminal alone."""
  ffmpeg = return_histograms.require("imageio_ffmpeg")
  try:
    written, _ = ffmpeg.count_frames_and_secs(str(path))
  except RuntimeError:  # it is no video at all
    written = 0
  if written != num_pictures:
    raise OSError(f"ffmpeg wrote {written} of {num_pictures} pictures")


def write_stills(
  moments: List[Moment], names: List[str], path: pathlib.Path
) -> None:
  """Writes 3 consecutive moments, as in the paper's Figure of Appendix C."""
  image = return_histograms.drawer(moments, names)(
    return_histograms.consecutive(moments)
  )
  still = io.BytesIO()
  return_histograms.require("imageio.v2").imwrite(still, image, format=".png")
  _write(path, still.getvalue())


def _write(path: pathlib.Path, content: bytes) -> None:
  """A whole file, or none and one line."""
  try:
    whole_files.write(path, content)
  except OSError as error:
    raise full_disk.refused(path, error, len(content)) from None
