"""Small data sets and policies that the tests of logged data share."""

import numpy as np

from tf_mmdrl.offline import minari_files, opening
from tf_mmdrl.offline.dataset import Description, Episode

DESCRIPTION = Description((3,), np.dtype(np.float32), 2, environment="Toy-v0")


def episodes(count=5, seed=0, behaviour=True):
  """Episodes of 1 to 6 steps, every second one cut off."""
  rng = np.random.default_rng(seed)
  made = []
  for number in range(count):
    steps = 1 + (number * 3) % 6
    seen = rng.normal(size=[steps + 1, 3]).astype(np.float32)
    made.append(
      Episode(
        seen[:-1],
        rng.integers(2, size=steps),
        rng.normal(size=steps).astype(np.float32),
        seen[1:],
        number % 2 == 0,
        rng.uniform(0.1, 1, steps) if behaviour else None,
      )
    )
  return made


def write(path, made, description=DESCRIPTION):
  """Writes episodes in Minari's format."""
  writer = minari_files.MinariWriter(path, description, {})
  for episode in made:
    writer.add(episode)
  return writer.close()


def transitions(made):
  """Episodes as the arrays of an NPZ file."""
  lengths = [len(episode.actions) for episode in made]
  ends = [np.zeros(length, bool) for length in lengths]
  for part, episode in zip(ends, made):
    part[-1] = episode.terminated
  arrays = {
    "observations": np.concatenate([e.observations for e in made]),
    "actions": np.concatenate([e.actions for e in made]),
    "rewards": np.concatenate([e.rewards for e in made]),
    "next_observations": np.concatenate([e.next_observations for e in made]),
    "terminations": np.concatenate(ends),
    "episodes": np.repeat(np.arange(len(made)), lengths),
  }
  if made[0].behaviour is not None:
    arrays["behaviour_probabilities"] = np.concatenate(
      [episode.behaviour for episode in made]
    )
  return arrays


def mostly_right(observations):
  """CartPole: pushes to the right three times in four."""
  return np.tile([[0.25, 0.75]], [len(observations), 1])


def left(observations):
  """Pushes to the left always."""
  return np.tile([[1.0, 0.0]], [len(observations), 1])


def opened(path):
  """The data set at a path."""
  return opening.open_dataset(str(path))
