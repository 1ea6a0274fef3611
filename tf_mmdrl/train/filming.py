"""A game beside the return distribution of each action, as a film."""

import importlib
import pathlib
from typing import Any, Callable, Iterator, List, NamedTuple, Optional

import numpy as np

from tf_mmdrl import environments, serving
from tf_mmdrl.core import errors
from tf_mmdrl.environments import atari
from tf_mmdrl.train import factories
from tf_mmdrl.train.collector import Explorer
from tf_mmdrl.train.config import Config

FORMATS = (".gif", ".mp4")
_BINS = 17  # as in the paper's Appendix C
_FRAMES_PER_SECOND = 15


class Moment(NamedTuple):
  """What is seen at one step.

  Attributes:
    picture: [H, W] or [H, W, 3] of the game.
    particles: [A, N] of each action.
    weights: [A, N] of the particles.
    action: the one taken.
    score: so far, if known.
  """

  picture: np.ndarray
  particles: np.ndarray
  weights: np.ndarray
  action: int
  score: Optional[float]


def play(
  config: Config, policy: serving.Policy, max_steps: int
) -> Iterator[Moment]:
  """The moments of one game, or of its first steps."""
  single = config.replace(evaluation=dict(num_envs=1))
  family = environments.family(config.environment.name)
  rendering = {} if family == "atari" else {"render_mode": "rgb_array"}
  environment = factories.environment(single, evaluation=True, **rendering)
  num_actions = int(environment.action_spec().maximum) + 1
  generator = np.random.default_rng(factories.seeds(config).evaluation)
  explore = Explorer(policy.act, num_actions, generator)
  time_step, score = environment.rebuild(policy.number), 0.0
  try:
    for _ in range(max_steps):
      values, weights = policy.particles(time_step.observation)
      action = explore(time_step, config.evaluation.epsilon)
      picture = _picture(environment, time_step.observation)
      yield Moment(picture, values[0], weights[0], int(action[0]), score)
      time_step = environment.step(action.astype(np.int64))
      score += float(environment.raw_reward[0])
      if time_step.is_last()[0]:
        return
  finally:
    environment.close()


def _picture(environment: Any, observation: np.ndarray) -> np.ndarray:
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
  return [f"action {index}" for index in range(num_actions)]


def write_film(
  moments: List[Moment], names: List[str], path: pathlib.Path
) -> None:
  """Writes a .gif or .mp4, one picture for each moment."""
  imageio = _require("imageio.v2")
  draw = drawer(moments, names)
  try:
    with imageio.get_writer(path, fps=_FRAMES_PER_SECOND) as film:
      for moment in moments:
        film.append_data(draw([moment]))
  except OSError as error:
    raise errors.UserError(f"cannot write {str(path)!r}: {error}") from None


def write_stills(
  moments: List[Moment], names: List[str], path: pathlib.Path
) -> None:
  """Writes 3 consecutive moments, as in the paper's Figure of Appendix C."""
  middle = max(0, len(moments) // 2 - 1)
  image = drawer(moments, names)(moments[middle : middle + 3])
  _require("imageio.v2").imwrite(path, image)


def drawer(
  moments: List[Moment], names: List[str]
) -> Callable[[List[Moment]], np.ndarray]:
  """A function that draws moments below each other, on one scale for all.

  Args:
    moments: what the scale must hold.
    names: of the actions.

  Returns:
    From some moments to an image [H, W, 3] uint8.
  """
  figures = _require("matplotlib.figure")
  agg = _require("matplotlib.backends.backend_agg")
  values = np.stack([moment.particles for moment in moments])
  edges = np.linspace(values.min(), values.max() + 1e-6, _BINS + 1)

  def draw(shown: List[Moment]) -> np.ndarray:
    picture = figures.Figure((8, 4 * len(shown)), dpi=80, layout="constrained")
    canvas = agg.FigureCanvasAgg(picture)
    rows = picture.subplots(len(shown), 2, squeeze=False)
    for (game, returns), moment in zip(rows, shown):
      game.imshow(moment.picture, cmap="gray")
      game.set_axis_off()
      score = "" if moment.score is None else f"score {moment.score:g}, "
      game.set_title(score + names[moment.action])
      laws = zip(names, moment.particles, moment.weights)
      for name, particles, weights in laws:
        share, _ = np.histogram(particles, edges, weights=weights)
        returns.stairs(share, edges, fill=True, alpha=0.35, label=name)
      returns.set(xlabel="return", ylim=(0, 1))
      returns.legend(frameon=False, fontsize="small")
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()

  return draw


def _require(module: str) -> Any:
  try:
    return importlib.import_module(module)
  except ModuleNotFoundError as error:
    raise errors.UserError(
      f"films need {error.name}, which is not installed; run"
      " pip install 'tf-mmdrl[plots]'"
    ) from None


def check_format(path: pathlib.Path, stills: Optional[pathlib.Path]) -> None:
  """Raises before anything is played if a file has an unknown ending."""
  if path.suffix not in FORMATS:
    raise errors.UserError(
      f"a film ends in {' or '.join(FORMATS)}, got {str(path)!r}"
    )
  if stills is not None and stills.suffix != ".png":
    raise errors.UserError(f"stills end in .png, got {str(stills)!r}")
