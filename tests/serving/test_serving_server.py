"""The server: TensorFlow Serving's REST form, limits, reload, no leaks."""

import base64
import contextlib
import shutil
import socket
import threading
import time

import numpy as np
import pytest
import serving_fixtures
import tensorflow as tf

from tf_mmdrl import serving
from tf_mmdrl.core import ReturnDistribution, UserError
from tf_mmdrl.serving.limits import Limits

_ZEROS = np.zeros(serving_fixtures.SHAPE, np.uint8).tolist()


def _mean(state, observation):
  output, _ = state.agent.return_network(observation)
  return ReturnDistribution.of(output)


def test_answers_are_the_agents(server, state):
  observation = serving_fixtures.observations(9)
  returns = _mean(state, observation)
  status, answer = server.predict({"instances": observation.tolist()})
  assert status == 200
  found = [row["q_values"] for row in answer["predictions"]]
  np.testing.assert_allclose(found, returns.mean(), atol=1e-6)
  actions = [row["action"] for row in answer["predictions"]]
  np.testing.assert_array_equal(actions, np.argmax(found, -1))


def test_every_signature_can_be_asked(server, state):
  observation = serving_fixtures.observations(3)
  returns = _mean(state, observation)

  def ask(signature, inputs):
    body = {"signature_name": signature, "inputs": inputs}
    status, answer = server.predict(body)
    assert status == 200, answer
    return answer["outputs"]

  given = {"observation": observation.tolist()}
  found = ask("particles", given)
  np.testing.assert_allclose(found["values"], returns.values, atol=1e-6)
  np.testing.assert_allclose(found["weights"], returns.weights(), atol=1e-6)
  found = ask("risk", {**given, "level": 0.4})
  np.testing.assert_allclose(found["cvar"], returns.cvar(0.4), atol=1e-6)
  encoded = [base64.b64encode(row.tobytes()).decode() for row in observation]
  found = ask("action_bytes", [{"b64": text} for text in encoded])
  np.testing.assert_allclose(found["q_values"], returns.mean(), atol=1e-6)
  assert found["action"] == ask("action", given)["action"]


def test_the_model_says_what_it_is(server):
  status, answer = server.request("GET", "/v1/models/policy")
  assert status == 200
  assert answer["model_version_status"][0] == {
    "version": "320",
    "state": "AVAILABLE",
    "status": {"error_code": "OK", "error_message": ""},
  }
  assert server.request("GET", "/v1/models/policy/versions/320")[0] == 200
  status, answer = server.request("GET", "/v1/models/policy/metadata")
  assert status == 200 and answer["model_spec"]["version"] == "320"
  assert answer["metadata"]["policy"]["environment"] == "MinAtar/Breakout"
  signatures = answer["metadata"]["signature_def"]["signature_def"]
  assert set(signatures) == set(serving_fixtures.SIGNATURES)
  observation = signatures["action"]["inputs"]["observation"]
  assert observation["dtype"] == "DT_UINT8"
  sizes = [dim["size"] for dim in observation["tensor_shape"]["dim"]]
  assert sizes == ["-1", "10", "10", "4"]
  assert signatures["risk"]["inputs"]["level"]["tensor_shape"]["unknown_rank"]


def test_health_and_metrics(server):
  assert server.request("GET", "/healthz") == (200, b"ok\n")
  server.predict({"instances": [_ZEROS]})
  server.predict(b"{")
  status, text = server.request("GET", "/metrics")
  values = dict(
    line.rsplit(" ", 1)
    for line in text.decode().splitlines()
    if not line.startswith("#")
  )
  assert status == 200
  assert int(values['mmdrl_requests_total{code="200"}']) >= 1
  assert int(values['mmdrl_requests_total{code="400"}']) >= 1
  assert values["mmdrl_version"] == "320" and values["mmdrl_in_flight"] == "0"
  count = values["mmdrl_request_seconds_count"]
  assert values['mmdrl_request_seconds_bucket{le="+Inf"}'] == count
  assert float(values["mmdrl_batch_rows_sum"]) >= 1


@pytest.mark.parametrize(
  "method, path, status, message",
  [
    ("POST", "/v1/models/policy/versions/7:predict", 404, "is not served"),
    ("POST", "/v1/models/policy/versions/x:predict", 404, "is not served"),
    ("POST", "/v1/models/policy/versions/3_20:predict", 404, "is not served"),
    ("GET", "/v1/models/policy/versions/0320", 404, "is not served"),
    ("GET", "/v1/models/policy/versions/+320", 404, "is not served"),
    ("GET", "/v1/models/policy/versions/%D9%A3", 404, "is not served"),
    ("POST", "/v1/models/other:predict", 404, "unknown model 'other'"),
    ("GET", "/v1/models/other", 404, "unknown model 'other'"),
    ("GET", "/v1/models/policy/versions/7/metadata", 404, "is not served"),
    ("GET", "/v1/models/policy:predict", 405, "wants POST, got GET"),
    ("DELETE", "/v1/models/policy", 405, "wants GET, got DELETE"),
    ("GET", "/nowhere", 404, "there is nothing at /nowhere"),
    ("GET", "/v1/models/policy:classify", 404, "there is nothing at"),
  ],
)
def test_wrong_addresses_are_told(server, method, path, status, message):
  found, answer = server.request(
    method, path, b"{}" if method == "POST" else b""
  )
  assert found == status and message in answer["error"]


def _malformed():
  """(body, part of the message) of each kind of mistake."""
  encoded = base64.b64encode(bytes(399)).decode()
  level = {"observation": _ZEROS, "level": 0}
  return [
    ({"instances": [_ZEROS[:9]]}, "must have the shape [B, 10, 10, 4]"),
    ({"instances": [[[[0.5] * 4] * 10] * 10]}, "uint8, got 0.5"),
    ({"instances": [[[["a"] * 4] * 10] * 10]}, 'uint8, got "a"'),
    (b'{"instances": [[', "not JSON"),
    (b"[" * 10_000, "not JSON"),
    (b'{"instances": [NaN]}', "must be finite"),
    ({}, "either"),
    ({"instances": [_ZEROS], "signature_name": "x"}, "unknown signature"),
    ({"instances": [{"observation": _ZEROS, "x": 1}]}, "unknown input"),
    (
      {"instances": [level], "signature_name": "risk"},
      "level must lie in (0, 1]",
    ),
    (
      {"instances": [{"b64": encoded}], "signature_name": "action_bytes"},
      "must have 400 bytes",
    ),
  ]


def _memory():
  """The process' resident memory, in MB."""
  with open("/proc/self/status") as file:
    line = next(line for line in file if line.startswith("VmRSS"))
  return int(line.split()[1]) / 1024


def _ask_wrongly(server, number):
  """One of many mistakes; the message about it."""
  kinds = _malformed()
  kind = number % (len(kinds) + 2)
  if kind == len(kinds):
    status, answer = server.predict(b"{}", "policy/versions/7")
    assert status == 404
  elif kind == len(kinds) + 1:
    length = {"Content-Length": str(2**40)}
    path = "/v1/models/policy:predict"
    status, answer = server.request("POST", path, b"{", length)
    assert status == 413
  else:
    body, message = kinds[kind]
    status, answer = server.predict(body)
    assert status == 400 and message in answer["error"]
  return answer["error"]


def test_a_thousand_malformed_requests_do_no_harm(server):
  before = None
  for number in range(1000):
    message = _ask_wrongly(server, number)
    assert "\n" not in message and 10 < len(message) < 300
    if number == 200:
      before = _memory()
  assert _memory() - before < 20
  assert server.predict({"instances": [_ZEROS]})[0] == 200
  assert not any("Error" in line for line in server.log)


def test_a_bad_request_in_a_batch_spoils_no_other(server):
  good = {"observation": _ZEROS, "level": 0.5}
  bad = {"observation": _ZEROS, "level": 2}
  found = {}

  def ask(index):
    body = {
      "signature_name": "risk",
      "instances": [bad if index % 4 == 0 else good],
    }
    found[index] = server.predict(body)[0]

  threads = [threading.Thread(target=ask, args=(n,)) for n in range(32)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join()
  assert found == {n: 200 if n % 4 else 400 for n in range(32)}


@pytest.fixture(scope="module")
def strict(run):
  limits = Limits(body_bytes=4096, concurrent=2, seconds=1.5, idle_seconds=0.5)
  with serving_fixtures.serving(run / "export", limits=limits) as running:
    yield running


def _open(server):
  connection = socket.create_connection(("127.0.0.1", server.port), timeout=20)
  return contextlib.closing(connection)


_HEAD = b"POST /v1/models/policy:predict HTTP/1.1\r\nHost: x\r\n"


def test_a_large_body_is_refused_before_it_comes(strict):
  with _open(strict) as connection:
    connection.sendall(_HEAD + b"Content-Length: 1000000000\r\n\r\n")
    assert connection.recv(4096).startswith(b"HTTP/1.1 413")


def test_a_large_body_without_a_length_is_refused(strict):
  with _open(strict) as connection:
    connection.sendall(_HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    with contextlib.suppress(ConnectionError):
      for _ in range(64):
        connection.sendall(b"400\r\n" + b" " * 1024 + b"\r\n")
    assert connection.recv(4096).startswith(b"HTTP/1.1 413")


def test_a_slow_sender_is_told(strict):
  with _open(strict) as connection:
    connection.sendall(_HEAD + b"Content-Length: 100\r\n\r\n{")
    answer = connection.recv(4096)
    assert answer.startswith(b"HTTP/1.1 408") and b"did not come in" in answer


def test_a_slow_header_does_not_stay(strict):
  with _open(strict) as connection:
    connection.sendall(_HEAD)
    assert connection.recv(4096) == b""  # closed, and not after 20 s


def test_too_many_at_once_are_told_to_come_back(strict):
  with contextlib.ExitStack() as stack:
    for _ in range(2):
      connection = stack.enter_context(_open(strict))
      connection.sendall(_HEAD + b"Content-Length: 100\r\n\r\n")
    time.sleep(0.1)
    status, answer = strict.predict({"instances": [_ZEROS]})
    assert status == 503 and "try again" in answer["error"]
    assert strict.request("GET", "/healthz")[0] == 200
  time.sleep(0.1)
  assert strict.predict({"instances": [_ZEROS]})[0] == 200


def _publish(directory, number, bias):
  """A version whose q_values are all `bias`."""
  net = serving_fixtures.weighted_network()
  for variable in net.variables:
    variable.assign(tf.zeros_like(variable))
  net.variables[1].assign(tf.fill([24], float(bias)))
  serving.publish(net, directory, number, metadata={"step": number})


def _until(condition):
  end = time.monotonic() + 20
  while not condition():
    assert time.monotonic() < end
    time.sleep(0.02)


def test_newer_versions_take_over_and_no_request_is_dropped(tmp_path):
  _publish(tmp_path, 1, bias=1)
  body = {"instances": [_ZEROS]}
  with serving_fixtures.serving(tmp_path) as server:
    answers, stop = [], threading.Event()

    def ask():
      while not stop.is_set():
        status, answer = server.predict(body)
        q_values = answer["predictions"][0]["q_values"] if status == 200 else []
        answers.append((status, *q_values))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
      thread.start()
    for number in (2, 3):
      _publish(tmp_path, number, bias=number)
      _until(lambda n=number: f"version {n} is served" in server.log)
    _publish(tmp_path, 3, bias=4)  # the same number, published again
    _until(lambda: server.log.count("version 3 is served") == 2)
    serving.remove(tmp_path, 1)
    time.sleep(0.3)
    stop.set()
    for thread in threads:
      thread.join()
    values = [answer[1] for answer in answers if answer[0] == 200]
    assert len(values) == len(answers)
    np.testing.assert_allclose(
      sorted(set(np.round(values, 5))), [1, 2, 3, 4], atol=1e-5
    )
    assert server.predict(body, "policy/versions/1")[0] == 404


def test_a_broken_version_is_passed_over(tmp_path):
  _publish(tmp_path, 1, bias=1)
  with serving_fixtures.serving(tmp_path) as server:
    (tmp_path / "2").mkdir()
    (tmp_path / "2" / "saved_model.pb").write_bytes(b"nonsense")
    _until(lambda: any("version 2 is passed over" in t for t in server.log))
    assert server.predict({"instances": [_ZEROS]})[0] == 200
    _, answer = server.request("GET", "/v1/models/policy")
    states = [row["state"] for row in answer["model_version_status"]]
    assert states == ["END", "AVAILABLE"]
    time.sleep(0.3)  # it is not tried again and again
    assert sum("version 2" in line for line in server.log) == 1


def _damaged_copy(good, path, how):
  """A version that TensorFlow cannot load, and no manifest to say so."""
  shutil.copytree(good, path)
  (path / "manifest.json").unlink()
  (path / "assets" / "metadata.json").write_text("{}")
  data = path / "variables" / "variables.data-00000-of-00001"
  if how == "graph":
    (path / "saved_model.pb").write_bytes(b"\x08\x01")
  else:
    data.write_bytes(data.read_bytes()[:100] if how == "weights" else b"")


def _states(server):
  _, answer = server.request("GET", "/v1/models/policy")
  return {
    int(row["version"]): (row["state"], row["status"]["error_message"])
    for row in answer["model_version_status"]
  }


def test_bad_versions_hide_no_good_ones_at_the_start_and_later(tmp_path):
  kinds = ("weights", "graph", "nothing")
  good = tmp_path / "10"
  _publish(tmp_path, 10, bias=10)
  for number, how in enumerate(kinds, 11):
    _damaged_copy(good, tmp_path / str(number), how)
  with serving_fixtures.serving(tmp_path) as server:
    states = _states(server)
    assert states.pop(10) == ("AVAILABLE", "")
    assert sorted(states) == [11, 12, 13]
    for state, reason in states.values():
      assert state == "END" and "export it again" in reason
    aside = tmp_path / "aside"
    for number, how in enumerate(kinds, 21):  # all of them appear at once
      _damaged_copy(good, aside / str(number), how)
    _publish(aside, 20, bias=20)
    for number in (23, 22, 21, 20):
      (aside / str(number)).rename(tmp_path / str(number))
    _until(lambda: "version 20 is served" in server.log)
    status, answer = server.predict({"instances": [_ZEROS]})
    assert status == 200
    np.testing.assert_allclose(answer["predictions"][0]["q_values"], 20)
    states = _states(server)
    assert states.pop(20) == ("AVAILABLE", "")
    assert sorted(states) == [21, 22, 23]
    assert not any("\n" in line for line in server.log)


def test_a_version_that_is_completed_later_is_served_then(tmp_path):
  """As if somebody copied it file by file: its directory does not change."""
  _publish(tmp_path, 1, bias=1)
  shutil.copytree(tmp_path / "1", tmp_path / "2")
  data = tmp_path / "2" / "variables" / "variables.data-00000-of-00001"
  whole = data.read_bytes()
  data.write_bytes(whole[:50])
  with serving_fixtures.serving(tmp_path) as server:
    assert _states(server)[2][0] == "END"
    data.write_bytes(whole)
    _until(lambda: "version 2 is served" in server.log)
    assert _states(server) == {2: ("AVAILABLE", "")}


def test_damage_to_what_is_served_is_shown_and_service_goes_on(tmp_path):
  _publish(tmp_path, 1, bias=1)
  with serving_fixtures.serving(tmp_path) as server:
    (tmp_path / "1" / "fingerprint.pb").write_bytes(b"x")
    _until(lambda: any("version 1 is passed over" in t for t in server.log))
    state, reason = _states(server)[1]
    assert state == "AVAILABLE" and "'fingerprint.pb' is damaged" in reason
    assert server.predict({"instances": [_ZEROS]})[0] == 200


def test_a_version_replaced_by_a_broken_one_goes_on(tmp_path):
  _publish(tmp_path, 1, bias=1)
  with serving_fixtures.serving(tmp_path) as server:
    (tmp_path / "aside").mkdir()
    (tmp_path / "1").rename(tmp_path / "aside" / "1")
    (tmp_path / "1").mkdir()
    _until(lambda: any("version 1 is passed over" in t for t in server.log))
    assert server.predict({"instances": [_ZEROS]})[0] == 200
    _, answer = server.request("GET", "/v1/models/policy")
    assert answer["model_version_status"][0]["state"] == "AVAILABLE"


def test_versions_that_vanish_are_served_from_memory(tmp_path):
  _publish(tmp_path, 1, bias=1)
  with serving_fixtures.serving(tmp_path) as server:
    serving.remove(tmp_path, 1)
    time.sleep(0.3)
    assert server.predict({"instances": [_ZEROS]})[0] == 200


def test_several_versions_can_be_served(tmp_path):
  for number in (1, 2, 3):
    _publish(tmp_path, number, bias=number)
  with serving_fixtures.serving(tmp_path, count=2) as server:
    for number, status in ((1, 404), (2, 200), (3, 200)):
      path = f"policy/versions/{number}"
      assert server.predict({"instances": [_ZEROS]}, path)[0] == status


def test_nothing_outside_of_the_directory_is_loaded(tmp_path):
  _publish(tmp_path / "elsewhere", 1, bias=1)
  (tmp_path / "here").mkdir()
  (tmp_path / "here" / "1").symlink_to(tmp_path / "elsewhere" / "1")
  with (
    pytest.raises(UserError, match="can be used: 1: it is a link; copy"),
    serving_fixtures.serving(tmp_path / "here"),
  ):
    pass


def test_a_directory_without_versions_is_told(tmp_path):
  with (
    pytest.raises(UserError, match="no exported policy"),
    serving_fixtures.serving(tmp_path),
  ):
    pass
