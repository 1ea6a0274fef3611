"""Data sets are read as they were written, in every format, or refused."""

import json

import h5py
import minari
import numpy as np
import offline_fixtures
import pytest
from gymnasium import spaces
from minari.data_collector import EpisodeBuffer
from minari.dataset.minari_storage import MinariStorage

from tf_mmdrl.core import errors
from tf_mmdrl.offline import dataset, opening
from tf_mmdrl.offline.dataset import Description


def _csv(path, made):
  arrays = offline_fixtures.transitions(made)
  names = [f"observation_{i}" for i in range(3)]
  names += [f"next_observation_{i}" for i in range(3)]
  names += ["action", "reward", "terminated", "episode"]
  columns = [
    *arrays["observations"].T,
    *arrays["next_observations"].T,
    arrays["actions"],
    arrays["rewards"],
    arrays["terminations"],
    arrays["episodes"],
  ]
  if "behaviour_probabilities" in arrays:
    names.append("behaviour_probability")
    columns.append(arrays["behaviour_probabilities"])
  lines = [",".join(names)]
  lines += [
    ",".join(repr(cell.item()) for cell in row) for row in zip(*columns)
  ]
  path.write_text("\n".join(lines) + "\n")
  return path


def _npz(path, made, save=np.savez):
  save(path, **offline_fixtures.transitions(made))
  return path


_WRITERS = {
  "minari": lambda path, made: offline_fixtures.write(path / "toy", made),
  "npz": lambda path, made: _npz(path / "toy.npz", made),
  "npz_compressed": lambda path, made: _npz(
    path / "toy.npz", made, np.savez_compressed
  ),
  "csv": lambda path, made: _csv(path / "toy.csv", made),
}


@pytest.mark.parametrize("behaviour", [True, False])
@pytest.mark.parametrize("kind", _WRITERS)
def test_every_format_gives_back_the_episodes(kind, behaviour, tmp_path):
  made = offline_fixtures.episodes(behaviour=behaviour)
  data = opening.open_dataset(str(_WRITERS[kind](tmp_path, made)))
  assert data.lengths.tolist() == [len(episode.actions) for episode in made]
  assert data.has_behaviour == behaviour
  assert data.description[:3] == offline_fixtures.DESCRIPTION[:3]
  order = [3, 0, 4]
  for index, got in zip(order, data.read(order), strict=True):
    for part, wanted in zip(got, made[index]):
      np.testing.assert_array_equal(part, wanted)
  summary = dataset.summarize(data)
  assert summary.num_terminated == 3
  actions = np.concatenate([episode.actions for episode in made])
  np.testing.assert_array_equal(summary.action_counts, np.bincount(actions))


def test_minari_reads_what_was_written(tmp_path):
  made = offline_fixtures.episodes()
  path = offline_fixtures.write(tmp_path / "toy-v1", made)
  theirs = minari.MinariDataset(path / "data")
  assert theirs.spec.dataset_id == "toy-v1"
  assert theirs.total_steps == sum(len(episode.actions) for episode in made)
  for got, wanted in zip(theirs.iterate_episodes(), made, strict=True):
    np.testing.assert_array_equal(got.observations[:-1], wanted.observations)
    np.testing.assert_array_equal(got.actions, wanted.actions)
    assert got.terminations[-1] == wanted.terminated != got.truncations[-1]
    np.testing.assert_array_equal(
      got.infos["behaviour_probability"], wanted.behaviour
    )


def test_large_pictures_lose_no_digit(tmp_path):
  """Minari would store them as JPEGs; its reader takes ours as plain rows."""
  rng = np.random.default_rng(0)
  pixels = rng.integers(256, size=[4, 40, 40, 4]).astype(np.uint8)
  episode = offline_fixtures.episodes(1)[0]._replace(
    observations=pixels[:1], next_observations=pixels[1:2]
  )
  description = Description((40, 40, 4), np.dtype(np.uint8), 2)
  path = offline_fixtures.write(tmp_path / "pixels", [episode], description)
  (got,) = opening.open_dataset(str(path)).read([0])
  np.testing.assert_array_equal(got.next_observations, pixels[1:2])
  (theirs,) = minari.MinariDataset(path / "data").iterate_episodes()
  assert theirs.observations.shape == (2, 6400)


_SPACES = {
  "float64": (spaces.Box(-1, 1, [2], np.float64), (2,), np.float32),
  "discrete": (spaces.Discrete(4, start=1), (4,), np.float32),
  "nested": (
    spaces.Dict(a=spaces.Box(-1, 1, [2, 2]), b=spaces.Discrete(3)),
    (7,),
    np.float32,
  ),
  "tuple": (
    spaces.Tuple([spaces.Box(0, 1, [1]), spaces.MultiBinary(2)]),
    (3,),
    np.float32,
  ),
  "pictures": (
    spaces.Box(0, 255, [32, 32, 3], np.uint8),
    (32, 32, 3),
    np.uint8,
  ),
}


@pytest.mark.parametrize("name", _SPACES)
def test_data_sets_of_minari_itself_are_read(name, tmp_path):
  space, shape, dtype = _SPACES[name]
  space.seed(0)
  seen = [space.sample() for _ in range(4)]
  if name == "nested":
    stored = {
      "a": np.stack([each["a"] for each in seen]),
      "b": np.stack([each["b"] for each in seen]),
    }
  elif name == "tuple":
    stored = tuple(np.stack(part) for part in zip(*seen))
  else:
    stored = list(seen) if name == "pictures" else np.stack(seen)
  folder = tmp_path / "data"
  storage = MinariStorage.new(
    folder, observation_space=space, action_space=spaces.Discrete(2, start=5)
  )
  buffer = EpisodeBuffer(
    observations=stored,
    actions=np.array([5, 6, 5]),
    rewards=[1.0, 2.0, 3.0],
    terminations=[False, False, True],
    truncations=[False] * 3,
    # As Minari collects it: the first one comes with the reset.
    infos={"behaviour_probability": np.array([0.0, 0.5, 0.25, 0.5])},
  )
  storage.update_episodes([buffer])
  data = opening.open_dataset(str(tmp_path))
  (episode,) = data.read([0])
  assert episode.actions.tolist() == [0, 1, 0]
  assert episode.terminated and episode.behaviour.tolist() == [0.5, 0.25, 0.5]
  assert data.description.observation_shape == shape
  assert episode.observations.dtype == dtype
  if name != "pictures":  # which are JPEGs
    flat = np.stack([spaces.flatten(space, each) for each in seen])
    np.testing.assert_allclose(
      episode.next_observations.reshape([3, -1]), flat[1:], rtol=1e-6
    )


def test_a_local_id_is_found(tmp_path, monkeypatch):
  monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
  offline_fixtures.write(tmp_path / "toy-v0", offline_fixtures.episodes())
  assert len(opening.open_dataset("toy-v0")) == 5


def test_blocks_keep_to_the_budget_and_lose_nothing(tmp_path):
  made = offline_fixtures.episodes(20)
  data = opening.open_dataset(str(_npz(tmp_path / "toy.npz", made)))
  order = np.random.default_rng(0).permutation(20)
  parts = dataset.blocks(data, 8 * data.description.step_bytes, order)
  assert sum(parts, []) == order.tolist()
  assert len(parts) > 5
  assert max(data.lengths[part].sum() for part in parts) <= 8


def _changed(name, change):
  """Data sets whose array `name` is changed."""

  def make(path):
    arrays = offline_fixtures.transitions(offline_fixtures.episodes())
    change(arrays[name])
    np.savez(path / "bad.npz", **arrays)
    return path / "bad.npz"

  return make


def _without(name):
  def make(path):
    arrays = offline_fixtures.transitions(offline_fixtures.episodes())
    del arrays[name]
    np.savez(path / "bad.npz", **arrays)
    return path / "bad.npz"

  return make


def _set(value, at=3):
  def change(array):
    array[at] = value

  return change


def _continuous(path):
  made = offline_fixtures.write(path / "bad", offline_fixtures.episodes())
  file = made / "data" / "metadata.json"
  content = json.loads(file.read_text())
  content["action_space"] = json.dumps({"type": "Box", "shape": [2]})
  file.write_text(json.dumps(content))
  return made


def _float_actions(path):
  arrays = offline_fixtures.transitions(offline_fixtures.episodes())
  arrays["actions"] = arrays["actions"] + 0.5
  np.savez(path / "bad.npz", **arrays)
  return path / "bad.npz"


def _pickled(path):
  arrays = offline_fixtures.transitions(offline_fixtures.episodes())
  arrays["rewards"] = np.array([{}] * len(arrays["rewards"]), object)
  np.savez(path / "bad.npz", **arrays)
  return path / "bad.npz"


def _cut_hdf5(path):
  made = offline_fixtures.write(path / "bad", offline_fixtures.episodes())
  file = made / "data" / "main_data.hdf5"
  file.write_bytes(file.read_bytes()[:2000])
  return made


def _linked(path):
  made = offline_fixtures.write(path / "bad", offline_fixtures.episodes())
  with h5py.File(made / "data" / "main_data.hdf5", "a") as file:
    del file["episode_0/rewards"]
    file["episode_0/rewards"] = h5py.ExternalLink("/etc/passwd", "/")
  return made


def _changed_hdf5(change):
  """Minari data sets whose HDF5 file is changed."""

  def make(path):
    made = offline_fixtures.write(path / "bad", offline_fixtures.episodes())
    with h5py.File(made / "data" / "main_data.hdf5", "a") as file:
      change(file)
    return made

  return make


def _no_episodes(file):
  for name in list(file):
    del file[name]
  file.create_group("episode_first")


def _number_for_rewards(file):
  del file["episode_1/rewards"]
  file["episode_1/rewards"] = 1.0


def _array_for_episode(file):
  del file["episode_0"]
  file["episode_0"] = np.zeros(3)


def _half_hdf5(path):
  made = offline_fixtures.write(path / "bad", offline_fixtures.episodes())
  file = made / "data" / "main_data.hdf5"
  content = file.read_bytes()
  file.write_bytes(content[: len(content) * 3 // 4])
  return made


def _list_for_metadata(path):
  made = offline_fixtures.write(path / "bad", offline_fixtures.episodes())
  (made / "data" / "metadata.json").write_text("[]")
  return made


def _cut_npz(path):
  made = _npz(path / "bad.npz", offline_fixtures.episodes())
  made.write_bytes(made.read_bytes()[:700])
  return made


def _text(name, text):
  def make(path):
    (path / name).write_text(text)
    return path / name

  return make


_HEADER = "observation_0,next_observation_0,action,reward,terminated\n"
_BAD = {
  "continuous": (_continuous, "discrete action space is wanted, got Box"),
  "float_actions": (_float_actions, "actions must be whole numbers"),
  "nan_reward": (_changed("rewards", _set(np.nan)), "rewards must be finite"),
  "nan_seen": (
    _changed("observations", _set(np.inf)),
    "observations must be finite",
  ),
  "action": (_changed("actions", _set(-1)), "actions must lie in 0 to 1"),
  "chance": (
    _changed("behaviour_probabilities", _set(0.0)),
    r"must lie in \(0, 1\], got 0",
  ),
  "no_rewards": (_without("rewards"), "lacks the array 'rewards'"),
  "pickled": (_pickled, "must hold plain numbers"),
  "cut_hdf5": (_cut_hdf5, "not a whole HDF5 file"),
  "half_hdf5": (_half_hdf5, "not a whole HDF5 file"),
  "no_episodes": (_changed_hdf5(_no_episodes), "it has no episodes"),
  "no_array": (_changed_hdf5(_number_for_rewards), "is no plain array"),
  "no_group": (_changed_hdf5(_array_for_episode), "is no plain array"),
  "no_object": (_list_for_metadata, "holds no object"),
  "linked": (_linked, "is a link"),
  "cut_npz": (_cut_npz, "not a whole NPZ file"),
  "empty_npz": (_text("bad.npz", ""), "not a whole NPZ file"),
  "empty_csv": (_text("bad.csv", ""), "it lacks action, reward"),
  "no_lines": (_text("bad.csv", _HEADER), "has no transitions"),
  "words": (_text("bad.csv", _HEADER + "a,1,0,1,0\n"), "line 2 cannot be read"),
  "short": (_text("bad.csv", _HEADER + "1,1\n"), "5 cells are wanted"),
  "blank": (
    _text("bad.csv", _HEADER + "1,1,0,1,0\n\n1,1,0,1,1\n"),
    "line 3 is blank",
  ),
  "nan_action": (
    _text("bad.csv", _HEADER + "1,1,nan,1,1\n"),
    "actions must be whole numbers",
  ),
  "inf_action": (
    _text("bad.csv", _HEADER + "1,1,inf,1,1\n"),
    "actions must be whole numbers",
  ),
  "column": (
    _text("bad.csv", _HEADER.replace("_0,next", "_x,next") + "1,1,0,1,1\n"),
    "are wanted, got 'observation_x'",
  ),
  "nan_csv": (_text("bad.csv", _HEADER + "1,1,0,nan,0\n"), "must be finite"),
}


@pytest.mark.parametrize("name", _BAD)
def test_bad_data_is_refused_in_one_line(name, tmp_path):
  make, message = _BAD[name]
  path = make(tmp_path)
  with pytest.raises(errors.UserError, match=message) as caught:
    dataset.summarize(opening.open_dataset(str(path)))
  assert "\n" not in str(caught.value) and str(path) in str(caught.value)


def test_blank_lines_at_the_end_of_a_file_are_nothing(tmp_path):
  path = _text("data.csv", _HEADER + "1,1,0,1,1\n\n \n")(tmp_path)
  assert opening.open_dataset(str(path)).num_steps == 1


def test_nothing_there(tmp_path):
  with pytest.raises(errors.UserError, match="there is no data set"):
    opening.open_dataset(str(tmp_path / "nothing"))
