"""Requests and answers in TensorFlow Serving's form."""

import base64
import json

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tf_mmdrl.core import UserError
from tf_mmdrl.serving import limits, models, rest
from tf_mmdrl.serving.models import Signature


def _signature(**inputs):
  return Signature(inputs, {}, lambda arrays: arrays, row_bytes=10)


_PIXELS = tf.TensorSpec([None, 2, 3], tf.uint8)
_SIGNATURES = {
  "serving_default": _signature(observation=_PIXELS),
  "risk": _signature(
    observation=_PIXELS, level=tf.TensorSpec(None, tf.float32)
  ),
  "bytes": _signature(text=tf.TensorSpec([None], tf.string)),
  "real": _signature(x=tf.TensorSpec([None, 1], tf.float32)),
  "truth": _signature(x=tf.TensorSpec([None], tf.bool)),
  "whole": _signature(x=tf.TensorSpec([None], tf.int32)),
}
_ROW = [[1, 2, 3], [4, 5, 255]]


def _decode(content):
  body = content if isinstance(content, bytes) else json.dumps(content).encode()
  return rest.decode(body, _SIGNATURES, max_answer=1000)


def _encode(outputs, by_row):
  return rest.encode(outputs, by_row=by_row, max_answer=10_000)


@pytest.mark.parametrize(
  "content, by_row",
  [
    ({"instances": [_ROW, _ROW]}, True),
    ({"instances": [{"observation": _ROW}, {"observation": _ROW}]}, True),
    ({"inputs": [_ROW, _ROW]}, False),
    ({"inputs": {"observation": [_ROW, _ROW]}}, False),
  ],
)
def test_one_input_has_four_forms(content, by_row):
  request = _decode(content)
  assert request.signature == "serving_default"
  assert request.by_row == by_row and request.size == 2
  array = request.inputs["observation"]
  assert array.dtype == np.uint8
  np.testing.assert_array_equal(array, [_ROW, _ROW])


@pytest.mark.parametrize(
  "content, levels",
  [
    ({"inputs": {"observation": [_ROW, _ROW], "level": 0.5}}, [0.5, 0.5]),
    ({"inputs": {"observation": [_ROW, _ROW], "level": [0.5, 1]}}, [0.5, 1]),
    (
      {
        "instances": [
          {"observation": _ROW, "level": 0.5},
          {"level": 1, "observation": _ROW},
        ]
      },
      [0.5, 1],
    ),
  ],
)
def test_a_scalar_goes_to_every_row(content, levels):
  request = _decode({"signature_name": "risk", **content})
  np.testing.assert_array_equal(request.inputs["level"], levels)
  assert request.inputs["level"].dtype == np.float32


def test_bytes_come_in_base64_or_as_text():
  encoded = {"b64": base64.b64encode(b"\x00\xff").decode()}
  request = _decode({"signature_name": "bytes", "instances": [encoded, "ab"]})
  assert request.inputs["text"].tolist() == [b"\x00\xff", b"ab"]


@settings(max_examples=50, deadline=None)
@given(
  hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 4), st.just(1)),
    elements=st.floats(width=32, allow_nan=False, allow_infinity=False),
  )
)
def test_floats_come_back_as_they_went(array):
  request = _decode({"signature_name": "real", "instances": array.tolist()})
  np.testing.assert_array_equal(request.inputs["x"], array)
  answer = json.loads(_encode(request.inputs, by_row=True))
  np.testing.assert_array_equal(
    np.array(answer["predictions"], np.float32), array
  )


@pytest.mark.parametrize(
  "content, message",
  [
    (b"{", "not JSON"),
    (b"", "not JSON"),
    (b"\xff\xfe", "not JSON"),
    (b"[" * 100_000, "not JSON"),
    (b'{"instances": [[[NaN, 0, 0], [0, 0, 0]]]}', "must be finite"),
    (b'{"instances": [[[1e999, 0, 0], [0, 0, 0]]]}', "not JSON"),
    ([], "must be a JSON object, got an empty list"),
    ({}, 'either "instances"'),
    ({"instances": [_ROW], "inputs": [_ROW]}, 'either "instances"'),
    ({"instance": [_ROW]}, "did you mean 'instances'"),
    ({"instances": []}, "at least one, got an empty list"),
    ({"instances": {"a": 1}}, "at least one, got an object"),
    ({"instances": [_ROW], "signature_name": "rsik"}, "did you mean 'risk'"),
    ({"instances": [_ROW], "signature_name": 3}, "unknown signature '3'"),
    ({"instances": [_ROW[:1]]}, "[B, 2, 3]: wanted a list of 2 in dimension 1"),
    ({"instances": [_ROW, [[1], [2]]]}, "dimension 2, got a list of 1"),
    ({"instances": [[[], []]]}, "dimension 2, got a list of 0"),
    ({"instances": [_ROW, 7]}, "dimension 1, got 7"),
    ({"instances": [[[1, 2, [3]], [4, 5, 6]]]}, "uint8, got a list"),
    ({"instances": [[[1, 2, "3"], [4, 5, 6]]]}, 'uint8, got "3"'),
    ({"instances": [[[1, 2, None], [4, 5, 6]]]}, "uint8, got null"),
    ({"instances": [[[1, 2, 0.5], [4, 5, 6]]]}, "uint8, got 0.5"),
    ({"instances": [[[1, 2, 256], [4, 5, 6]]]}, "uint8, got 256"),
    ({"instances": [[[1, 2, -1], [4, 5, 6]]]}, "uint8, got -1"),
    ({"instances": [[[1, 2, 2**63], [4, 5, 6]]]}, "beyond 64 bits"),
    ({"instances": [{"observatoin": _ROW}]}, "did you mean 'observation'"),
    ({"inputs": {"observation": _ROW}}, "must have the shape [B, 2, 3]"),
    ({"inputs": []}, "wanted a list of at least 1 in dimension 0"),
    (
      {"signature_name": "risk", "instances": [{"observation": _ROW}]},
      "lacks 'level'",
    ),
    ({"signature_name": "risk", "instances": [_ROW]}, "must be an object with"),
    (
      {
        "signature_name": "risk",
        "inputs": {"observation": [_ROW], "level": [1, 1]},
      },
      "same number of rows, got {'observation': 1, 'level': 2}",
    ),
    ({"signature_name": "real", "instances": [[1e39]]}, "float32, got 1e+39"),
    ({"signature_name": "truth", "instances": [2]}, "bool, got 2"),
    (
      {"signature_name": "whole", "instances": [2**31]},
      "int32, got 2147483648",
    ),
    ({"signature_name": "bytes", "instances": [{"b64": "a"}]}, "base64"),
    ({"signature_name": "bytes", "instances": [{"b64": 1}]}, "base64"),
    ({"signature_name": "bytes", "instances": [1]}, "base64"),
  ],
)
def test_what_is_wrong_with_a_request_is_told(content, message):
  with pytest.raises(UserError) as caught:
    _decode(content)
  assert message in str(caught.value)


@pytest.mark.parametrize(
  "content, rows",
  [
    ({"instances": [_ROW] * 101}, 101),
    ({"instances": [7] * 200}, 200),  # before anybody looks at the rows
    ({"inputs": [_ROW] * 101}, 101),
    ({"inputs": {"observation": [_ROW] * 101}}, 101),
    (
      {
        "signature_name": "risk",
        "inputs": {"level": 0.5, "observation": [_ROW] * 101},
      },
      101,
    ),
  ],
)
def test_answers_that_would_be_too_large_are_refused(content, rows):
  with pytest.raises(limits.Refusal) as caught:
    _decode(content)
  assert caught.value.status == 413
  assert str(caught.value) == (
    f"an answer may have 1000 bytes: {rows} rows of up to 10 bytes would have"
    f" {10 * rows}; send at most 100 rows"
  )


def test_answers_that_are_just_small_enough_are_not_refused():
  assert _decode({"instances": [_ROW] * 100}).answer_bytes == 1000


@pytest.mark.parametrize("item", ["[],", "{},"])
def test_too_many_lists_or_objects_are_refused_before_they_are_made(item):
  body = ("[" + item * 2**19)[:-1].encode() + b"]"
  with pytest.raises(
    limits.Refusal, match="524288 lists and objects, got 524289"
  ):
    _decode(body)
  with pytest.raises(UserError, match="must be a JSON object"):
    _decode(body[: -len(item) - 1] + b"]")


def test_an_answer_that_grew_is_refused():
  """A model may leave its outputs' shapes open."""
  grown = {"x": np.zeros([1, 501], np.uint8)}
  with pytest.raises(limits.Refusal, match="may have 1000 bytes"):
    rest.encode(grown, by_row=True, max_answer=1000)


@settings(max_examples=50, deadline=None)
@given(
  st.data(),
  st.sampled_from([np.float32, np.float64, np.int64, np.uint8, np.bool_]),
  hnp.array_shapes(min_dims=1, max_dims=4, max_side=4),
  st.booleans(),
)
def test_no_answer_is_larger_than_was_foreseen(data, dtype, shape, by_row):
  finite = dict(allow_nan=False, allow_infinity=False)
  elements = hnp.from_dtype(
    np.dtype(dtype), **finite if issubclass(dtype, np.floating) else {}
  )
  outputs = {
    name: data.draw(hnp.arrays(dtype, shape, elements=elements))
    for name in ("a", "q_values")
  }
  specs = {name: tf.TensorSpec([None, *shape[1:]], dtype) for name in outputs}
  found = rest.encode(outputs, by_row=by_row, max_answer=10**6)
  around = len(b'{"predictions":[]}') + len(b'{"a":[],"q_values":[]}')
  assert len(found) <= shape[0] * models.row_bytes(specs) + around


@pytest.mark.parametrize("by_row", [True, False])
@pytest.mark.parametrize("shape", [(4,), (4, 3)])
@pytest.mark.parametrize(
  "dtype,number",
  [
    (np.float16, -6.1035e-05),
    (np.float32, -1e12),
    (np.float32, 1e14),
    (np.float32, -0.0000063184107),
    (np.float64, -2.6731384519862537e-241),
    (np.int64, np.iinfo(np.int64).min),
  ],
)
def test_the_longest_numbers_were_foreseen(dtype, number, shape, by_row):
  outputs = {name: np.full(shape, number, dtype) for name in ("a", "q_values")}
  specs = {name: tf.TensorSpec([None, *shape[1:]], dtype) for name in outputs}
  found = rest.encode(outputs, by_row=by_row, max_answer=10**6)
  around = len(b'{"predictions":[]}') + len(b'{"a":[],"q_values":[]}')
  assert len(found) <= shape[0] * models.row_bytes(specs) + around


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_answers_that_are_not_finite_are_told(wrong):
  outputs = {
    "action": np.array([0, 1, 2]),
    "q": np.array([[0, 1], [2, 3], [4, wrong]], np.float32),
  }
  with pytest.raises(UserError, match="'q' of row 2 is not finite"):
    _encode(outputs, by_row=True)


@pytest.mark.parametrize(
  "content",
  [
    {"x" * 10_000: 1},
    {"instances": [_ROW], "signature_name": "x" * 10_000},
    {"instances": [{"x" * 10_000: 1}]},
    {"instances": "x" * 10_000},
  ],
)
def test_messages_are_short_whatever_came(content):
  with pytest.raises(UserError) as caught:
    _decode(content)
  assert "xxx..." in str(caught.value) and len(str(caught.value)) < 200


def test_answers_come_by_row_or_by_name():
  two = {"action": np.array([3, 1]), "q": np.eye(2, dtype=np.float32)}
  assert json.loads(_encode(two, by_row=True)) == {
    "predictions": [{"action": 3, "q": [1, 0]}, {"action": 1, "q": [0, 1]}]
  }
  assert json.loads(_encode(two, by_row=False)) == {
    "outputs": {"action": [3, 1], "q": [[1, 0], [0, 1]]}
  }
  one = {"q": np.array([0.1], np.float32)}
  assert _encode(one, by_row=True) == b'{"predictions":[0.1]}'
  assert _encode(one, by_row=False) == b'{"outputs":[0.1]}'
