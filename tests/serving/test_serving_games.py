"""Games beside the server, and the page that shows them."""

import concurrent.futures
import json
import sys
import threading
import time

import imageio.v2 as imageio
import numpy as np
import pytest
import serving_fixtures
import tensorflow as tf

from tf_mmdrl.core import errors, return_distribution
from tf_mmdrl.environments import gymnasium_wrapper
from tf_mmdrl.serving import games, limits, live_page
from tf_mmdrl.train import served_games, videos

sys.path.append(__file__.rpartition("/serving/")[0] + "/report")


class _Counting:
  """A game of whole numbers; it is over at three."""

  actions = ["stay", "add"]
  closed = 0

  def __init__(self, name="count", seed=0):
    self.count = seed

  def begin(self):
    return self.step(0)

  def step(self, action):
    self.count += action
    picture = np.full([2, 3], self.count, np.uint8)
    observation = np.array([self.count], np.float32)
    return games.Seen(observation, picture, float(self.count), self.count == 3)

  def close(self):
    type(self).closed += 1


def test_a_session_is_played_step_by_step():
  sessions = games.Games(["count"], _Counting)
  first = sessions.begin({"seed": 1})
  assert first["actions"] == ["stay", "add"] and first["score"] == 1
  second = sessions.step(first["session"], {"action": 1})
  assert second["observation"].tolist() == [2.0] and not second["over"]
  assert sessions.step(first["session"], {"action": 1})["over"]
  other = sessions.begin({})
  assert other["session"] != first["session"] and other["score"] == 0


@pytest.mark.parametrize(
  "wanted, message",
  [
    ({"game": "chess"}, "unknown game 'chess'; known: count"),
    ({"game": ["count"]}, "unknown game 'a list'"),
    ({"game": "n" * 999}, "nnn...'"),
    ({"seed": [[0]]}, '"seed" must be a whole number, got a list'),
    ({"replaces": ["it"]}, '"replaces" must be a session, got a list'),
    ({"seed": -1}, '"seed" must lie in 0..'),
    ({"seed": True}, '"seed" must be a whole number'),
    ({"seed": 1e3}, '"seed" must be a whole number'),
  ],
)
def test_what_is_no_game_is_refused(wanted, message):
  with pytest.raises(errors.UserError, match="seed|game|replaces") as said:
    games.Games(["count"], _Counting).begin(wanted)
  assert message in str(said.value)


@pytest.mark.parametrize("action", [2, -1, "1", None, 1.0, True])
def test_what_is_no_action_is_refused(action):
  sessions = games.Games(["count"], _Counting)
  key = sessions.begin({})["session"]
  with pytest.raises(errors.UserError, match='"action" must'):
    sessions.step(key, {"action": action})
  with pytest.raises(limits.Refusal) as said:
    sessions.step("no-such", {"action": 0})
  assert said.value.status == 404


def test_few_games_at_a_time_and_idle_ones_give_way(monkeypatch):
  now = [0.0]
  monkeypatch.setattr(games.time, "monotonic", lambda: now[0])
  monkeypatch.setattr(_Counting, "closed", 0)
  sessions = games.Games(["count"], _Counting, most=2, idle_seconds=60)
  first, second = (sessions.begin({})["session"] for _ in range(2))
  now[0] = 59.0
  sessions.step(first, {"action": 0})
  with pytest.raises(limits.Refusal) as said:
    sessions.begin({})
  assert said.value.status == 503 and _Counting.closed == 0
  now[0] = 61.0  # the second has been idle for longer than a minute
  sessions.begin({})
  assert _Counting.closed == 1
  sessions.step(first, {"action": 0})
  with pytest.raises(limits.Refusal):
    sessions.step(second, {"action": 0})
  sessions.close()
  assert _Counting.closed == 3


def test_a_new_game_takes_the_place_of_an_old_one(monkeypatch):
  monkeypatch.setattr(_Counting, "closed", 0)
  sessions = games.Games(["count"], _Counting, most=1)
  first = sessions.begin({})["session"]
  second = sessions.begin({"replaces": first})["session"]
  assert _Counting.closed == 1
  with pytest.raises(limits.Refusal):
    sessions.step(first, {"action": 0})
  sessions.step(second, {"action": 0})
  with pytest.raises(limits.Refusal):  # the first is gone, and frees no more
    sessions.begin({"replaces": first})


def test_a_game_that_does_not_begin_is_closed_and_takes_no_place(monkeypatch):
  monkeypatch.setattr(_Counting, "closed", 0)
  sessions = games.Games(["count"], _Counting, most=1)
  with monkeypatch.context() as broken:
    broken.setattr(games, "png", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
      sessions.begin({})
  assert _Counting.closed == 1
  first = sessions.begin({})["session"]
  with monkeypatch.context() as broken:
    broken.setattr(games, "png", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
      sessions.begin({"replaces": first})
  sessions.step(first, {"action": 0})  # it goes on


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3), (1, 1, 3)])
def test_pictures_are_png_files(shape, tmp_path):
  picture = np.random.default_rng(0).integers(0, 256, shape, np.uint8)
  (tmp_path / "it.png").write_bytes(games.png(picture))
  np.testing.assert_array_equal(imageio.imread(tmp_path / "it.png"), picture)


@pytest.fixture(scope="module")
def page(run):
  """A server of the run's exports with its game."""
  made = served_games.of_exports(run / "export", [])
  with serving_fixtures.serving(run / "export", games=made) as running:
    yield running


def _post(running, path, body):
  headers = {"Content-Type": "application/json"}
  return running.request("POST", path, json.dumps(body), headers)


def test_the_server_plays_the_policys_game(page):
  status, found = page.request("GET", "/games")
  assert (status, found["games"]) == (200, ["MinAtar/Breakout"])
  status, seen = _post(page, "/games", {"seed": 3})
  assert status == 200 and np.shape(seen["observation"]) == (10, 10, 4)
  assert seen["actions"][:2] == ["nothing", "left"]
  asked = {"signature_name": "particles", "instances": [seen["observation"]]}
  status, answer = page.predict(asked)
  assert status == 200
  assert np.shape(answer["predictions"][0]["values"]) == (6, 5)
  place, over = f"/games/{seen['session']}", False
  for _ in range(60):  # a game is cut after 50 steps
    status, after = _post(page, place, {"action": 0})
    assert status == 200
    over = over or after["over"]
  assert over
  assert _post(page, "/games/nobody", {"action": 0})[0] == 404
  assert _post(page, place, [])[0] == 400
  assert _post(page, place, {"action": 0, "more": "x" * 4096})[0] == 413
  assert page.request("POST", place, '{"action": 0}')[0] == 415
  assert page.request("GET", place)[0] == 405


def test_a_game_that_hangs_holds_up_nothing_else(run, monkeypatch):
  goes_on, begun, steps = threading.Event(), threading.Event(), []

  class Hanging(_Counting):
    def step(self, action):
      steps.append((action, threading.current_thread().daemon))
      if action:
        begun.set()
        goes_on.wait(30)
      return super().step(action)

  monkeypatch.setattr(live_page, "_WAITING", 2)
  served = serving_fixtures.Running(
    run / "export",
    games=games.Games(["count"], Hanging),
    limits=limits.Limits(seconds=1.5, concurrent=1),
  )
  served.start()
  try:
    place = f"/games/{_post(served, '/games', {})[1]['session']}"
    asked = {"instances": serving_fixtures.observations(1).tolist()}
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
      first = pool.submit(_post, served, place, {"action": 1})
      assert begun.wait(10)
      second = pool.submit(_post, served, place, {"action": 0})
      assert served.predict(asked)[0] != 503  # steps are no predictions
      assert "2 steps" in _until_refused(served, place, first)
      assert first.result()[0] == second.result()[0] == 504
    status, said = _post(served, place, {"action": 0})
    assert status == 503 and "does not come back" in said["error"]
    assert "a game has not answered in 1.5 s" in served.log
    # Who exits waits for threads that are no daemons. The second gave up.
    assert steps == [(0, True), (1, True)]
    started = time.monotonic()
  finally:
    served.stop()
    goes_on.set()
  assert time.monotonic() - started < 15


def _until_refused(running, place, first):
  """What is said to a third, once the second waits."""
  while not first.done():
    status, said = _post(running, place, {"action": 0})
    if status == 503:
      return said["error"]
  return ""


def test_without_games_there_are_none(server):
  assert server.request("GET", "/games")[0] == 404
  assert server.request("POST", "/games", "{}")[0] == 404


def test_a_file_chooses_no_import(run, tmp_path, monkeypatch):
  from tf_mmdrl import serving

  recorded = serving.metadata(run / "export", 320)
  recorded["config"]["environment"]["name"] = "mine:Game-v0"
  monkeypatch.setattr(serving, "metadata", lambda *_: recorded, raising=False)
  with pytest.raises(errors.UserError, match="would import the module 'mine'"):
    served_games.of_exports(run / "export", [])


def test_vector_rewards_are_refused_before_anybody_asks(run):
  with pytest.raises(errors.UserError, match="has vector rewards") as said:
    served_games.of_exports(run / "export", ["maze/exclusive"])
  assert "\n" not in str(said.value)


def test_an_environment_that_cannot_be_played_is_closed(run, monkeypatch):
  closed, close = [], gymnasium_wrapper.GymnasiumWrapper.close

  def closing(self):
    closed.append(self)
    close(self)

  monkeypatch.setattr(gymnasium_wrapper.GymnasiumWrapper, "close", closing)
  monkeypatch.setattr(videos, "names_of_actions", lambda *_: 1 / 0)
  with pytest.raises(ZeroDivisionError):
    served_games.of_exports(run / "export", [])
  assert len(closed) == 1


def test_the_page_in_a_browser(page, tmp_path):
  import report_browser

  with report_browser.chromium() as browser:
    browser.open_address(f"http://127.0.0.1:{page.port}/")
    _until(browser, "return $('picture').naturalWidth > 0")
    about = browser.run("return $('about').textContent")
    assert "MinAtar/Breakout" in about and "step 320" in about
    before = browser.run("return steps")
    browser.run("$('run').click()")
    _until(browser, f"return steps >= {before} + 3")
    browser.run("$('run').click()")
    # One slider: CVaR, the mean, Thompson.
    for at, name in (
      (4, "CVaR of the worst 25 %"),
      (20, "the mean"),
      (21, "T"),
    ):
      by = browser.run(
        "const it = $('risk'); it.value = arguments[0];"
        "it.dispatchEvent(new Event('input'));"
        "return $('by').textContent",
        at,
      )
      assert by.startswith(name)
      browser.run("$('risk').dispatchEvent(new Event('change'))")
      _until(browser, "return !busy")
      _check_action(browser.run("return thought"), name)
    found = browser.run(
      "return [cvar([4, 1, 3], [.25, .5, .25], .75), mean([4, 2], [.25, .75]),"
      " thompson([5, 6], [0, 1])]"
    )
    np.testing.assert_allclose(found, [5 / 3, 2.5, 6])
    for width in (1200, 400):
      browser.emulate(width)
      wide = browser.run("return document.documentElement.scrollWidth")
      assert wide <= width
    assert not browser.complaints()


def _check_action(thought, name):
  """The page takes the action that the slider stands for."""
  values = np.array(thought["values"], np.float32)
  weights = np.array(thought["weights"], np.float32)
  returns = return_distribution.ReturnDistribution(
    tf.constant(values), tf.math.log(weights)
  )
  if name == "T":  # an action whose draw may be the largest
    assert values[thought["action"]].max() >= values.min(axis=1).max()
    return
  scores = returns.mean() if "mean" in name else returns.cvar(0.25)
  assert thought["action"] == np.argmax(scores)


def test_clicks_on_the_page_are_neither_lost_nor_doubled(page):
  import report_browser

  with report_browser.chromium() as browser:
    browser.open_address(f"http://127.0.0.1:{page.port}/")
    _until(browser, "return thought !== null && !busy")
    # Clicks while the server is asked are done in their order.
    before, at = browser.run("return [games, steps]")
    browser.run("$('risk').onchange(); $('new').click(); $('one').click()")
    _until(browser, f"return !busy && games === {before} + 1")
    assert browser.run("return steps") == 1 and at == 0
    # One step where the session has given way begins a game.
    browser.run("session = null; $('one').click()")
    _until(browser, f"return !busy && games === {before} + 2")
    # Pause and play within one interval: one loop asks, not three.
    browser.run(
      "window.asked = 0; const was = guarded;"
      "guarded = work => { asked += 1; return was(work); };"
      "$('speed').value = 2;"
      "for (const at of [0, 150, 155, 300, 305])"
      "  setTimeout(() => $('run').click(), at);"
      "setTimeout(() => asked = 0, 600);"
      "setTimeout(() => { window.counted = asked; playing = false; }, 2600);"
    )
    _until(browser, "return window.counted !== undefined")
    assert 1 <= browser.run("return counted") <= 5  # twice a second
    assert not browser.complaints()


def _until(browser, script, seconds=60):
  deadline = time.monotonic() + seconds
  while not browser.run(script):
    said = browser.run("return $('problem').textContent")
    assert time.monotonic() < deadline, said
    time.sleep(0.1)
