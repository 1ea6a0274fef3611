"""The one plot style."""

import matplotlib

from tf_mmdrl.core import plotting


def test_many_lines_can_be_told_apart():
  looks = {(plotting.colour(i), plotting.dash(i)) for i in range(32)}
  assert len(looks) == 32
  assert len({plotting.colour(i) for i in range(8)}) == 8
  assert len({plotting.marker(i) for i in range(8)}) == 8


def test_the_style_holds_within_its_context_only():
  before = dict(matplotlib.rcParams)
  with plotting.style():
    assert not matplotlib.rcParams["axes.spines.top"]
    assert not matplotlib.rcParams["text.parse_math"]
  with plotting.style(formulas=True):
    assert matplotlib.rcParams["text.parse_math"]
  assert dict(matplotlib.rcParams) == before


def _drawn():
  with plotting.style():
    figure = plotting.new_figure(2.0)
    panel = figure.subplots()
    panel.plot([0, 20_000], [1, 2], label="one")
    panel.plot([0, 20_000], [2, 1], label="two")
    plotting.band(panel, [0, 20_000], [0, 1], [2, 3], plotting.colour(0))
    plotting.count_steps(panel)
    plotting.legend_below(figure, panel)
    return plotting.to_svg(figure)


def test_a_figure_is_the_same_file_each_time_and_its_text_is_text():
  svg = _drawn()
  assert svg == _drawn()
  for text in ("one", "two", "agent steps", "20k"):
    assert f">{text}<" in svg
