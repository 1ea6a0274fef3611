"""What the buffer asks of its arguments, and how it says so."""

from typing import Any, List, Optional, Sequence

import numpy as np
import tensorflow as tf
from tf_agents.trajectories import trajectory

from tf_mmdrl.core.errors import UserError


def check_sizes(
  batch_size: int, max_length: int, *, stack: int, n_step: int
) -> None:
  """Raises unless the rings can hold a sample."""
  for name, value in (
    ("batch_size", batch_size),
    ("max_length", max_length),
    ("stack", stack),
    ("n_step", n_step),
  ):
    if value < 1:
      raise UserError(f"{name} must be at least 1, got {value}; pass {name}=1")
  if max_length < n_step + 1:
    raise UserError(
      f"max_length must be at least n_step + 1 = {n_step + 1} to hold one"
      f" sample, got {max_length}; make max_length larger"
    )


def check_spec(data_spec: Any, *, stack: int) -> Optional[int]:
  """Raises unless the buffer can take steps of this spec.

  Args:
    data_spec: the spec.
    stack: the frames in an observation.

  Returns:
    The index of the stacked observation among the flat specs, if any.
  """
  if not isinstance(data_spec, trajectory.Trajectory):
    raise UserError(
      "data_spec must be a Trajectory of specs, got"
      f" {type(data_spec).__name__}; pass agent.collect_data_spec"
    )
  for spec in tf.nest.flatten(data_spec):
    if not spec.shape.is_fully_defined():
      raise UserError(
        f"data_spec must have known shapes, got {spec}; fix the unknown sizes"
      )
  if stack == 1:
    return None
  observation = data_spec.observation
  if tf.nest.is_nested(observation):
    raise UserError(
      f"stack={stack} needs an observation that is one array, got"
      f" {observation}; pass stack=1 to keep observations as they are"
    )
  shape = observation.shape
  if shape.rank == 0 or shape[-1] % stack:
    raise UserError(
      f"stack={stack} must divide the last axis of the observation, got shape"
      f" {shape}; put the stack on the last axis, or pass stack=1"
    )
  return index_of(data_spec, "observation")


def index_of(data_spec: trajectory.Trajectory, field: str) -> int:
  """The index of a field that is one array, among the flat specs."""
  position = trajectory.Trajectory._fields.index(field)
  return len(tf.nest.flatten(tuple(data_spec)[:position]))


def check_steps(
  steps: Sequence[Sequence[np.ndarray]],
  wanted: Sequence[np.ndarray],
  names: List[str],
) -> None:
  """Raises unless every step has one item for each environment.

  Args:
    steps: what came: for each step one array for each field.
    wanted: for each field an array of the right shape and dtype.
    names: the names of the fields.
  """
  fields = (field for values in steps for field in zip(values, wanted, names))
  for value, example, name in fields:
    if value.shape != example.shape or value.dtype != example.dtype:
      raise UserError(
        f"{name} of a step must be {example.dtype} {list(example.shape)}, got"
        f" {value.dtype} {list(value.shape)}; make the environment and the"
        " buffer's batch_size and data_spec agree"
      )


def check_priorities(ids: np.ndarray, priorities: np.ndarray) -> None:
  """Raises unless there is one number for each id."""
  if ids.shape != priorities.shape or ids.dtype.kind != "i":
    raise UserError(
      "ids and priorities must have one shape and ids be integers, got"
      f" {ids.dtype} {ids.shape} and {priorities.shape}; pass BufferInfo.ids"
      " and one priority for each"
    )


def check_counts(num_batches: int, batch_size: int) -> None:
  """Raises unless there is something to draw."""
  if num_batches < 1 or batch_size < 1:
    raise UserError(
      "num_batches and batch_size must be at least 1, got"
      f" {num_batches} and {batch_size}"
    )


def check_num_steps(num_steps: Optional[int], n_step: int) -> None:
  """Raises unless samples can be so long."""
  if num_steps is not None and not 1 <= num_steps <= n_step + 1:
    raise UserError(
      f"num_steps must lie between 1 and n_step + 1 = {n_step + 1}, got"
      f" {num_steps}; create the buffer with n_step={max(num_steps - 1, 1)}"
    )


def check_no_preprocessing(sequence_preprocess_fn: Any) -> None:
  """Raises if there is a function that the buffer would not call."""
  if sequence_preprocess_fn is not None:
    raise NotImplementedError(
      "sequence_preprocess_fn is not supported; map the dataset instead"
    )
