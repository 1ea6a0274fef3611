"""Fitted distributional evaluation: Algorithm 1's evaluation branch on data.

An agent of the family learns the return distributions of a given policy from
transitions: targets are the mixture over the policy's actions, from a target
network that is renewed every few updates. It stops when the Bellman residual on
held-out transitions has stopped falling, also after the learning rate was
lowered.
"""

import dataclasses
import json
import math
import pathlib
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
import tensorflow as tf
from tf_agents.trajectories import policy_step, trajectory
from tf_agents.trajectories import time_step as ts

from tf_mmdrl.agents import targets, transitions
from tf_mmdrl.core import errors, whole_files
from tf_mmdrl.core.return_distribution import ReturnDistribution
from tf_mmdrl.offline import blocks
from tf_mmdrl.offline.blocks import Block, Source
from tf_mmdrl.offline.dataset import Description
from tf_mmdrl.ops import bellman, kernels, mmd
from tf_mmdrl.train import checkpoints, factories, logged_specs
from tf_mmdrl.train import config as configs

_STATE, _ARRAYS = "state.json", "arrays"
_CHUNK = 2048  # examples that are predicted at once
_JOINT_CHUNK = 256  # of vectors, whose distances are taken pair by pair


@dataclasses.dataclass(frozen=True)
class Settings:
  """How long to fit.

  Attributes:
    period: updates between two looks at the residual.
    most: updates at most.
    patience: looks without a new lowest residual, after which the learning
      rate falls, or the fit ends.
    drops: how often the learning rate falls to a third before the end.
    tolerance: by which share a residual must be lower to count as lower.
      Most of a residual is the spread of what follows a state, which no fit
      can lower, so a small share counts.
  """

  period: int = 500
  most: int = 200_000
  patience: int = 5
  drops: int = 2
  tolerance: float = 1e-3

  def least(self, gamma: float, horizon: int, target_period: int) -> int:
    """Updates before any stop: rewards must have come all the way.

    Each renewal of the target network brings them one step further; residuals
    may be low before, where nothing is known yet.

    Args:
      gamma: discount.
      horizon: the longest episode's steps.
      target_period: updates between two renewals.
    """
    steps = horizon
    if gamma == 0:
      steps = min(horizon, 1)
    elif gamma < 1:
      steps = min(horizon, math.ceil(math.log(0.02) / math.log(gamma)))
    return min(self.most, steps * target_period)


def possible_returns(
  rewards: Tuple[Any, Any], gamma: float, *, ends: bool
) -> Optional[targets.Bounds]:
  """The lowest and the highest return that rewards allow.

  Args:
    rewards: the lowest and the highest that were logged, each [] or [D].
    gamma: discount.
    ends: whether any logged episode ended. If none did there is always a next
      reward.

  Returns:
    Both; None without a discount, where episodes may be longer than logged.
  """
  if gamma == 1:
    return None
  low, high = (np.asarray(reward, np.float64) for reward in rewards)
  least, most = low / (1 - gamma), high / (1 - gamma)
  if ends:  # with the next reward at the earliest
    least, most = np.minimum(least, low), np.maximum(most, high)
  return least, most


class Look(NamedTuple):
  """What was seen after so many updates.

  Attributes:
    updates: so far.
    residual: the mean energy distance between held-out predictions and their
      targets, in natural rewards.
    loss: of the updates since the last look.
  """

  updates: int
  residual: float
  loss: float


def specs_of(description: Description) -> logged_specs.LoggedSpecs:
  """What agents want to know of the environment that was logged."""
  return logged_specs.LoggedSpecs(*description[:4])


class Fit:
  """An agent that learns from data what a policy returns.

  Attributes:
    agent: what learns.
    history: every look at the residual.
    is_over: whether the fit has ended.
    has_settled: whether it ended because the residual had stopped falling,
      not because the updates were used up.
    least: updates before which it does not end.
    identity: what must be the same to go on with a checkpoint.
  """

  def __init__(
    self,
    config: configs.Config,
    description: Description,
    source: Source,
    settings: Settings,
    *,
    horizon: int,
    bounds: Optional[targets.Bounds] = None,
    directory: Optional[pathlib.Path] = None,
    identity: Optional[Dict[str, Any]] = None,
  ):
    """Makes the agent, or goes on with the one in the directory.

    Args:
      config: of the agent; one step is one update.
      description: of the data.
      source: of transitions.
      settings: how long to fit.
      horizon: steps of the longest episode.
      bounds: the lowest and highest return that the rewards allow, where
        targets and what is found are cut; None if not known.
      directory: of checkpoints; none are made if None.
      identity: what must be the same to go on with a checkpoint, as JSON.
    """
    if config.optimizer.final_share != 1:
      raise errors.UserError(
        "a fit lowers its learning rate itself, got optimizer.final_share ="
        f" {config.optimizer.final_share}; leave it out"
      )
    if config.agent.reward_scale != 1:
      raise errors.UserError(
        "a fit learns returns of rewards as they were logged, got"
        f" agent.reward_scale = {config.agent.reward_scale:g}; leave it out"
      )
    self._config, self._source, self._settings = config, source, settings
    self._bounds, self._step_bytes = bounds, description.step_bytes
    self.agent = factories.agent(
      config, specs_of(description), return_bounds=bounds
    )
    self._optimizer: Any = self.agent._optimizer
    self._rate = config.optimizer.learning_rate
    self.least = settings.least(
      config.agent.gamma, horizon, config.schedule.target_period
    )
    self.history: List[Look] = []
    self._drops = 0
    self._since = 0  # looks since the lowest residual
    self._lowest = math.inf
    self.is_over = self.has_settled = False
    self.identity = {
      "config": configs.to_json(config),
      "settings": dataclasses.asdict(settings),
      **(identity or {}),
    }
    self._train = tf.function(
      self.agent.train_in_turn(_experience), autograph=False
    )
    self._residuals = tf.function(self._residual_of, autograph=False)
    spec = self.agent.time_step_spec.observation
    self._predict = tf.function(  # one graph for batches of any size
      self._distributions,
      input_signature=[tf.TensorSpec([None, *spec.shape], spec.dtype)],
      autograph=False,
    )
    self._checkpoints = None
    if directory is not None:
      self._checkpoints = checkpoints.Checkpoints(directory)

  @property
  def updates(self) -> int:
    """Done so far."""
    return int(self.agent.train_step_counter.numpy())

  def restore(self, warn: Callable[[str], None]) -> bool:
    """Goes on from the newest checkpoint; whether there was one."""
    if self._checkpoints is None:
      return False
    self._checkpoints.recover()
    return checkpoints.restore_newest(self._checkpoints, self._read, warn)

  def run(
    self, on_look: Callable[[Look], None] = lambda look: None
  ) -> List[Look]:
    """Fits until the residual stops falling; returns all looks."""
    while not self.is_over:
      loss = self._learn(len(self.history))
      look = Look(self.updates, self.residual(), loss)
      self.history.append(look)
      self._judge(look)
      self._save()
      on_look(look)
    return self.history

  def begin(self, values: List[np.ndarray], source: Source) -> None:
    """Begins anew, with other data; nothing is compiled again."""
    self.assign(values)
    self._source, self.history = source, []
    self._drops, self._since, self._lowest = 0, 0, math.inf
    self.is_over = self.has_settled = False
    self._set_rate()

  def refit(self, source: Source, periods: int) -> None:
    """Fits other data for so many periods, from where the fit is now."""
    before, self._source = self._source, source
    try:
      for number in range(periods):
        self._learn(number)
    finally:
      self._source = before

  def residual(self) -> float:
    """The mean energy distance of held-out predictions to their targets."""
    held = self._source.held_out
    size = _CHUNK if held.rewards.ndim == 1 else _JOINT_CHUNK
    sums = 0.0
    for start in range(0, len(held.actions), size):
      part = Block(*(each[start : start + size] for each in held))
      sums += float(tf.reduce_sum(self._residuals(*part)))
    return sums / len(held.actions)

  def returns(self, observations: np.ndarray) -> tuple:
    """Values and weights, each [B, A, N], of scaled observations."""
    found = [
      self._predict(tf.constant(observations[start : start + _CHUNK]))
      for start in range(0, len(observations), _CHUNK)
    ]
    return (
      np.concatenate([part.values.numpy() for part in found]),
      np.concatenate([part.weights().numpy() for part in found]),
    )

  def variables(self) -> List[np.ndarray]:
    """Copies of all that decides how learning goes on."""
    return [np.array(each) for each in self.agent.state_variables()]

  def assign(self, values: List[np.ndarray]) -> None:
    """Goes back to copies of all variables."""
    for variable, value in zip(
      self.agent.state_variables(), values, strict=True
    ):
      variable.assign(value)

  def _learn(self, number: int) -> float:
    """One period of updates; the batches depend on seed and number alone."""
    losses = []
    for part in blocks.batches(
      self._source,
      number,
      count=self._settings.period,
      size=self._config.schedule.batch_size,
      seed=self._config.system.seed,
      step_bytes=self._step_bytes,
    ):
      found = self._train(part[:-1], tf.constant(part.weights))
      losses.append(found.loss.numpy())
    return float(np.mean(losses, dtype=np.float64))

  def _judge(self, look: Look) -> None:
    """Lowers the learning rate, or ends, if residuals stopped falling."""
    if not math.isfinite(look.residual):
      raise errors.UserError(
        f"the residual is {look.residual} after {look.updates} updates; lower"
        " the learning rate with --set optimizer.learning_rate=..."
      )
    if look.updates >= self._settings.most:
      self.is_over = True
    if look.updates < self.least:
      return
    if look.residual < (1 - self._settings.tolerance) * self._lowest:
      self._lowest, self._since = look.residual, 0
      return
    self._since += 1
    if self._since >= self._settings.patience:
      if self._drops == self._settings.drops:
        self.is_over = self.has_settled = True
      else:
        self._drops += 1
        self._since = 0
        self._set_rate()

  def _set_rate(self) -> None:
    self._optimizer.learning_rate.assign(self._rate / 3**self._drops)

  def _residual_of(self, *parts) -> tf.Tensor:
    block = Block(*map(tf.convert_to_tensor, parts))
    gamma = self._config.agent.gamma
    now = self._distributions(block.observations).at(block.actions)
    after = targets.mixture(
      self._distributions(block.next_observations),
      tf.math.log(block.next_probabilities),
    )
    target = bellman.backup(block.rewards, gamma * block.discounts, after)
    return mmd.mmd_squared(
      now.values,
      target.values,
      kernel=kernels.unrectified(1.0),
      x_log_weights=now.log_weights,
      y_log_weights=target.log_weights,
    )

  def _distributions(self, observations) -> ReturnDistribution:
    """What the network knows of scaled observations, in natural rewards."""
    found = ReturnDistribution.of(self.agent.return_network(observations)[0])
    if self._bounds is None:
      return found
    return targets.within(found, self._bounds)

  def _save(self) -> None:
    if self._checkpoints is not None:
      self._checkpoints.save(self.updates, self._write)
      self._checkpoints.prune(2)

  def _write(self, directory: pathlib.Path) -> None:
    content = {
      "identity": self.identity,
      "history": [list(look) for look in self.history],
      "drops": self._drops,
      "since": self._since,
      "lowest": self._lowest if math.isfinite(self._lowest) else None,
      "is_over": self.is_over,
      "has_settled": self.has_settled,
    }
    whole_files.write_json(directory / _STATE, content)
    arrays = {str(n): each for n, each in enumerate(self.variables())}
    whole_files.write(directory / _ARRAYS, whole_files.encode(arrays))

  def _read(self, directory: pathlib.Path) -> None:
    content = whole_files.read_json(directory / _STATE)
    before, now = content["identity"], json.loads(json.dumps(self.identity))
    if before != now:
      changed = [key for key in now if before.get(key) != now[key]]
      raise errors.UserError(
        f"{str(directory.parent.parent)!r} holds a fit with another"
        f" {' and '.join(changed) or 'setting'}; pass another -o, or remove it"
      )
    arrays = whole_files.decode((directory / _ARRAYS).read_bytes())
    self._optimizer.build(self.agent.return_network.trainable_weights)
    self.assign([arrays[str(number)] for number in range(len(arrays))])
    self.history = [Look(*look) for look in content["history"]]
    self._drops, self._since = content["drops"], content["since"]
    lowest = content["lowest"]
    self._lowest = math.inf if lowest is None else lowest
    self.is_over = content["is_over"]
    self.has_settled = content["has_settled"]
    self._set_rate()


def _experience(batch) -> trajectory.Transition:
  """A batch of a block, without its weights, as agents take it."""
  seen, actions, rewards, discounts, after, probabilities = batch
  size = tf.shape(actions)
  middle = tf.fill(size, ts.StepType.MID)
  ones = tf.ones(size)
  return trajectory.Transition(
    ts.TimeStep(middle, tf.zeros_like(rewards), ones, seen),
    policy_step.PolicyStep(
      actions, (), {transitions.NEXT_PROBABILITIES: probabilities}
    ),
    ts.TimeStep(middle, rewards, discounts, after),
  )
