"""Fits: to the exact fixed point, in blocks, and on after a cut."""

import tracemalloc

import finite
import numpy as np
import pytest

from tf_mmdrl.core import errors
from tf_mmdrl.offline import (
  blocks,
  fitting,
  laws,
  neighbours,
  ope,
  opening,
)
from tf_mmdrl.train import config as configs

_GAMMA = 0.7


def _source(process, budget=2**30):
  data, weights = process.transitions()
  source = blocks.Source(
    data,
    process.probabilities,
    blocks.Scale(),
    budget=budget,
    seed=0,
    held_out=0.0,
    weights=weights,
  )
  return data, source


def _fit(process, agent="mmdqn", settings=None, directory=None, changes=()):
  data, source = _source(process)
  config = configs.change(
    ope.base_config(agent, _GAMMA, False, 0),
    [
      "network.num_particles=40",
      "schedule.target_period=10",
      "system.xla=off",
      "optimizer.learning_rate=3e-3",
      *changes,
    ],
  )
  return fitting.Fit(
    config,
    data.description,
    source,
    settings or fitting.Settings(period=100, most=1500, patience=2),
    horizon=1000,
    bounds=fitting.possible_returns(
      (process.rewards.min(), process.rewards.max()), _GAMMA, ends=True
    ),
    directory=directory,
  )


def _energy(process, fit):
  """The largest energy distance to the exact returns, over states, actions."""
  values, weights = process.exact(_GAMMA)
  got, mass = fit.returns(np.eye(len(process.policy), dtype=np.float32))
  return max(
    laws.line_distances(
      np.concatenate([values[pair], got[pair]]),
      np.concatenate([weights[pair], -mass[pair]]),
    )[1]
    for pair in np.ndindex(*process.policy.shape)
  )


@pytest.mark.parametrize("name", ["chain", "random"])
def test_fits_come_to_the_exact_returns(name):
  process = finite.chain() if name == "chain" else finite.random(1)
  fit = _fit(process)
  fit.run()
  assert _energy(process, fit) < 1e-2
  assert fit.history[-1].updates >= fit.least


@pytest.mark.slow
@pytest.mark.parametrize(
  "agent", ["mmdqn", "qrdqn", "iqn", "c51", "weighted_mmdqn"]
)
@pytest.mark.parametrize("seed", [2, 3])
def test_every_agent_comes_to_the_exact_returns(agent, seed):
  process = finite.random(seed)
  settings = fitting.Settings(period=250, most=5000, patience=3)
  changes = ["network.num_particles=101"] if agent == "c51" else []
  fit = _fit(process, agent, settings, changes=changes)
  fit.run()
  # Quantiles, by Huber's loss, and atoms are not what the distance asks for.
  assert _energy(process, fit) < (1e-2 if "mmd" in agent else 5e-2)


def test_a_fit_goes_on_bit_for_bit(tmp_path):
  process = finite.random(1)
  settings = fitting.Settings(period=20, most=80)
  whole = _fit(process, settings=settings)
  whole.run()

  class CutError(Exception):
    pass

  def cut(look):
    if look.updates == 40:
      raise CutError

  first = _fit(process, settings=settings, directory=tmp_path / "fit")
  with pytest.raises(CutError):
    first.run(cut)
  second = _fit(process, settings=settings, directory=tmp_path / "fit")
  assert second.restore(lambda text: None) and second.updates == 40
  second.run()
  assert second.history == whole.history
  for one, other in zip(whole.variables(), second.variables(), strict=True):
    np.testing.assert_array_equal(one, other)
  other = _fit(
    process,
    settings=settings,
    directory=tmp_path / "fit",
    changes=["optimizer.learning_rate=1e-3"],
  )
  with pytest.raises(errors.UserError, match="holds a fit with another config"):
    other.restore(lambda text: None)


def test_blocks_cover_all_episodes_in_every_pass():
  """A budget of a few episodes: every pass reads all, in another order."""
  data, source = _source(finite.random(1))
  assert source.num_blocks == 1
  size = data.description.step_bytes
  _, small = _source(finite.random(1), budget=24 * size)
  count = small.num_blocks
  assert count > 2
  passes = []
  for epoch in range(2):
    parts = [small.block(epoch * count + n) for n in range(count)]
    assert max(len(part.actions) for part in parts) <= 6
    passes.append(np.concatenate([part.rewards for part in parts]))
  assert sorted(passes[0]) == sorted(passes[1])
  assert not np.array_equal(*passes)
  again = small.block(1).rewards
  np.testing.assert_array_equal(
    again, _source(finite.random(1), 24 * size)[1].block(1).rewards
  )
  assert len(source.block(5).actions) == len(data)


@pytest.mark.parametrize("seed", [1, 2])
def test_neighbours_of_a_finite_process_are_the_process(seed):
  """One-hot states are far apart: the model is the tabular fixed point."""
  process = finite.random(seed)
  data, weights = process.transitions()
  block = blocks.load(
    data.episodes, process.probabilities, blocks.Scale(), weights
  )
  model = neighbours.fit(block, gamma=_GAMMA, bandwidth=0.05, atoms=801)
  values, exact = process.exact(_GAMMA)
  for state, chances in enumerate(process.policy):
    seen = np.eye(len(process.policy), dtype=np.float32)[[state]]
    got, mass = model.law(seen, chances[None])
    wanted = chances[:, None] * exact[state]
    _, energy = laws.line_distances(
      np.concatenate([got, values[state].ravel()]),
      np.concatenate([mass, -wanted.ravel()]),
    )
    assert energy < 1e-3
    grid = laws.make_grid(-8, 8, 1)
    on_grid = model.on_grid(seen, chances[None], grid)[0]
    assert on_grid @ grid == pytest.approx(got @ mass, abs=1e-6)


def test_neighbours_warn_when_sweeps_run_out(monkeypatch, capsys):
  process = finite.random(1)
  data, _ = process.transitions()
  block = blocks.load(data.episodes, process.probabilities, blocks.Scale())
  neighbours.fit(block, gamma=_GAMMA)
  assert not capsys.readouterr().err
  monkeypatch.setattr(neighbours, "_SWEEPS", 2)
  neighbours.fit(block, gamma=_GAMMA)
  assert "still changed after 2 sweeps" in capsys.readouterr().err


def test_memory_keeps_to_the_budget(tmp_path):
  """48 MB of transitions, read in 8 MB: what is allocated never exceeds it."""
  rng = np.random.default_rng(0)
  seen = rng.normal(size=[30_000, 200]).astype(np.float32)
  np.savez(
    tmp_path / "large.npz",
    observations=seen,
    next_observations=seen,
    actions=rng.integers(2, size=30_000),
    rewards=np.ones(30_000, np.float32),
    terminations=np.arange(30_000) % 100 == 99,
  )
  del seen
  budget = 8 * 2**20
  data = opening.open_dataset(str(tmp_path / "large.npz"))
  even = np.array([[0.5, 0.5]])
  tracemalloc.start()
  try:
    source = blocks.Source(
      data,
      lambda observations: np.repeat(even, len(observations), axis=0),
      blocks.scale_of(data),
      budget=budget,
      seed=0,
    )
    count = source.num_blocks
    steps = sum(len(source.block(n).actions) for n in range(count))
    _, peak = tracemalloc.get_traced_memory()
  finally:
    tracemalloc.stop()
  assert steps == 27_000  # a tenth of the episodes is held out
  assert peak < budget


def test_the_least_updates_bring_rewards_all_the_way():
  settings = fitting.Settings(most=10_000)
  assert settings.least(0.9, 1000, 20) == 38 * 20  # 0.9^38 < 0.02 < 0.9^37
  assert settings.least(0.99, 50, 20) == 50 * 20
  assert settings.least(1.0, 2000, 20) == 10_000
  assert settings.least(0.0, 2000, 20) == 20


def test_a_fit_whose_updates_ran_out_has_not_settled(tmp_path):
  """Though its learning rate had fallen for the last time before."""
  settings = fitting.Settings(period=1, most=4, patience=2, drops=1)
  fit = _fit(finite.random(1), settings=settings)
  fit.least = 0
  for updates, residual in enumerate([1.0, 1.0, 1.0, 0.5], start=1):
    fit._judge(fitting.Look(updates, residual, 0.0))
  assert fit.is_over and fit._drops == 1 and not fit.has_settled
  fit.begin(fit.variables(), fit._source)
  for residual in [1.0] * 5:
    fit._judge(fitting.Look(1, residual, 0.0))
  assert fit.is_over and fit.has_settled
  fit._write(tmp_path)
  again = _fit(finite.random(1), settings=settings)
  again._read(tmp_path)
  assert again.has_settled


def test_possible_returns_are_what_rewards_allow():
  """At least one reward follows; the last one where episodes end."""
  rewards = np.array([-1.0, 0.5]), np.array([2.0, 1.0])
  low, high = fitting.possible_returns(rewards, 0.9, ends=True)
  np.testing.assert_allclose(low, [-10, 0.5])
  np.testing.assert_allclose(high, [20, 10])
  low, high = fitting.possible_returns(rewards, 0.9, ends=False)
  np.testing.assert_allclose(low, [-10, 5])
  assert fitting.possible_returns(rewards, 1.0, ends=True) is None


def test_fits_that_run_away_stay_within_what_rewards_allow():
  """Rewards of 1 from states that all lead to one that no action leaves."""
  process = finite.random(1)
  process.rewards[:] = 1.0
  process.ends[:] = False
  fit = _fit(process, settings=fitting.Settings(period=20, most=20))
  for variable in fit.agent.return_network.trainable_weights:
    variable.assign(variable * 30)
  values, _ = fit.returns(np.eye(4, dtype=np.float32))
  assert values.min() >= 1 and values.max() <= 1 / (1 - _GAMMA) + 1e-5
  fit.agent._networks.copy_to_target()
  target = fit.agent.look(_one_batch(fit)).target.values.numpy()
  assert target.min() >= 1 and target.max() <= 1 / (1 - _GAMMA) + 1e-5


def _one_batch(fit):
  block = fit._source.block(0)
  return fitting._experience(block[:-1])


def test_scaled_rewards_are_refused():
  with pytest.raises(errors.UserError, match="agent.reward_scale = 2"):
    _fit(finite.random(1), changes=["agent.reward_scale=2"])
