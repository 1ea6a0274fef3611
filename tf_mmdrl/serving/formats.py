"""The same policy in other formats, written beside a SavedModel."""

import pathlib
from typing import TYPE_CHECKING, Any, Callable, Dict

import tensorflow as tf

from tf_mmdrl.core import optional
from tf_mmdrl.serving import signatures

if TYPE_CHECKING:
  from tf_agents.networks import network
  from tf_agents.policies import tf_policy

Writer = Callable[[pathlib.Path], None]
_OPSET = 17  # what every onnxruntime since 2022 reads


def onnx(
  net: "network.Network", reading: signatures.Reading = signatures.EXPECTED
) -> Writer:
  """Writes `policy.onnx`: observation -> action, q_values, values, weights."""
  converter = optional.require("tf2onnx", use="ONNX files", extra="onnx")

  def write(directory: pathlib.Path) -> None:
    function = _everything(net, reading)
    converter.convert.from_function(
      function,
      input_signature=function.input_signature,
      opset=_OPSET,
      output_path=str(directory / "policy.onnx"),
    )

  return write


def tflite(
  net: "network.Network", reading: signatures.Reading = signatures.EXPECTED
) -> Writer:
  """Writes `policy.tflite`, with the same inputs and outputs."""

  def write(directory: pathlib.Path) -> None:
    module = tf.Module()
    module.model_variables = list(net.variables)
    converter = tf.lite.TFLiteConverter.from_concrete_functions(
      [_everything(net, reading).get_concrete_function()], module
    )
    (directory / "policy.tflite").write_bytes(converter.convert())

  return write


WRITERS: Dict[str, Callable[..., Writer]] = {
  "onnx": onnx,
  "tflite": tflite,
}


def policy_saver(
  policy: "tf_policy.TFPolicy", train_step: tf.Variable
) -> Writer:
  """Writes `policy_saver/`, for TF-Agents' SavedModelPyTFEagerPolicy.

  Args:
    policy: the policy with the weights to save.
    train_step: kept with the policy.

  Returns:
    The writer.
  """
  from tf_agents.policies import policy_saver as savers

  def write(directory: pathlib.Path) -> None:
    # TF-Agents' own trigger writes the model once, with its first weights.
    saver = savers.PolicySaver(policy, batch_size=None, train_step=train_step)
    saver.save(str(directory / "policy_saver"))

  return write


def _everything(net: "network.Network", reading: signatures.Reading) -> Any:
  """One function, because these formats hold one: all but the risk."""

  @tf.function(input_signature=[signatures.batch_spec(net)], autograph=False)
  def everything(observation):
    distribution = signatures.returns(net, observation)
    return {
      **signatures.greedy(distribution, observation, reading),
      **signatures.weighted(distribution),
    }

  return everything
