"""Whole phases: their multiples are exact, and so are their sines."""

import numpy as np
import pytest
import tensorflow as tf

from tf_mmdrl.ops import phases


@pytest.mark.parametrize("sine", [phases.library_sine, phases.series_sine])
@pytest.mark.parametrize(
  "dtype, bar", [(tf.float32, 2e-7), (tf.float64, 2e-16)]
)
def test_sines_of_a_whole_cycle(sine, dtype, bar):
  """Ends, quarters and their neighbours among them."""
  bits = 32 if dtype == tf.float32 else 64
  integer = np.int32 if bits == 32 else np.int64
  fractions = np.arange(-512, 512) * 2 ** (bits - 10)
  near = np.concatenate([fractions, fractions + 1, fractions[1:] - 1])
  given = near.astype(integer)
  exact = np.sin(np.longdouble(given) * 2 * np.pi / np.longdouble(2.0**bits))
  found = sine(tf.constant(given))
  assert found.dtype == dtype
  np.testing.assert_allclose(found, exact.astype(np.float64), atol=2 * bar)


@pytest.mark.parametrize("dtype", [tf.float32, tf.float64])
@pytest.mark.parametrize("jit_compile", [False, True])
def test_multiples_wrap_around_exactly(dtype, jit_compile):
  """Phases of thousands of cycles, where float32 would have no digit left."""
  cycles = np.random.default_rng(0).uniform(-0.25, 0.25, [2, 50])
  multiples = np.array([1, 3, 127, 4095, 100_001])

  @tf.function(jit_compile=jit_compile)
  def compute(cycles):
    whole = phases.of_cycles(cycles, dtype)
    rows = phases.cosines_and_sines(
      whole, tf.constant(multiples, tf.int32), phases.series_sine
    )
    return whole, rows

  whole, rows = compute(tf.constant(cycles))
  bits = 32 if dtype == tf.float32 else 64
  rounded = np.float64(whole) / 2.0**bits
  np.testing.assert_allclose(rounded, cycles, rtol=0, atol=0.6 * 2.0**-32)
  # Python's whole numbers have no end.
  turned = [
    [[(int(w) * int(m)) % 2**bits / 2**bits for w in row] for m in multiples]
    for row in whole.numpy()
  ]
  angles = 2 * np.pi * np.array(turned)
  wanted = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
  bar = 4e-7 if dtype == tf.float32 else 1e-14
  np.testing.assert_allclose(rows, wanted, atol=bar)
