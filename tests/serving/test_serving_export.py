"""An export is the run's policy, for whoever has only TensorFlow."""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest
import serving_fixtures
import tensorflow as tf
from tf_agents.policies import py_tf_eager_policy
from tf_agents.trajectories import time_step as ts

from tf_mmdrl import serving
from tf_mmdrl.cli import main
from tf_mmdrl.core import ReturnDistribution, UserError, run_files
from tf_mmdrl.serving import formats
from tf_mmdrl.train import config as configs
from tf_mmdrl.train import exporting

# Runs an export where this project and TF-Agents cannot be imported.
_ELSEWHERE = """
import sys

class Blocked:
  def find_spec(self, name, path=None, target=None):
    blocked = ("tf_agents", "tensorflow_probability", "tf_mmdrl", "tf_keras")
    if name.split(".")[0] in blocked:
      raise ModuleNotFoundError(f"{name} is not here", name=name)

sys.meta_path.insert(0, Blocked())
for name in ("tf_agents", "tf_mmdrl"):
  try:
    __import__(name)
  except ModuleNotFoundError:
    pass
  else:
    raise SystemExit(f"{name} can be imported")

import numpy as np
import tensorflow as tf

model = tf.saved_model.load(sys.argv[1])
given = np.load(sys.argv[2])
answers = {}
for size in given.files:
  observation = tf.constant(given[size])
  level = tf.fill([len(given[size])], 0.3)
  for name, inputs in {
    "serving_default": dict(observation=observation),
    "action": dict(observation=observation),
    "action_bytes": dict(
      observation_bytes=tf.constant([row.tobytes() for row in given[size]])
    ),
    "particles": dict(observation=observation),
    "risk": dict(observation=observation, level=level),
  }.items():
    for key, value in model.signatures[name](**inputs).items():
      answers[f"{name}/{key}/{size}"] = value.numpy()
np.savez(sys.argv[3], **answers)
"""
_SIZES = (1, 7, 256)


@pytest.fixture(scope="module")
def exported(run, tmp_path_factory):
  """The path of a version with everything beside it."""
  directory = tmp_path_factory.mktemp("exported")
  flags = ["--format", "tflite", "--policy-saver"]
  if importlib.util.find_spec("tf2onnx"):
    flags += ["--format", "onnx"]
  assert main.main(["export", str(run), "-o", str(directory), *flags]) == 0
  return directory / "320"


def test_plain_tensorflow_gives_what_the_agent_does(run, state, tmp_path):
  given = {str(size): serving_fixtures.observations(size) for size in _SIZES}
  np.savez(tmp_path / "given.npz", **given)
  files = [tmp_path / "given.npz", tmp_path / "answers.npz"]
  done = subprocess.run(
    [sys.executable, "-c", _ELSEWHERE, run / "export" / "320", *files],
    capture_output=True,
    text=True,
    cwd=tmp_path,
    env={k: v for k, v in os.environ.items() if k != "TF_USE_LEGACY_KERAS"},
  )
  assert done.returncode == 0, done.stderr
  answers = np.load(files[1])
  for size, observation in given.items():
    step = ts.restart(tf.constant(observation), batch_size=len(observation))
    action = state.agent.policy.action(step).action
    output, _ = state.agent.return_network(observation)
    returns = ReturnDistribution.of(output)
    for name in ("serving_default", "action", "action_bytes"):
      np.testing.assert_array_equal(answers[f"{name}/action/{size}"], action)
      found = answers[f"{name}/q_values/{size}"]
      np.testing.assert_allclose(found, returns.mean(), atol=1e-6)
    found = answers[f"particles/values/{size}"]
    np.testing.assert_allclose(found, returns.values, atol=1e-6)
    np.testing.assert_allclose(answers[f"particles/weights/{size}"], 1 / 5)
    found = answers[f"risk/cvar/{size}"]
    np.testing.assert_allclose(found, returns.cvar(0.3), atol=1e-6)
    found = answers[f"risk/action/{size}"]
    np.testing.assert_array_equal(found, np.argmax(returns.cvar(0.3), -1))


def test_every_export_says_what_it_is(run, state):
  rows = {row["step"]: row for row in run_files.RunFiles(run).rows()}
  for number in serving.versions(run / "export"):
    content = serving.metadata(run / "export", number)
    assert content["step"] == number
    assert content["score"] == rows[number]["evaluation_score"]
    assert content["environment"] == "MinAtar/Breakout"
    assert content["agent"] == "mmdqn"
    assert content["versions"]["tensorflow"] == tf.__version__
    assert configs.from_json(content["config"]) == state.config
  assert 320 in serving.versions(run / "export")


def test_a_step_without_an_evaluation_has_no_score(state, monkeypatch):
  monkeypatch.setattr(state.metrics, "last_evaluation", 160)
  assert exporting.describe(state)["score"] is None


def test_weighted_particles_keep_their_weights(tmp_path):
  net = serving_fixtures.weighted_network()
  path = serving.publish(net, tmp_path, 3)
  signatures = tf.saved_model.load(str(path)).signatures
  observation = serving_fixtures.observations(5)
  output, _ = net(observation)
  found = signatures["particles"](observation=tf.constant(observation))
  np.testing.assert_allclose(found["values"], output.values, atol=1e-6)
  weights = np.exp(output.log_weights)
  np.testing.assert_allclose(found["weights"], weights, atol=1e-6)
  levels = np.array([0.05, 0.3, 0.5, 0.9, 1.0], np.float32)
  found = signatures["risk"](
    observation=tf.constant(observation), level=tf.constant(levels)
  )
  cvar = output.cvar(levels[:, np.newaxis])
  np.testing.assert_allclose(found["cvar"], cvar, atol=1e-6)
  np.testing.assert_array_equal(found["action"], np.argmax(cvar, -1))


@pytest.mark.parametrize("level", [0.0, -1.0, 1.5, float("nan")])
def test_a_level_outside_of_its_range_is_told(run, level):
  model = tf.saved_model.load(str(run / "export" / "320"))
  observation = tf.constant(serving_fixtures.observations(2))
  with pytest.raises(tf.errors.InvalidArgumentError, match="level must lie in"):
    model.signatures["risk"](observation=observation, level=tf.constant(level))


def test_onnx_agrees(exported, state):
  pytest.importorskip("tf2onnx")
  onnxruntime = pytest.importorskip("onnxruntime")
  path = exported / "assets.extra" / "policy.onnx"
  session = onnxruntime.InferenceSession(str(path))
  names = [output.name for output in session.get_outputs()]
  for size in _SIZES:
    observation = serving_fixtures.observations(size)
    answers = session.run(names, {"observation": observation})
    _compare(dict(zip(names, answers)), state, observation)


def test_tflite_agrees(exported, state):
  path = exported / "assets.extra" / "policy.tflite"
  runner = tf.lite.Interpreter(str(path)).get_signature_runner()
  for size in _SIZES:
    observation = serving_fixtures.observations(size)
    _compare(runner(observation=observation), state, observation)


def _compare(answers, state, observation):
  output, _ = state.agent.return_network(observation)
  returns = ReturnDistribution.of(output)
  np.testing.assert_allclose(answers["q_values"], returns.mean(), atol=1e-5)
  np.testing.assert_allclose(answers["values"], returns.values, atol=1e-5)
  np.testing.assert_allclose(answers["weights"], returns.weights(), atol=1e-5)
  best = np.argmax(answers["q_values"], -1)
  np.testing.assert_array_equal(answers["action"], best)


def test_tf_agents_loads_its_own_form_with_the_weights_of_now(exported, state):
  policy = py_tf_eager_policy.SavedModelPyTFEagerPolicy(
    str(exported / "assets.extra" / "policy_saver"),
    state.agent.time_step_spec,
    state.agent.action_spec,
    batch_time_steps=False,
  )
  observation = serving_fixtures.observations(16)
  step = ts.restart(tf.constant(observation), batch_size=16)
  wanted = state.agent.policy.action(step).action
  assert len(set(wanted.numpy())) > 1
  step = ts.restart(observation, batch_size=16)
  np.testing.assert_array_equal(policy.action(step).action, wanted)
  assert policy.get_train_step() == state.updates


def test_what_onnx_needs_is_told(state, monkeypatch):
  monkeypatch.setitem(sys.modules, "tf2onnx", None)
  with pytest.raises(UserError, match=r"pip install 'tf-mmdrl\[onnx\]'"):
    formats.onnx(state.agent.return_network)


def test_a_misspelt_format_is_told(state, tmp_path):
  with pytest.raises(UserError, match="did you mean 'onnx'"):
    exporting.export(state, tmp_path, formats=["onx"])


def test_an_export_that_cannot_be_written_is_one_line(run, tmp_path, capsys):
  file = tmp_path / "file"
  file.touch()
  assert main.main(["export", str(run), "-o", str(file)]) == 2
  error = capsys.readouterr().err
  assert "cannot write to" in error and error.count("\n") == 1


def test_saved_model_cli_lists_the_signatures(run):
  command = "from tensorflow.python.tools.saved_model_cli import main; main()"
  done = subprocess.run(
    [sys.executable, "-c", command, "show", "--all", "--dir"]
    + [str(run / "export" / "320")],
    capture_output=True,
    text=True,
  )
  for name in (
    "serving_default",
    "action",
    "action_bytes",
    "particles",
    "risk",
  ):
    assert f"signature_def['{name}']" in done.stdout, done.stderr
  assert "shape: (-1, 10, 10, 4)" in done.stdout
  assert "shape: (-1, 6, 5)" in done.stdout  # values, weights


def test_metadata_of_others_is_empty_and_damaged_ones_are_told(tmp_path):
  (tmp_path / "1" / "assets").mkdir(parents=True)
  assert serving.metadata(tmp_path, 1) == {}
  path = tmp_path / "1" / "assets" / "metadata.json"
  path.write_text(json.dumps({"step": 1})[:-1])
  with pytest.raises(UserError, match="cannot be read"):
    serving.metadata(tmp_path, 1)


def test_an_export_that_does_not_fit_is_one_line_and_nothing(
  run, small_disk, capfd
):
  target = small_disk(16) / "new" / "policies"
  code = main.main(["export", str(run), "-o", str(target)])
  shown = capfd.readouterr().err.strip()
  assert code == main.EXIT_BAD_INPUT and "\n" not in shown
  assert "No space left on device; it needs" in shown
  assert "SaveV2" not in shown and "node" not in shown
  assert not list(target.parents[1].iterdir())
