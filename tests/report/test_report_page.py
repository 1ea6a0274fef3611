"""`mmdrl report`: its files, its page in a browser, and bad input."""

import csv
import html.parser
import pathlib
import time

import pytest
import report_browser
import report_fixtures

from tf_mmdrl.cli import main
from tf_mmdrl.core import errors
from tf_mmdrl.report import page
from tf_mmdrl.report.tables import Table


@pytest.fixture(scope="module")
def of_published(tmp_path_factory):
  path = tmp_path_factory.mktemp("published")
  assert main.main(["report", "--published", "-o", str(path)]) == 0
  return path


@pytest.fixture(scope="module")
def of_runs(tmp_path_factory):
  """20 runs: 5 games, 2 agents, 2 seeds."""
  path = tmp_path_factory.mktemp("runs")
  report_fixtures.write_runs(path / "in")
  begun = time.process_time()  # of this process, however busy the machine
  assert main.main(["report", str(path / "in"), "-o", str(path / "out")]) == 0
  assert time.process_time() - begun < 30
  return path / "out"


def table(path):
  with path.open() as file:
    return list(csv.DictReader(file))


class _Checker(html.parser.HTMLParser):
  """Collects what a page loads, and that its tags close in order."""

  _VOID = {"meta", "br", "path", "use", "rect", "stop"}

  def __init__(self):
    super().__init__()
    self.open, self.loads, self.ids = [], [], []

  def handle_starttag(self, tag, attributes):
    named = dict(attributes)
    if tag not in self._VOID:
      self.open.append(tag)
    self.ids += [named["id"]] if "id" in named else []
    for name in ("src", "href", "xlink:href"):
      if not named.get(name, "#").startswith("#"):
        self.loads.append(named[name])

  def handle_startendtag(self, tag, attributes):
    self.handle_starttag(tag, attributes)
    if tag not in self._VOID:
      self.open.pop()

  def handle_endtag(self, tag):
    if tag not in self._VOID:
      assert self.open.pop() == tag


@pytest.mark.parametrize("report", ["of_published", "of_runs"])
def test_the_page_is_whole_and_needs_no_other_file(report, request):
  text = (request.getfixturevalue(report) / "report.html").read_text()
  checker = _Checker()
  checker.feed(text)
  assert not checker.open and not checker.loads
  assert len(set(checker.ids)) == len(checker.ids)
  assert "@import" not in text and "url(http" not in text


@pytest.mark.parametrize("report", ["of_published", "of_runs"])
def test_every_table_and_figure_has_its_files(report, request):
  path = request.getfixturevalue(report)
  for suffixes, directory in ((".csv .md", path), (".png .svg", "figures")):
    first, second = (
      {file.stem for file in (path / directory).glob(f"*{suffix}")}
      - {"evaluations"}  # the raw data, for programs
      for suffix in suffixes.split()
    )
    assert first == second and first


def test_table_1_of_the_published_scores(of_published):
  rows = table(of_published / "table1.csv")
  assert list(rows[0])[:7] == [
    "agent",
    "mean",
    "median",
    "iqm",
    "above_human",
    "above_dqn",
    "mean_without_videopinball",
  ]
  mmdqn = rows[-1]
  assert mmdqn["agent"] == "MMDQN"
  rounded = [round(float(mmdqn[name])) for name in list(mmdqn)[1:7]]
  assert rounded == [1969, 213, 296, 41, 55, 1034]
  assert mmdqn["seeds"] == "mean of 3" and mmdqn["episodes"] == "not given"


def test_the_published_report_says_what_to_know(of_published):
  text = (of_published / "report.html").read_text()
  assert "mean of 1,969 % is 1,034 % without one game, VideoPinball" in text
  assert "differ from the paper&#x27;s Table 1" in text
  assert "MontezumaRevenge is a tie" in text


def test_table_1_of_runs(of_runs):
  rows = {row["agent"]: row for row in table(of_runs / "table1.csv")}
  assert set(rows) >= {"mmdqn", "qrdqn", "MMDQN (paper)"}
  mine = rows["mmdqn"]
  for name in ("mean", "median", "iqm", "optimality_gap"):
    low, high = float(mine[f"{name}_low"]), float(mine[f"{name}_high"])
    assert low <= float(mine[name]) <= high
  assert (mine["games"], mine["seeds"]) == ("5", "0, 1")
  assert mine["episodes"] == str(5 * 2 * 16)
  assert rows["MMDQN (paper)"]["mean_low"] == ""


def test_raw_scores_stand_beside_the_papers(of_runs):
  rows = {row["game"]: row for row in table(of_runs / "raw_scores.csv")}
  assert rows["Breakout"]["MMDQN (paper)"] == "823.1"
  assert rows["Breakout"]["human"] == "30.5"
  assert rows["Breakout"]["mmdqn_seeds"] == "0, 1"
  assert rows["Breakout"]["mmdqn_episodes"] == "32"
  low, high = (float(rows["Pong"][f"mmdqn_{end}"]) for end in ("low", "high"))
  assert low <= float(rows["Pong"]["mmdqn"]) <= high


def test_improvement_is_over_qrdqn_unless_told(of_runs):
  text = (of_runs / "improvement.md").read_text()
  assert text.startswith("## mmdqn over qrdqn, game by game")
  rows = table(of_runs / "improvement.csv")
  assert all(float(row["percentage_improvement"]) > 0 for row in rows)


@pytest.mark.parametrize("report", ["of_published", "of_runs"])
@pytest.mark.parametrize(
  "scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)]
)
def test_in_a_browser(report, scheme, request, tmp_path):
  path = request.getfixturevalue(report) / "report.html"
  with report_browser.chromium() as page:
    for width in (1200, 400):
      page.emulate(width, scheme=scheme)
      page.open(path)
      # Wide tables scroll by themselves, the page does not.
      assert page.run("return document.documentElement.scrollWidth") <= width
      boxes = page.run(
        "return [...document.querySelectorAll('figure svg')].map(svg =>"
        " [svg.getBoundingClientRect().width, svg.getBBox().width,"
        " svg.getBoundingClientRect().height])"
      )
      assert len(boxes) >= 4
      assert all(min(box) > 100 and box[0] <= width for box in boxes)
      sizes = page.run(
        "return [...document.querySelectorAll('p, li, td, figcaption')].map("
        "element => parseFloat(getComputedStyle(element).fontSize))"
      )
      assert min(sizes) >= 12
    page.run(
      "const head = document.querySelectorAll('thead button')[1];head.click()"
    )
    order = page.run(
      "const body = document.querySelector('tbody');"
      "return [...body.rows].map(row => +row.cells[1].dataset.order)"
    )
    assert order == sorted(order, reverse=True)
    assert page.complaints() == []
    page.screenshot(tmp_path / "page.png")
    assert (tmp_path / "page.png").stat().st_size > 10_000


def test_an_old_report_stays_if_the_new_one_cannot_be_written(
  tmp_path, monkeypatch
):
  def made(title):
    tables = [Table(n, title, ["a"], ["A"], [["b"]]) for n in ("one", "two")]
    return page.Report(title, "", [], [], [page.Section("S", tables=tables)])

  page.write(made("old"), tmp_path)
  before = {path: path.read_bytes() for path in tmp_path.iterdir()}
  write = pathlib.Path.write_bytes

  def full(path, content):
    if path.name.startswith("two.md"):
      write(path, content[:1])
      raise OSError(28, "No space left on device")
    return write(path, content)

  monkeypatch.setattr(pathlib.Path, "write_bytes", full)
  with pytest.raises(errors.UserError, match="No space left.*older report"):
    page.write(made("new"), tmp_path)
  assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_games_without_a_human_score_are_told(tmp_path, capsys):
  runs = report_fixtures.write_runs(
    tmp_path / "in", games=["MinAtar/Asterix"], agents=["mmdqn"], seeds=[0]
  )
  report_fixtures.write_run(tmp_path / "in" / "fresh", scores=[])
  out = tmp_path / "out"
  assert main.main(["report", str(runs), "-o", str(out)]) == 0
  said = capsys.readouterr()
  assert "No scale is known for MinAtar/Asterix" in said.out
  assert said.out.startswith("drawing 1 run\n")
  assert said.out.count("Left out, without an evaluation") == 1
  assert not said.err
  (row,) = table(out / "raw_scores.csv")
  assert row["game"] == "MinAtar/Asterix" and float(row["mmdqn"]) > 0
  assert not (out / "human_normalized.csv").exists()
  assert not (out / "table1.csv").exists()


def test_games_without_human_scores_are_compared(tmp_path, capsys):
  games = ["MinAtar/Breakout", "MinAtar/Freeway"]
  runs = report_fixtures.write_runs(
    tmp_path / "in", games=games, agents=["mmdqn", "dqn"], seeds=[0, 1, 2]
  )
  out = tmp_path / "out"
  assert main.main(["report", str(runs), "-o", str(out)]) == 0
  assert "1 is the mean of dqn" in capsys.readouterr().out
  rows = {row["agent"]: row for row in table(out / "over_games.csv")}
  assert float(rows["dqn"]["mean"]) == pytest.approx(100)
  assert float(rows["mmdqn"]["iqm_low"]) > 150
  assert rows["mmdqn"]["games"] == "2" and rows["mmdqn"]["seeds"] == "0, 1, 2"
  (pair,) = table(out / "probability_of_improvement.csv")
  assert (pair["agent"], pair["other"]) == ("mmdqn", "dqn")
  assert float(pair["probability"]) == 100
  assert pair["verdict"] == "mmdqn is better"
  for name in ("probability_of_improvement", "performance_profile"):
    assert (out / "figures" / f"{name}.png").exists()
  assert not (out / "table1.csv").exists()


def test_no_difference_is_said_to_be_none(tmp_path):
  for seed, (mine, theirs) in enumerate([(3, 4), (5, 2), (1, 6), (7, 3)]):
    for agent, score in (("mmdqn", mine), ("dqn", theirs)):
      report_fixtures.write_run(
        tmp_path / "in" / f"{agent}{seed}",
        "environment.name=MinAtar/Breakout",
        f"agent.name={agent}",
        f"system.seed={seed}",
        scores=[float(score)],
      )
  out = tmp_path / "out"
  assert main.main(["report", str(tmp_path / "in"), "-o", str(out)]) == 0
  (pair,) = table(out / "probability_of_improvement.csv")
  low, high = (float(pair[f"probability_{end}"]) for end in ("low", "high"))
  assert low < 50 < high
  assert pair["verdict"] == "no difference shown"


def test_curves_from_elsewhere_join_the_runs(tmp_path):
  runs = report_fixtures.write_runs(tmp_path / "in", games=["Breakout"])
  file = tmp_path / "curves.csv"
  file.write_text("Breakout,1,2,3\nBreakout,2,3,4\n")
  flags = ["--curves", str(file), "--label", "theirs", "--curve-period", "500"]
  flags += ["--baseline", "theirs", "--last", "2", "--smooth", "3"]
  out = tmp_path / "out"
  assert main.main(["report", str(runs), *flags, "-o", str(out)]) == 0
  (row,) = table(out / "raw_scores.csv")
  assert float(row["theirs"]) == 3  # the mean of 2, 3, 3 and 4
  assert row["theirs_episodes"] == "not given"
  assert (out / "improvement_mmdqn.csv").exists()


def test_settings_that_differ_have_curves(tmp_path):
  for number in (10, 200):
    for seed in (0, 1):
      report_fixtures.write_run(
        tmp_path / "in" / f"{number}-{seed}",
        "environment.name=Pong",
        f"network.num_particles={number}",
        f"system.seed={seed}",
        scores=[seed, number],
      )
  out = tmp_path / "out"
  assert main.main(["report", str(tmp_path / "in"), "-o", str(out)]) == 0
  names = [path.name for path in (out / "figures").glob("sensitivity*.svg")]
  assert len(names) == 2 and all("num_particles" in name for name in names)


def _no_evaluation(path):
  report_fixtures.write_run(path / "run", scores=[])
  return [str(path / "run")]


def _foreign(path):
  (path / "config.json").write_text('{"name": "something else"}')
  return [str(path)]


def _unknown_baseline(path):
  report_fixtures.write_run(path / "run", scores=[1.0])
  return [str(path / "run"), "--baseline", "mmdqm"]


def _bad_curves(path):
  (path / "curves.csv").write_text("Pong,1\nPong,one\n")
  return ["--curves", str(path / "curves.csv"), "--label", "theirs"]


def _broken_metrics(path):
  run = report_fixtures.write_run(path / "run", scores=[1.0])
  text = (run / "metrics.csv").read_text().replace("1.0", "one")
  (run / "metrics.csv").write_text(text)
  return [str(run)]


@pytest.mark.parametrize(
  "make, message",
  [
    (lambda path: [str(path)], "is not a run and holds none"),
    (lambda path: [str(path / "none")], "is not a directory"),
    (_foreign, "is not a run: its config.json cannot be read"),
    (_no_evaluation, "no run has an evaluation yet"),
    (_unknown_baseline, "unknown baseline 'mmdqm'; did you mean 'mmdqn'"),
    (_bad_curves, "line 2: a score must be a number, got 'one'"),
    (_broken_metrics, "cannot be read: could not convert"),
    (lambda path: [], "nothing to report on"),
    (lambda path: ["--published", str(path)], "leave out RUN"),
    (lambda path: ["--curves", "x"], "each --curves needs its --label"),
    (lambda path: [str(path), "--last", "-1"], "--last must be at least 0"),
    (lambda path: ["--published", "--baseline", "QRDQN"], "did you mean"),
  ],
)
def test_bad_input_is_one_line(tmp_path, capsys, make, message):
  (tmp_path / "in").mkdir()
  flags = make(tmp_path / "in")
  out = str(tmp_path / "out")
  assert main.main(["report", *flags, "-o", out]) == main.EXIT_BAD_INPUT
  error = capsys.readouterr().err
  assert message in error and error.count("\n") == 1


def test_runs_without_an_evaluation_are_left_out_and_told(tmp_path, capsys):
  report_fixtures.write_run(tmp_path / "in" / "a", scores=[1.0])
  report_fixtures.write_run(tmp_path / "in" / "b", "system.seed=1", scores=[])
  out = str(tmp_path / "out")
  assert main.main(["report", str(tmp_path / "in"), "-o", out]) == 0
  assert "without an evaluation yet" in capsys.readouterr().out
  text = (tmp_path / "out" / "report.html").read_text()
  assert "without an evaluation yet" in text
