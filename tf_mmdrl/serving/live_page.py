"""The page at `/`: the served policy at play, with the returns it expects."""

import asyncio
import concurrent.futures
import dataclasses
import functools
import pathlib
import queue
import threading
from typing import Any, Callable, Dict, Optional, Tuple

import orjson
from aiohttp import web

from tf_mmdrl.core import errors
from tf_mmdrl.serving import bodies
from tf_mmdrl.serving.games import Games
from tf_mmdrl.serving.limits import Limits, Place, Refusal

_FILE = pathlib.Path(__file__).parent / "data" / "live_page.html"
# Nothing is loaded from anywhere else, and nobody frames it.
_HEADERS = {
  "Content-Security-Policy": (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline';"
    " img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
  ),
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
}
_BODY = 4096  # bytes; a name, a seed and a session are far fewer
_WAITING = 16  # steps under way at a time, of all sessions

_Work = Tuple[concurrent.futures.Future[Any], Callable[[], Any]]


def page() -> web.Response:
  """The page; it says nothing that needs a token."""
  return web.Response(
    text=_content(), content_type="text/html", headers=_HEADERS
  )


@functools.lru_cache(maxsize=1)
def _content() -> str:
  return _FILE.read_text()


class Player:
  """Plays the games of all visitors, one step at a time.

  In a thread of its own, which the end of the process does not wait for, as it
  would for an executor's: an environment may hang.
  """

  def __init__(self, games: Games, limits: Limits, log: Callable[[str], None]):
    """Begins no game.

    Args:
      games: the sessions.
      limits: of the seconds for a body and for a step.
      log: told of steps that hang.
    """
    self._games = games
    self._limits = dataclasses.replace(
      limits, body_bytes=min(_BODY, limits.body_bytes)
    )
    self._log = log
    self._waiting = 0
    self._overdue: Optional[concurrent.futures.Future[Any]] = None
    self._work: queue.SimpleQueue[_Work] = queue.SimpleQueue()
    threading.Thread(target=_run, args=[self._work], daemon=True).start()

  async def answer(
    self, request: web.BaseRequest, session: Optional[str], place: Place
  ) -> web.Response:
    """Begins a game, or takes an action in a session.

    Args:
      request: a POST.
      session: whose action it is; None begins one.
      place: keeps the bytes of the body and of the answer.

    Returns:
      What there is to see.
    """
    # Pages of elsewhere cannot send this type without asking first.
    if request.content_type != "application/json":
      raise Refusal(415, "send it with Content-Type: application/json")
    wanted = _parse(await bodies.read(request, self._limits, place))
    play = self._games.begin
    if session is not None:
      play = functools.partial(self._games.step, session)
    seen = await self._play(functools.partial(play, wanted))
    body = orjson.dumps(seen, option=orjson.OPT_SERIALIZE_NUMPY)
    place.take(len(body))
    return web.Response(body=body, content_type="application/json")

  async def stop(self) -> None:
    """Ends all games, unless one of them hangs."""
    if not self._hangs():
      await asyncio.wait(
        [asyncio.wrap_future(self._submit(self._games.close))],
        timeout=self._limits.seconds,
      )

  async def _play(self, function: Callable[[], Any]) -> Any:
    """What the function returns; refused if that takes too long."""
    if self._hangs():
      raise Refusal(503, "a game does not come back from its step; try later")
    if self._waiting >= _WAITING:
      raise Refusal(503, f"{_WAITING} steps are under way; try again")
    step = self._submit(function)
    answer = asyncio.wrap_future(step)
    self._waiting += 1
    try:
      await asyncio.wait([answer], timeout=self._limits.seconds)
    finally:
      self._waiting -= 1
      step.cancel()  # if it has not begun: nobody waits for it any more
    if answer.done():
      return answer.result()
    answer.cancel()
    if step.running():
      self._overdue = step
      self._log(f"a game has not answered in {self._limits.seconds:g} s")
    raise Refusal(504, "the game did not answer in time")

  def _hangs(self) -> bool:
    return self._overdue is not None and not self._overdue.done()

  def _submit(
    self, function: Callable[[], Any]
  ) -> concurrent.futures.Future[Any]:
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()
    self._work.put((future, function))
    return future


def _run(work: queue.SimpleQueue[_Work]) -> None:
  """Does what comes, in its order, until the process ends."""
  while True:
    future, function = work.get()
    if future.set_running_or_notify_cancel():
      try:
        future.set_result(function())
      except BaseException as error:  # it is for those who wait
        future.set_exception(error)
    del future, function  # else it would be kept until the next comes


def _parse(body: bytearray) -> Dict[str, Any]:
  """The object in a small body."""
  try:
    content = orjson.loads(body)
  except orjson.JSONDecodeError as error:
    raise errors.UserError(f"the body is not JSON: {error}") from None
  if not isinstance(content, dict):
    raise errors.UserError('the body must be an object, such as {"action": 0}')
  return content
