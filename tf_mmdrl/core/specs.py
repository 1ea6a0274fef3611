"""Checks of TF-Agents specs."""

import tensorflow as tf
from tf_agents.specs import tensor_spec

from tf_mmdrl.core import errors


def num_actions(action_spec) -> int:
  """The number of actions, or an error for what is not one discrete action.

  Args:
    action_spec: a scalar integer spec from 0.

  Returns:
    |A|.
  """
  flat = tf.nest.flatten(tensor_spec.from_spec(action_spec))
  wanted = "one scalar, discrete action that starts at 0 is wanted"
  came = " and ".join(_in_words(spec) for spec in flat)
  if not all(
    spec.dtype.is_integer and hasattr(spec, "maximum") for spec in flat
  ):
    raise errors.UserError(
      f"{wanted}, got {came}; discretise continuous actions"
    )
  if len(flat) != 1 or flat[0].shape.rank != 0:
    raise errors.UserError(
      f"{wanted}, got {came}; a value-based agent needs one action to choose:"
      " flatten a multi-dimensional action into one integer"
    )
  spec = flat[0]
  if spec.minimum != 0:
    raise errors.UserError(
      f"{wanted}, got a minimum of {spec.minimum}; shift the actions"
    )
  return int(spec.maximum) + 1


def _in_words(spec: tf.TensorSpec) -> str:
  """Type and shape, in one line whatever the bounds are."""
  shape = spec.shape.as_list() if spec.shape.rank else "scalar"
  return f"{spec.dtype.name} {shape}"
