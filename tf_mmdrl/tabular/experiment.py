"""The chain experiment: how well N numbers hold the moments of a return.

Section 4.1 of the paper with the parameters of its Appendix B. Where the paper
can be read in two ways, the choice is a setting; see docs/tabular.md.
"""

import dataclasses
from typing import Callable, Dict, List, Mapping, Sequence, Tuple

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

from tf_mmdrl.core import errors
from tf_mmdrl.ops import categorical, kernels
from tf_mmdrl.tabular import chain as chain_lib
from tf_mmdrl.tabular import evaluation, tabular_updates
from tf_mmdrl.tabular import process as process_lib

ORDER = 6  # moments: the mean, then the central ones of orders 2 to 6
_CENTRE = -1.0  # of the initial particles

# What t counts in Algorithm 2: (episode [T], episodes per iteration) -> t [T].
Clock = Callable[[np.ndarray, int], np.ndarray]


def count_steps(episode: np.ndarray, per_iteration: int) -> np.ndarray:
  """t counts transitions."""
  del per_iteration
  return 1 + np.arange(episode.size)


def count_episodes(episode: np.ndarray, per_iteration: int) -> np.ndarray:
  """t counts episodes."""
  del per_iteration
  return 1 + episode


def count_iterations(episode: np.ndarray, per_iteration: int) -> np.ndarray:
  """t counts iterations (of 100 episodes in the paper)."""
  return 1 + episode // per_iteration


@dataclasses.dataclass(frozen=True)
class Settings:
  """The experiment's parameters; the defaults are the paper's.

  Attributes:
    lengths: the chain lengths K.
    seeds: runs of each method at each length.
    particles: N, also CDRL's number of atoms.
    gamma: the discount factor.
    iterations: how many iterations of learning there are.
    episodes_per_iteration: so many episodes are one iteration.
    rollouts: Monte Carlo returns to compare with.
    deviation: the standard deviation of the initial particles; the paper's
      N(-1, 0.08) read as a variance by default.
    clock: what t counts in the learning rate 1 / t^0.2.
    copy: how often theta^- is copied from theta: when this clock ticks.
  """

  lengths: Sequence[int] = tuple(range(1, 16))
  seeds: int = 30
  particles: int = 30
  gamma: float = 0.9
  iterations: int = 15
  episodes_per_iteration: int = 100
  rollouts: int = 10_000
  deviation: float = 0.08**0.5
  clock: Clock = count_iterations
  copy: Clock = count_steps

  def __post_init__(self):
    if not self.lengths:
      raise errors.UserError("at least one chain length K is wanted, got none")
    counts = ("seeds", "particles", "iterations", "episodes_per_iteration")
    for name in (*counts, "rollouts"):
      if getattr(self, name) < 1:
        raise errors.UserError(
          f"{name} must be at least 1, got {getattr(self, name)}"
        )
    if not self.deviation >= 0:
      raise errors.UserError(
        f"the initial deviation must not be negative, got {self.deviation}"
      )
    for length in self.lengths:
      self.chain(length)

  def chain(self, length: int) -> chain_lib.Chain:
    """The chain of this length."""
    return chain_lib.Chain(length, self.gamma)


@dataclasses.dataclass(frozen=True)
class Method:
  """A way to learn a return distribution by rows of N numbers.

  Attributes:
    update: what a transition does to a row.
    encode: initial particles [R, N] -> rows [R, N].
    decode: rows [..., N] -> values and weights, each broadcastable to [..., N].
  """

  update: tabular_updates.Update
  encode: Callable[[np.ndarray], np.ndarray]
  decode: Callable[[np.ndarray], Tuple[np.ndarray, np.ndarray]]


def mmdrl(kernel: kernels.Kernel) -> Method:
  """MMDRL with this kernel."""
  return _particles(tabular_updates.mmd_update(kernel))


def qrdrl() -> Method:
  """Quantile regression."""
  return _particles(tabular_updates.quantile_update)


def _particles(update: tabular_updates.Update) -> Method:
  def decode(rows):
    return rows, np.full(rows.shape[-1], 1 / rows.shape[-1])

  return Method(update, lambda particles: particles, decode)


def cdrl(settings: Settings) -> Method:
  """Categorical learning on the returns there can be, from -1/(1-gamma) to 1.

  As gamma nears 1 the lower end is held at -100.
  """
  if settings.particles < 2:
    raise errors.UserError(
      f"cdrl wants at least 2 atoms, got {settings.particles}; leave it out"
    )
  lowest = -min(1 / max(1 - settings.gamma, 1e-9), 100.0)
  support = np.linspace(lowest, 1.0, settings.particles)

  def encode(particles):
    weights = np.full_like(particles, 1 / particles.shape[-1])
    atoms = tf.constant(support)
    return categorical.project(particles, weights, atoms).numpy()

  return Method(
    tabular_updates.categorical_update(support),
    encode,
    lambda rows: (support, rows),
  )


def paper_method(name: str, settings: Settings) -> Method:
  """One of the paper's three methods, or CDRL, by its name in the tables."""
  makers = {
    "gaussian-mmdrl": lambda: mmdrl(kernels.gaussian_mixture([8, 10, 12])),
    "unrectified-mmdrl": lambda: mmdrl(kernels.unrectified(1.0)),
    "qrdrl": qrdrl,
    "cdrl": lambda: cdrl(settings),
  }
  if name not in makers:
    raise errors.unknown_name("method", name, makers)
  return makers[name]()


@dataclasses.dataclass(frozen=True)
class Row:
  """One line of chain.csv: a moment of the return from s_0.

  Attributes:
    K: the chain's length.
    method: its name.
    moment: 1 for the mean, else the order of the central moment.
    mean: over the seeds.
    ci_low: the lower end of the 95 % interval of that mean (Student's t).
    ci_high: its upper end.
    monte_carlo: the moment of the rollouts.
    exact: the moment by linear equations.
    error: |moment - exact|, mean over the seeds (not in chain.csv).
  """

  K: int
  method: str
  moment: int
  mean: float
  ci_low: float
  ci_high: float
  monte_carlo: float
  exact: float
  error: float


def run(
  settings: Settings,
  methods: Mapping[str, Method],
  on_progress: Callable[[float, str], None] = lambda share, text: None,
) -> List[Row]:
  """Runs all methods on all lengths and seeds.

  All methods see the same initial particles and the same transitions. What a
  length and a seed give does not depend on the other lengths and seeds.

  Args:
    settings: the parameters.
    methods: the names of the methods.
    on_progress: told the share done and what is running.

  Returns:
    The rows of chain.csv.
  """
  lengths = [length for length in settings.lengths if length > 1]
  particles, learners = _learners(settings, lengths)
  moments = {}
  for index, (name, method) in enumerate(methods.items()):
    table = method.encode(particles)
    if learners:
      table = evaluation.evaluate(
        table,
        learners,
        method.update,
        on_progress=_part(on_progress, index, len(methods), name),
      )
    moments[name] = _moments(settings, lengths, method, table)
  return _rows(settings, moments)


def _part(
  on_progress: Callable[[float, str], None], index: int, count: int, name: str
) -> Callable[[float], None]:
  """Progress within the `index`-th of `count` methods."""
  return lambda share: on_progress((index + share) / count, name)


def _learners(
  settings: Settings, lengths: Sequence[int]
) -> Tuple[np.ndarray, List[evaluation.Transitions]]:
  """Initial particles [R, N] and the transitions of each length and seed."""
  particles, learners, first = [np.zeros([0, settings.particles])], [], 0
  count = settings.iterations * settings.episodes_per_iteration
  for length in lengths:
    chain = settings.chain(length)
    for seed in range(settings.seeds):
      generator = np.random.default_rng([seed, length])
      shape = [chain.steps, settings.particles]
      particles.append(generator.normal(_CENTRE, settings.deviation, shape))
      played = chain_lib.episodes(chain, count, generator)
      clocks = (settings.clock, settings.copy)
      time, period = (
        clock(played.episode, settings.episodes_per_iteration)
        for clock in clocks
      )
      learners.append(
        evaluation.Transitions(
          row=first + played.state,
          successor=first + played.successor,
          period=period,
          reward=played.reward,
          discount=np.where(played.ends, 0.0, settings.gamma),
          rate=time**-0.2,
        )
      )
      first += chain.steps
  return np.concatenate(particles), learners


def _moments(
  settings: Settings,
  lengths: Sequence[int],
  method: Method,
  table: np.ndarray,
) -> Dict[int, np.ndarray]:
  """[seeds, ORDER] moments at s_0 for each length."""
  result, first = {}, 0
  for length in lengths:
    steps = settings.chain(length).steps
    starts = first + steps * np.arange(settings.seeds)
    values, weights = method.decode(table[starts].astype(np.float64))
    result[length] = process_lib.central_moments(values, weights, ORDER)
    first += steps * settings.seeds
  return result


def _rows(
  settings: Settings, moments: Mapping[str, Mapping[int, np.ndarray]]
) -> List[Row]:
  rows = []
  for length in settings.lengths:
    chain = settings.chain(length)
    exact = chain.exact_moments(ORDER)
    # A generator of its own: the rollouts share nothing with the learners.
    generator = np.random.default_rng([settings.seeds, length])
    returns = chain_lib.rollouts(chain, settings.rollouts, generator)
    uniform = np.full(settings.rollouts, 1 / settings.rollouts)
    sampled = process_lib.central_moments(returns, uniform, ORDER)
    for name, by_length in moments.items():
      # The terminal state of the chain of length 1 has no particles to learn:
      # its return is 0 for every method.
      runs = by_length.get(length, np.zeros([settings.seeds, ORDER]))
      mean, half = runs.mean(0), _half_interval(runs)
      low, high = mean - half, mean + half
      columns = (mean, low, high, sampled, exact, np.abs(runs - exact).mean(0))
      for i, numbers in enumerate(np.stack(columns, -1).tolist()):
        rows.append(Row(length, name, i + 1, *numbers))
  return rows


def _half_interval(runs: np.ndarray) -> np.ndarray:
  """Half the 95 % interval of the mean over the first axis; NaN for one run."""
  count = len(runs)
  if count < 2:
    return np.full(runs.shape[1:], np.nan)
  t = tfp.distributions.StudentT(np.float64(count - 1), 0.0, 1.0)
  error = runs.std(0, ddof=1) / np.sqrt(count)
  return t.quantile(np.float64(0.975)).numpy() * error
