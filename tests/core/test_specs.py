import pytest
import tensorflow as tf
from tf_agents.specs import array_spec, tensor_spec

from tf_mmdrl.core import errors, specs


@pytest.mark.parametrize(
  "spec",
  [
    tensor_spec.BoundedTensorSpec([], tf.int32, 0, 3),
    array_spec.BoundedArraySpec([], "int64", 0, 3),
    [tensor_spec.BoundedTensorSpec([], tf.int64, 0, 3)],
  ],
)
def test_counts_actions(spec):
  assert specs.num_actions(spec) == 4


@pytest.mark.parametrize(
  "spec, message",
  [
    (tensor_spec.BoundedTensorSpec([2], tf.int32, 0, 3), "multi-dimensional"),
    ([tensor_spec.BoundedTensorSpec([], tf.int32, 0, 3)] * 2, "one action"),
    (tensor_spec.BoundedTensorSpec([], tf.float32, 0, 3), "discretise"),
    (
      tensor_spec.BoundedTensorSpec([1], tf.float32, [-2.0], [2.0]),
      r"got float32 \[1\]; discretise",
    ),
    (tf.TensorSpec([], tf.int32), "discretise"),
    (tensor_spec.BoundedTensorSpec([], tf.int32, 1, 3), "minimum of 1"),
  ],
)
def test_bad_specs_say_what_was_wanted(spec, message):
  with pytest.raises(errors.UserError, match=message):
    specs.num_actions(spec)
