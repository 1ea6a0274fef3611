"""The TF-Agents contract: drivers, datasets, agents, and plain errors."""

import numpy as np
import pytest
import tensorflow as tf
from replay_oracle import Games, assert_same, make_spec
from tf_agents.agents.dqn import dqn_agent
from tf_agents.drivers import dynamic_step_driver, py_driver
from tf_agents.environments import (
  batched_py_environment,
  random_py_environment,
  tf_py_environment,
)
from tf_agents.networks import sequential
from tf_agents.policies import random_py_policy, random_tf_policy
from tf_agents.replay_buffers import replay_buffer, tf_uniform_replay_buffer
from tf_agents.specs import array_spec, tensor_spec
from tf_agents.trajectories import time_step as ts
from tf_agents.utils import common

from tf_mmdrl.core.errors import UserError
from tf_mmdrl.replay import (
  FrameReplayBuffer,
  PrioritizedSampler,
  UniformSampler,
  fingerprint,
)


def _buffer(steps=12, *, batch_size=2, n_step=2, **kwargs):
  buffer = FrameReplayBuffer(
    make_spec(), batch_size, 100, stack=4, n_step=n_step, **kwargs
  )
  games = Games(0, batch_size)
  for _ in range(steps):
    buffer.add_batch(games.step())
  return buffer


def _uniform_twin(steps=12):
  """TF-Agents' own buffer with the same content as `_buffer`."""
  twin = tf_uniform_replay_buffer.TFUniformReplayBuffer(make_spec(), 2, 100)
  games = Games(0, 2)
  for _ in range(steps):
    twin.add_batch(tf.nest.map_structure(tf.constant, games.step()))
  return twin


def _environment(batch_size):
  return batched_py_environment.BatchedPyEnvironment(
    [
      random_py_environment.RandomPyEnvironment(
        array_spec.BoundedArraySpec([3, 2, 4], np.uint8, 0, 9),
        array_spec.BoundedArraySpec([], np.int64, 0, 2),
        episode_end_probability=0.2,
        seed=seed,
      )
      for seed in range(batch_size)
    ]
  )


def test_is_a_replay_buffer():
  buffer = _buffer(0)
  assert isinstance(buffer, replay_buffer.ReplayBuffer)
  assert buffer.capacity == 200
  assert buffer.data_spec == make_spec()
  assert buffer.num_frames().dtype == tf.int64
  assert int(buffer.num_frames()) == 0


@pytest.mark.parametrize("sample_batch_size", [None, 3])
@pytest.mark.parametrize("num_steps", [None, 1, 3])
@pytest.mark.parametrize("time_stacked", [True, False])
def test_shapes_are_those_of_tf_agents(
  sample_batch_size, num_steps, time_stacked
):
  arguments = (sample_batch_size, num_steps, time_stacked)
  items, info = _buffer().get_next(*arguments)
  expected, expected_info = _uniform_twin().get_next(*arguments)
  shapes = tf.nest.map_structure(lambda t: (t.shape, t.dtype), items)
  assert shapes == tf.nest.map_structure(lambda t: (t.shape, t.dtype), expected)
  assert info.probabilities.shape == expected_info.probabilities.shape
  assert info.ids.shape == info.weights.shape == info.probabilities.shape


@pytest.mark.parametrize("sample_batch_size", [None, 3])
@pytest.mark.parametrize("num_steps", [None, 3])
def test_dataset_specs_are_those_of_tf_agents(sample_batch_size, num_steps):
  ours = _buffer().as_dataset(sample_batch_size, num_steps)
  theirs = _uniform_twin().as_dataset(sample_batch_size, num_steps)
  assert ours.element_spec[0] == theirs.element_spec[0]


def test_dataset_draws_what_sample_draws():
  one, two = _buffer(), _buffer()
  batches = iter(one.as_dataset(8, 3).prefetch(2))
  for _ in range(5):
    assert_same(next(batches), two.get_next(8, 3))


def test_gather_all_and_clear():
  buffer, twin = _buffer(), _uniform_twin()
  assert_same(buffer.gather_all(), twin.gather_all())
  buffer.clear()
  assert int(buffer.num_frames()) == buffer.num_starts == 0
  with pytest.raises(UserError, match="add more steps first"):
    buffer.sample(1)
  games = Games(8, 2)
  steps = [games.step() for _ in range(9)]
  for step in steps:
    buffer.add_batch(step)
  expected = np.stack([step.observation for step in steps], axis=1)
  np.testing.assert_array_equal(buffer.gather_all().observation, expected)


@pytest.mark.parametrize("num_steps", [None, 5])
def test_single_pass_is_that_of_tf_agents(num_steps):
  def all_items(buffer):
    dataset = buffer.as_dataset(
      num_steps=num_steps, single_deterministic_pass=True
    )
    return [items for items, _ in dataset]

  ours, theirs = all_items(_buffer()), all_items(_uniform_twin())
  if num_steps:  # the rest of 12 steps is not a sequence of 5
    theirs = [items for items in theirs if len(items.reward) == num_steps]
  assert len(ours) == len(theirs)
  for one, other in zip(ours, theirs):
    assert_same(one, other)


def test_single_pass_in_batches():
  dataset = _buffer().as_dataset(4, 3, single_deterministic_pass=True)
  ids = [info.ids.numpy().tolist() for _, info in dataset]
  # Steps 0, 3, 6, 9 of both environments; an id is 2 * step + environment.
  assert ids == [[0, 6, 12, 18], [1, 7, 13, 19]]


@pytest.mark.parametrize("compiled", [False, True])
def test_observes_a_tf_driver(compiled):
  environment = tf_py_environment.TFPyEnvironment(_environment(2))
  policy = random_tf_policy.RandomTFPolicy(
    environment.time_step_spec(), environment.action_spec()
  )
  spec = policy.collect_data_spec
  buffer = FrameReplayBuffer(spec, 2, 100, stack=4)
  twin = tf_uniform_replay_buffer.TFUniformReplayBuffer(spec, 2, 100)
  driver = dynamic_step_driver.DynamicStepDriver(
    environment,
    policy,
    observers=[buffer.add_batch, twin.add_batch],
    num_steps=40,
  )
  run = common.function(driver.run) if compiled else driver.run
  run()
  assert int(buffer.num_frames()) == int(twin.num_frames()) >= 40
  assert_same(buffer.gather_all(), twin.gather_all())


def test_observes_a_py_driver():
  environment = _environment(3)
  policy = random_py_policy.RandomPyPolicy(
    environment.time_step_spec(), environment.action_spec()
  )
  seen = []
  buffer = FrameReplayBuffer(make_spec(), 3, 100, stack=4)
  driver = py_driver.PyDriver(
    environment, policy, [buffer.add_batch, seen.append], max_steps=30
  )
  driver.run(environment.reset())
  expected = np.stack([step.observation for step in seen], axis=1)
  np.testing.assert_array_equal(buffer.gather_all().observation, expected)


@pytest.mark.parametrize("sampler", [UniformSampler, PrioritizedSampler])
def test_steps_at_once_are_steps_one_by_one(sampler):
  one, at_once = (
    FrameReplayBuffer(make_spec(), 2, 9, stack=4, n_step=2, sampler=sampler)
    for _ in range(2)
  )
  games = Games(0, 2)
  for count in (1, 4, 0, 7, 30, 2):  # as many as there is room for, and more
    steps = [games.step() for _ in range(count)]
    at_once.add_steps(steps)
    for step in steps:
      one.add_batch(step)
    assert at_once.num_starts == one.num_starts
    assert fingerprint(at_once) == fingerprint(one)


def test_one_bad_step_of_several_adds_none_of_them():
  buffer, games = _buffer(), Games(1, 2)
  steps, before = [games.step() for _ in range(3)], fingerprint(buffer)
  steps[2] = steps[2]._replace(reward=np.zeros([3], np.float32))
  with pytest.raises(UserError, match=r"reward of a step must be .* \[2\]"):
    buffer.add_steps(steps)
  assert fingerprint(buffer) == before


def test_counts_and_clears_inside_a_graph():
  buffer = _buffer()
  count = tf.function(buffer.num_frames)
  assert int(count()) == 24

  @tf.function
  def clear():
    buffer.clear()

  clear()
  assert int(count()) == 0


def _agent(n_step):
  observation = tf.TensorSpec([3, 2, 4], tf.uint8, "observation")
  layers = tf.keras.layers
  return dqn_agent.DqnAgent(
    ts.time_step_spec(observation),
    tensor_spec.BoundedTensorSpec([], tf.int64, 0, 4, "action"),
    q_network=sequential.Sequential(
      [
        layers.Lambda(lambda x: tf.cast(x, tf.float32)),
        layers.Flatten(),
        layers.Dense(5),
      ]
    ),
    optimizer=tf.keras.optimizers.Adam(1e-3),
    n_step_update=n_step,
  )


@pytest.mark.parametrize("n_step", [1, 3])
def test_trains_a_dqn_agent_with_priorities(n_step):
  agent = _agent(n_step)
  buffer = FrameReplayBuffer(
    agent.collect_data_spec,
    2,
    100,
    stack=4,
    n_step=n_step,
    sampler=PrioritizedSampler,
  )
  games = Games(0, 2)
  for _ in range(60):
    buffer.add_batch(games.step())
  train = common.function(agent.train)
  before = buffer.replay.sampler.state()[1]["weights"].copy()
  for beta in (0.4, 0.7, 1.0):
    experience, info = buffer.sample(16, beta=beta)
    loss = train(experience, weights=info.weights)
    buffer.update_priorities(info.ids, tf.abs(loss.extra.td_error))
    # Nothing sampled is masked out: every first step counts.
    assert not experience.is_boundary().numpy()[:, 0].any()
  assert np.isfinite(loss.loss)
  assert (buffer.replay.sampler.state()[1]["weights"] != before).any()


def test_trains_a_dqn_agent_from_the_dataset():
  agent = _agent(2)
  buffer = FrameReplayBuffer(agent.collect_data_spec, 2, 100, stack=4, n_step=2)
  games = Games(0, 2)
  for _ in range(40):
    buffer.add_batch(games.step())
  experience, _ = next(iter(buffer.as_dataset(16, 3)))
  assert np.isfinite(common.function(agent.train)(experience).loss)


@pytest.mark.parametrize(
  "change, message",
  [
    ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
    ({"stack": 0}, "stack must be at least 1, got 0"),
    ({"n_step": 0}, "n_step must be at least 1, got 0"),
    ({"max_length": 3, "n_step": 3}, "at least n_step [+] 1 = 4"),
    ({"stack": 3}, "stack=3 must divide the last axis .* 4"),
    ({"data_spec": tf.TensorSpec([])}, "must be a Trajectory .* TensorSpec"),
    ({"data_spec": make_spec([None, 4])}, "must have known shapes"),
    (
      {"data_spec": make_spec()._replace(observation=(tf.TensorSpec([4]),))},
      "needs an observation that is one array",
    ),
  ],
)
def test_bad_arguments(change, message):
  arguments = {
    "data_spec": make_spec(),
    "batch_size": 2,
    "max_length": 10,
    "stack": 4,
  }
  with pytest.raises(UserError, match=message):
    FrameReplayBuffer(**{**arguments, **change})


@pytest.mark.parametrize(
  "change, message",
  [
    (
      lambda step: step._replace(reward=step.reward.astype(np.float64)),
      r"reward of a step must be float32 \[2\], got float64 \[2\]",
    ),
    (
      lambda step: step._replace(observation=step.observation[:1]),
      r"must be uint8 \[2, 3, 2, 4\], got uint8 \[1, 3, 2, 4\]",
    ),
  ],
)
def test_bad_steps_are_refused_and_change_nothing(change, message):
  buffer = _buffer()
  before = buffer.gather_all()
  with pytest.raises(UserError, match=message):
    buffer.add_batch(change(Games(1, 2).step()))
  assert_same(buffer.gather_all(), before)


def test_bad_step_inside_a_graph():
  buffer = _buffer()

  @tf.function
  def add(step):
    buffer.add_batch(step)

  with pytest.raises(tf.errors.InvalidArgumentError, match=r"got int32 \[3\]"):
    add(Games(1, 3).step())


def test_bad_requests():
  buffer = _buffer(n_step=2)
  with pytest.raises(UserError, match="n_step [+] 1 = 3, got 4.*n_step=3"):
    buffer.as_dataset(2, 4)
  with pytest.raises(UserError, match="must be at least 1, got 1 and 0"):
    buffer.sample(0)
  with pytest.raises(NotImplementedError, match="map the dataset"):
    buffer.as_dataset(2, 2, sequence_preprocess_fn=lambda x: x)


def test_reading_what_has_left():
  buffer = _buffer()
  games = Games(3, 2)
  for _ in range(100):
    buffer.add_batch(games.step())
  with pytest.raises(UserError, match="newer ones have replaced"):
    buffer.replay.read(np.array([0]), 1)


def test_nests_are_kept_as_they_are():
  """With a stack of 1 an observation may have any structure."""
  spec = make_spec()._replace(
    observation={"board": tf.TensorSpec([2], tf.bool), "x": tf.TensorSpec([])},
    policy_info=(tf.TensorSpec([3], tf.float32),),
  )
  buffer = FrameReplayBuffer(spec, 2, 10)
  rng = np.random.default_rng(0)
  shown = []
  for _ in range(6):
    step = (
      Games(0, 2)
      .step()
      ._replace(
        observation={
          "board": rng.random([2, 2]) < 0.5,
          "x": rng.random(2, np.float32),
        },
        policy_info=(rng.random([2, 3], np.float32),),
      )
    )
    buffer.add_batch(step)
    shown.append(step)
  expected = tf.nest.map_structure(lambda *s: np.stack(s, axis=1), *shown)
  assert_same(buffer.gather_all(), expected)
  items, info = buffer.sample(1)
  step, row = divmod(int(info.ids[0]), 2)
  drawn = tf.nest.map_structure(lambda t: t[0], items)
  window = tf.nest.map_structure(
    lambda leaf: leaf[row, step : step + 2], expected
  )
  assert_same(drawn, window)
