"""Requests that wait together run together, each with its own answer."""

import asyncio
import concurrent.futures
import threading

import numpy as np
import pytest

from tf_mmdrl.serving.batching import Batcher


class _Model:
  """Doubles x; counts its runs; waits if told to; does not take 13."""

  def __init__(self):
    self.sizes = []
    self.may_run = threading.Event()
    self.may_run.set()

  def __call__(self, arrays):
    self.may_run.wait(30)
    self.sizes.append(len(arrays["x"]))
    if (arrays["x"] == 13).any():
      raise ValueError("13")
    return {"y": 2 * arrays["x"]}


@pytest.fixture
def model():
  return _Model()


def _run(model, scenario, **options):
  with concurrent.futures.ThreadPoolExecutor(1) as executor:
    options = {"max_batch": 8, "watch": lambda rows: None, **options}

    async def main():
      return await scenario(Batcher(model, executor, **options))

    return asyncio.run(main())


def _ask(batcher, *numbers, seconds=30.0):
  inputs = {"x": np.array(numbers)}
  return asyncio.ensure_future(batcher.submit(inputs, len(numbers), seconds))


async def _gathered(batcher, model, requests):
  """Asks once, and for all of `requests` while the first one runs."""
  model.may_run.clear()
  first = _ask(batcher, 0)
  await asyncio.sleep(0.05)
  rest = [_ask(batcher, *numbers) for numbers in requests]
  await asyncio.sleep(0.05)
  model.may_run.set()
  return await asyncio.gather(first, *rest, return_exceptions=True)


def test_requests_that_wait_run_together(model):
  watched = []
  requests = [(1,), (2, 3), (4,)]
  answers = _run(
    model,
    lambda batcher: _gathered(batcher, model, requests),
    watch=watched.append,
  )
  found = [answer["y"].tolist() for answer in answers]
  assert found == [[0], [2], [4, 6], [8]]
  assert model.sizes == watched == [1, 4]


def test_a_batch_has_its_limit_and_a_large_request_runs_in_pieces(model):
  requests = [(1,) * 5, (2,) * 4, (3,) * 20, (4,)]
  answers = _run(model, lambda batcher: _gathered(batcher, model, requests))
  assert model.sizes == [1, 5, 4, 8, 8, 4, 1]
  assert [answer["y"].tolist() for answer in answers[1:]] == [
    [2 * number for number in request] for request in requests
  ]


def test_one_bad_request_does_not_spoil_the_others(model):
  answers = _run(
    model, lambda batcher: _gathered(batcher, model, [(1,), (13,), (2,)])
  )
  assert answers[1]["y"] == [2] and answers[3]["y"] == [4]
  assert isinstance(answers[2], ValueError)


def test_who_waits_too_long_is_told_and_the_next_is_served(model):
  async def scenario(batcher):
    model.may_run.clear()
    slow = _ask(batcher, 1, seconds=0.05)
    with pytest.raises(TimeoutError):
      await slow
    model.may_run.set()
    return await _ask(batcher, 2)

  assert _run(model, scenario)["y"] == [4]


def test_a_bad_row_in_any_piece_is_told(model):
  numbers = [0] * 19 + [13]
  with pytest.raises(ValueError, match="13"):
    _run(model, lambda batcher: _ask(batcher, *numbers))


def test_the_rest_of_a_large_request_is_not_run_for_who_has_left(model):
  async def scenario(batcher):
    model.may_run.clear()
    left = _ask(batcher, *range(20, 100), seconds=0.05)
    with pytest.raises(TimeoutError):
      await left
    model.may_run.set()
    return await _ask(batcher, 2)

  assert _run(model, scenario)["y"] == [4]
  assert model.sizes == [8, 1]


def test_who_left_is_not_run(model):
  async def scenario(batcher):
    model.may_run.clear()
    first = _ask(batcher, 0)
    await asyncio.sleep(0.05)
    left, stays = _ask(batcher, 1), _ask(batcher, 2)
    await asyncio.sleep(0.05)
    left.cancel()
    await asyncio.sleep(0)
    model.may_run.set()
    await first
    return await stays

  assert _run(model, scenario)["y"] == [4]
  assert model.sizes == [1, 1]
