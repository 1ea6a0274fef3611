"""Real streams of the Arcade Learning Environment, kept exactly."""

import numpy as np
import pytest
from ale_py.vector_env import AtariVectorEnv
from replay_oracle import FIRST, LAST, MID, make_spec
from tf_agents.trajectories import trajectory

from tf_mmdrl.replay import FrameReplayBuffer


def atari_steps(game, num_envs, steps, *, seed=0, max_frames=2000):
  """Yields [B, ...] trajectories; life loss is a discount of 0."""
  env = AtariVectorEnv(
    game,
    num_envs=num_envs,
    num_threads=1,
    max_num_frames_per_episode=max_frames,
  )
  rng = np.random.default_rng(seed)
  seen, info = env.reset(seed=seed)
  lives = info["lives"]
  before = np.full([num_envs], FIRST, np.int32)
  for _ in range(steps):
    action = rng.integers(env.single_action_space.n, size=num_envs)
    after, reward, terminated, truncated, info = env.step(action)
    step_type = np.where(terminated | truncated, LAST, MID).astype(np.int32)
    step_type[before == LAST] = FIRST  # the step that resets
    lost = terminated | (info["lives"] < lives)
    lost &= step_type != FIRST
    yield trajectory.Trajectory(
      step_type=before,
      observation=np.ascontiguousarray(np.moveaxis(seen, 1, -1)),
      action=action,
      policy_info=(),
      next_step_type=step_type,
      reward=reward.astype(np.float32),
      discount=(~lost).astype(np.float32),
    )
    seen, before, lives = after.copy(), step_type, info["lives"]
  env.close()


@pytest.mark.parametrize("game", ["pong", "breakout"])
def test_atari_stacks_are_rebuilt(game):
  """Several games a row, lives lost, games cut short, and the ring wrapped."""
  max_length = 250
  buffer = FrameReplayBuffer(
    make_spec((84, 84, 4)), 3, max_length, stack=4, n_step=3
  )
  shown, ends, lives = [], 0, 0
  for step in atari_steps(game, 3, 700):
    buffer.add_batch(step)
    shown.append(step)
    ends += np.count_nonzero(step.step_type == LAST)
    lives += np.count_nonzero(
      (step.discount == 0) & (step.next_step_type == MID)
    )
  assert ends >= 3
  assert lives > 0 or game == "pong"
  kept = buffer.gather_all()
  length = kept.reward.shape[1]
  # Three frames more for each game; the room for them is one in 64.
  assert length > max_length - 3 * 4
  for name in ("observation", "step_type", "reward", "discount", "action"):
    expected = np.stack([getattr(s, name) for s in shown[-length:]], axis=1)
    np.testing.assert_array_equal(getattr(kept, name), expected)
  # One frame for each step, three more for each game, and nothing else.
  starts = sum((step.step_type == FIRST).astype(int) for step in shown)
  np.testing.assert_array_equal(
    buffer.replay.store.frame_heads, len(shown) + 3 * starts
  )
  items, info = buffer.sample(64)
  for k, id_ in enumerate(info.ids.numpy()):
    step, row = divmod(int(id_), 3)
    for t in range(4):
      np.testing.assert_array_equal(
        items.observation[k, t], shown[step + t].observation[row]
      )
