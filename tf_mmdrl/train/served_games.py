"""Games for the page of `mmdrl serve`: one environment for each visitor."""

from typing import Any, Dict, List, Optional, Sequence

import numpy as np

from tf_mmdrl import serving
from tf_mmdrl.core import errors, specs
from tf_mmdrl.serving.games import Game, Games, Seen
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import factories, videos


class EnvironmentGame(Game):
  """A game of evaluations: whole, with its raw rewards."""

  def __init__(self, config: configs.Config):
    """Makes the environment.

    Args:
      config: with the name of the environment and the seed.
    """
    single = config.replace(evaluation=dict(num_envs=1))
    options: Dict[str, Any] = videos.rendering(single)
    self._environment = factories.environment(
      single, evaluation=True, **options
    )
    try:
      if factories.dimensions(self._environment) is not None:
        raise errors.UserError(
          f"{config.environment.name!r} has vector rewards, which the page of"
          " --games cannot show; see `mmdrl watch`"
        )
      number = specs.num_actions(self._environment.action_spec())
      self._actions = videos.names_of_actions(single, number)
    except BaseException:
      self._environment.close()
      raise
    self._score = 0.0

  @property
  def actions(self) -> List[str]:
    """What the actions are called."""
    return self._actions

  def begin(self) -> Seen:
    """The first thing to see."""
    return self._seen(self._environment.reset())

  def step(self, action: int) -> Seen:
    """Takes an action; after the end any action begins another game."""
    spec = self._environment.action_spec()
    step = self._environment.step(np.array([action], spec.dtype))
    if step.is_first()[0]:
      self._score = 0.0
    else:
      self._score += float(self._environment.raw_reward[0])
    return self._seen(step)

  def close(self) -> None:
    """Closes the environment."""
    self._environment.close()

  def _seen(self, step: Any) -> Seen:
    return Seen(
      step.observation[0],
      videos.picture(self._environment, step.observation),
      self._score,
      bool(step.is_last()[0]),
    )


def of_exports(path: Any, names: Sequence[str]) -> Games:
  """The games that a page may show.

  Args:
    path: the directory of versions.
    names: of environments that the user named; that of the newest version if
      there are none.

  Returns:
    The sessions, none of them begun.
  """
  number = serving.versions(path)[-1]
  recorded: Optional[Dict[str, Any]] = serving.metadata(path, number).get(
    "config"
  )
  config = configs.Config()
  if recorded is not None:
    config = configs.from_json(recorded)
  elif not names:
    raise errors.UserError(
      "the policy does not say what it was made for; pass --games NAME"
    )
  if not names:
    # A file must not choose what is imported.
    configs.refuse_imports(
      configs.Config().replace(environment=dict(name=config.environment.name)),
      (),
    )
    names = [config.environment.name]

  def make(name: str, seed: int) -> Game:
    return EnvironmentGame(
      config.replace(environment=dict(name=name), system=dict(seed=seed))
    )

  for name in names:  # what cannot be played is told before anybody asks
    make(name, 0).close()
  return Games(list(names), make)
