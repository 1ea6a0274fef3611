"""Keras' convolution, computed as is fastest."""

import tensorflow as tf

from tf_mmdrl.ops import convolution


class FastConv2D(tf.keras.layers.Conv2D):
  """`Conv2D` with the same weights, names and values; see `ops.convolution`.

  What is not a plain convolution of pictures of one known size is computed as
  Keras does.

  Attributes:
    is_small: whether it is computed by patches, once it is built.
  """

  is_small = False

  def build(self, input_shape):
    """Makes the weights."""
    super().build(input_shape)
    size = tf.TensorShape(input_shape)[1:]
    self._is_plain = (
      self.data_format == "channels_last"
      and self.padding in ("valid", "same")
      and self.groups == 1
      and self.dilation_rate == (1, 1)
      and self.strides[0] == self.strides[1]
      and size.rank == 3
      and size.is_fully_defined()
    )
    if self._is_plain:
      found = convolution.geometry(size, self.kernel.shape, **self._options())
      self.is_small = found.is_small

  def convolution_op(self, inputs, kernel):
    """[B, H, W, C] -> [B, H', W', F], without the bias."""
    if not self._is_plain:
      return super().convolution_op(inputs, kernel)
    return convolution.convolution(inputs, kernel, **self._options())

  def _options(self):
    return {"stride": self.strides[0], "padding": self.padding.upper()}
