"""Plays policies and logs what they do, with the probabilities of actions."""

import pathlib
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence

import numpy as np
from tf_agents.trajectories import time_step as ts

from tf_mmdrl.core import errors, specs, whole_files
from tf_mmdrl.environments import Environment, checked
from tf_mmdrl.offline import minari_files, target_policies
from tf_mmdrl.offline.dataset import Description, Episode
from tf_mmdrl.offline.target_policies import TargetPolicy
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import factories


class Recorded(NamedTuple):
  """What was written.

  Attributes:
    path: of the data set.
    scores: [E] sums of rewards.
    num_steps: of all episodes.
    num_cut: episodes that were cut off.
  """

  path: pathlib.Path
  scores: List[float]
  num_steps: int
  num_cut: int


def record(
  policies: Sequence[Optional[TargetPolicy]],
  config: configs.Config,
  path: pathlib.Path,
  *,
  episodes: int = 0,
  steps: int = 0,
  about: Dict[str, Any],
  progress: Callable[[float], None] = lambda share: None,
) -> Recorded:
  """Writes episodes in Minari's format; whole, or not at all.

  The policies take turns: each environment's next episode is the next one's.

  Args:
    policies: who plays; None plays at random.
    config: what to play; `evaluation.num_envs` games at the same time.
    path: of the data set, which must not exist.
    episodes: how many, as many in each environment.
    steps: how many, instead of episodes; the last ones are cut off there.
    about: what to add to the metadata, as JSON values.
    progress: told, at every step, the share that is done.

  Returns:
    What was written.
  """
  environment = factories.environment(config, evaluation=True)
  try:
    description = _description(environment, config.environment.name)
    random = target_policies.uniform(description.num_actions)
    players = [policy or random for policy in policies]
    for player in players:
      player.require_fit(description, config.environment.name)
    with whole_files.made(path.parent):
      writer = minari_files.MinariWriter(path, description, about)
      try:
        made = _Recorder(environment, players, config, writer)
        made.play(episodes, steps, progress)
        writer.close()
      except BaseException:
        writer.discard()
        raise
    return Recorded(path, made.scores, made.num_steps, made.num_cut)
  finally:
    environment.close()


class _Returns:
  """Takes episodes for their discounted returns alone."""

  def __init__(self, gamma: float):
    self._gamma = gamma
    self.returns: List[np.ndarray] = []

  def add(self, episode: Episode) -> None:
    factors = self._gamma ** np.arange(len(episode.rewards))
    self.returns.append(factors @ episode.rewards.astype(np.float64))


def play(
  policy: TargetPolicy, name: str, *, episodes: int, gamma: float, seed: int
) -> np.ndarray:
  """Discounted returns of a policy in an environment: Monte Carlo.

  Args:
    policy: who plays.
    name: of the environment; that of the policy's run keeps its settings.
    episodes: at least so many, as many in each environment.
    gamma: discount.
    seed: of the games.

  Returns:
    [M] or [M, D] returns from the first state on.
  """
  config = policy.config or configs.Config()
  if config.environment.name != name:
    config = configs.Config().replace(environment={"name": name})
  config = configs.change(config, [f"system.seed={seed}"])
  environment = factories.environment(config, evaluation=True)
  try:
    policy.require_fit(_description(environment, name), name)
    sink = _Returns(gamma)
    _Recorder(environment, [policy], config, sink).play(episodes, 0)
  finally:
    environment.close()
  return np.array(sink.returns)


def require_same(name: str, description: Description) -> None:
  """Raises unless an environment is what a data set was logged in."""
  environment = factories.environment(
    configs.Config().replace(
      environment={"name": name}, evaluation={"num_envs": 1}
    ),
    evaluation=True,
  )
  there = _description(environment, name)
  environment.close()
  if there[:4] != description[:4]:
    raise errors.UserError(
      f"{name} has {_in_words(there)}, but the data has"
      f" {_in_words(description)}; pass the environment of the data"
    )


def _in_words(description: Description) -> str:
  size = description.reward_size
  return (
    f"observations {description.observation_dtype}"
    f" {list(description.observation_shape)}, {description.num_actions} actions"
    f" and {f'rewards [{size}]' if size else 'plain rewards'}"
  )


def _description(environment: Environment, name: str) -> Description:
  spec = environment.observation_spec()
  return Description(
    tuple(spec.shape),
    np.dtype(spec.dtype),
    specs.num_actions(environment.action_spec()),
    factories.dimensions(environment) or 0,
    name,
  )


class _Recorder:
  """Games under way, one in each environment."""

  def __init__(self, environment, policies, config, writer):
    self._environment = environment
    self._policies = policies
    self._writer = writer
    self._longest = config.evaluation.max_episode_steps
    seed = factories.seeds(config).evaluation
    self._generator = np.random.default_rng([seed, 1])
    batch = environment.batch_size
    self._steps: List[List[tuple]] = [[] for _ in range(batch)]
    self._players = np.arange(batch) % len(policies)
    self._begun = batch
    self._counts = np.zeros([batch], np.int64)
    self._is_over = np.zeros([batch], bool)
    self.scores: List[float] = []
    self.num_steps = self.num_cut = 0

  def play(
    self,
    episodes: int,
    steps: int,
    progress: Callable[[float], None] = lambda share: None,
  ) -> None:
    """Until each environment has its share of episodes, or of steps."""
    batch = len(self._steps)
    share = -(-episodes // batch)
    time_step = self._environment.rebuild(0)
    taken = 0
    while True:
      wanted = ~self._is_over
      if episodes:
        wanted &= self._counts < share
      if not wanted.any() or steps and taken >= steps:
        break
      actions, chances = self._act(time_step)
      with checked.telling("while it was recorded; mend the environment"):
        after = self._environment.step(actions)
      reward = self._environment.raw_reward
      playing = ~time_step.is_last() & wanted
      for row in np.flatnonzero(playing):
        self._steps[row].append(
          (
            time_step.observation[row],
            actions[row],
            reward[row],
            after.observation[row],
            chances[row],
          )
        )
        ended = after.step_type[row] == ts.StepType.LAST
        if ended or len(self._steps[row]) >= self._longest:
          self._finish(row, bool(ended and after.discount[row] == 0))
          self._is_over[row] = not ended  # it would only go on
      taken += int(playing.sum())
      time_step = after
      done = np.where(self._is_over, share, self._counts).sum()
      progress(taken / steps if steps else done / (share * batch))
    if steps:
      for row in range(batch):
        if self._steps[row]:
          self._finish(row, False)

  def _act(self, time_step: ts.TimeStep):
    probabilities = np.zeros(
      [len(self._steps), specs.num_actions(self._environment.action_spec())]
    )
    for number, policy in enumerate(self._policies):
      rows = self._players == number
      if rows.any():
        probabilities[rows] = policy.probabilities(time_step.observation[rows])
    uniform = self._generator.random(len(self._steps))
    actions = target_policies.draw(probabilities, uniform)
    chances = probabilities[np.arange(len(actions)), actions]
    return actions, chances

  def _finish(self, row: int, terminated: bool) -> None:
    parts = [np.stack(part) for part in zip(*self._steps[row])]
    seen, actions, rewards, after, chances = parts
    self._writer.add(
      Episode(
        seen,
        actions.astype(np.int64),
        rewards.astype(np.float32),
        after,
        terminated,
        chances,
      )
    )
    self.scores.append(float(rewards.sum()))  # over all parts of vectors
    self.num_steps += len(actions)
    self.num_cut += not terminated
    self._counts[row] += 1
    self._steps[row] = []
    self._players[row] = self._begun % len(self._policies)
    self._begun += 1
