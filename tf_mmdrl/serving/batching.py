"""Answers many small requests with few runs of a model."""

import asyncio
import collections
import concurrent.futures
from typing import Callable, Deque, List, NamedTuple, Optional, Union

import numpy as np

from tf_mmdrl.serving.models import Arrays

Answer = Union[Arrays, Exception]


class _Request(NamedTuple):
  inputs: Arrays
  size: int
  answer: "asyncio.Future[Arrays]"


class Batcher:
  """Puts the requests that wait for one function together.

  While the function runs, requests gather; what has gathered is the next batch.
  So nobody waits for others to come: a lone request runs at once, and under
  load the batches grow by themselves.
  """

  def __init__(
    self,
    call: Callable[[Arrays], Arrays],
    executor: concurrent.futures.Executor,
    *,
    max_batch: int,
    watch: Callable[[int], None],
  ):
    """Begins with nothing.

    Args:
      call: arrays [B, ...] by name -> arrays [B, ...] by name.
      executor: the thread that it runs in.
      max_batch: the largest B to run; a larger request runs in pieces.
      watch: told of each batch's size.
    """
    self._call = call
    self._executor = executor
    self._max_batch = max_batch
    self._watch = watch
    self._waiting: Deque[_Request] = collections.deque()
    self._task: Optional[asyncio.Task[None]] = None

  async def submit(self, inputs: Arrays, size: int, seconds: float) -> Arrays:
    """The answer to one request.

    Args:
      inputs: arrays [size, ...] by name.
      size: rows.
      seconds: after which `TimeoutError` is raised.

    Returns:
      Arrays [size, ...] by name.
    """
    loop = asyncio.get_running_loop()
    request = _Request(inputs, size, loop.create_future())
    # Not wait_for, which makes a task of every request.
    clock = loop.call_later(seconds, _expire, request.answer)
    self._waiting.append(request)
    if self._task is None:
      self._task = loop.create_task(self._run())
    try:
      return await request.answer
    finally:
      clock.cancel()

  async def _run(self) -> None:
    """Runs batches until nobody waits."""
    loop = asyncio.get_running_loop()
    try:
      while True:
        await asyncio.sleep(0)  # those who have arrived may join
        batch = self._take()
        if not batch:
          return
        self._watch(sum(request.size for request in batch))
        answers = await loop.run_in_executor(
          self._executor, _answers, self._call, batch, self._max_batch
        )
        for request, answer in zip(batch, answers):
          if request.answer.done():  # its client has left
            continue
          if isinstance(answer, Exception):
            request.answer.set_exception(answer)
          else:
            request.answer.set_result(answer)
    finally:
      self._task = None

  def _take(self) -> List[_Request]:
    """The next requests, as many as fit; those who left are passed over."""
    batch: List[_Request] = []
    rows = 0
    while self._waiting:
      request = self._waiting[0]
      if batch and rows + request.size > self._max_batch:
        break
      self._waiting.popleft()
      if not request.answer.done():
        batch.append(request)
        rows += request.size
    return batch


def _expire(answer: "asyncio.Future[Arrays]") -> None:
  if not answer.done():
    answer.set_exception(TimeoutError())


def _answers(
  call: Callable[[Arrays], Arrays], batch: List[_Request], max_batch: int
) -> List[Answer]:
  """An answer, or what went wrong, for each request."""
  if len(batch) == 1:
    return [_one(call, batch[0], max_batch)]
  names = batch[0].inputs
  joint = {
    name: np.concatenate([request.inputs[name] for request in batch])
    for name in names
  }
  try:
    outputs = call(joint)
  except Exception:
    # One of them may be at fault; the others should not suffer for it.
    return [_one(call, request, max_batch) for request in batch]
  ends = np.cumsum([request.size for request in batch])
  return [
    {name: array[end - r.size : end] for name, array in outputs.items()}
    for r, end in zip(batch, ends)
  ]


def _one(
  call: Callable[[Arrays], Arrays], request: _Request, max_batch: int
) -> Answer:
  """The answer to one request, of pieces if it is large.

  So that the memory of a run of the model does not depend on the request.
  """
  try:
    if request.size <= max_batch:
      return call(request.inputs)
    pieces = []
    for start in range(0, request.size, max_batch):
      if request.answer.done():  # its client has left, or was told to
        return TimeoutError()
      rows = slice(start, start + max_batch)
      pieces.append(
        call({name: array[rows] for name, array in request.inputs.items()})
      )
    return {
      name: np.concatenate([piece[name] for piece in pieces])
      for name in pieces[0]
    }
  except Exception as error:
    return error
