"""What the documentation says holds."""

import argparse
import ast
import dataclasses
import pathlib
import re
import shlex
import subprocess

import pytest

from tf_mmdrl.cli import main, train_command
from tf_mmdrl.core import algorithms
from tf_mmdrl.ops import kernel_words

_DOCS = pathlib.Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("name", algorithms.names())
def test_every_algorithm_has_a_page(name):
  page = (_DOCS / "algorithms" / f"{name}.md").read_text()
  for word in ("Deviations", "Settings", "Results", f"--agent {name}"):
    assert word in page
  assert algorithms.get(name).url in page
  assert algorithms.get(name).summary == algorithms.summary(name)
  own = [
    field.name for field in dataclasses.fields(algorithms.get(name).settings)
  ]
  assert sorted(own) == sorted(algorithms.own_settings(name))


@pytest.mark.parametrize("name", algorithms.names())
def test_pages_have_the_published_hyperparameters_as_a_command(name):
  page = (_DOCS / "algorithms" / f"{name}.md").read_text()
  _, found, section = page.partition("**Published hyperparameters.**")
  assert bool(found) == bool(algorithms.get(name).published)
  if found:
    (line,) = re.findall(r"^mmdrl train (.*)$", section, re.MULTILINE)
    assert "--preset published" not in line
    assert _wanted(line) == _wanted(f"--preset published --agent {name}")


def _wanted(arguments):
  """The configuration that `mmdrl train` makes of its arguments."""
  parser = argparse.ArgumentParser()
  train_command.add_arguments(parser)
  return train_command.wanted(parser.parse_args(shlex.split(arguments)))[1]


@pytest.mark.parametrize("name", kernel_words.NAMES)
def test_every_kernel_has_its_formula(name):
  page = (_DOCS / "kernels.md").read_text()
  table = page.partition("| k(x, y) |")[2].partition("\n\n")[0]
  (row,) = re.findall(rf"^\| `{name}[:`].*$", table, re.MULTILINE)
  assert re.search(r"\bd\b|x y", row.split(" | ")[1])  # of d = |x - y|, or x y


@pytest.mark.parametrize("path", sorted(_DOCS.rglob("*.md")), ids=str)
def test_links_lead_somewhere(path):
  for target in re.findall(r"\]\(([^)#\s]+)[)#]", path.read_text()):
    if not target.startswith("http"):
      assert (path.parent / target).exists(), f"{path.name} links to {target}"


_PAGES = [_DOCS.parent / "README.md", *sorted(_DOCS.rglob("*.md"))]


def test_messages_are_in_the_fields_words():
  """A distribution is no law, and a video no film."""
  package = _DOCS.parent / "tf_mmdrl"
  for path in package.rglob("*.py"):
    for node in ast.walk(ast.parse(path.read_text())):
      body = getattr(node, "body", None)
      if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
        body[0].value = None  # a docstring, which users of commands do not read
      text = getattr(node, "value", None)
      if isinstance(node, ast.Constant) and isinstance(text, str):
        wrong = re.search(r"\b(laws?|films?|beliefs?)\b", text)
        assert not (wrong and " " in text), f"{path}:{node.lineno}: {text}"


def test_commits_in_pages_are_in_the_repository():
  """A figure is of a commit, which a reader can check out."""
  root = _DOCS.parent
  if not (root / ".git").exists():
    pytest.skip("no repository")
  git = ["git", "-C", str(root)]
  shallow = [*git, "rev-parse", "--is-shallow-repository"]
  if subprocess.check_output(shallow, text=True).strip() == "true":
    pytest.skip("a repository without its history")
  one = r"`?[0-9a-f]{7,40}\b`?"
  cited = {
    commit: path.name
    for path in _PAGES
    for some in re.findall(
      rf"\bcommits?\s+({one}(?:(?:,| and|,? to)\s+{one})*)",
      path.read_text(),
      re.IGNORECASE,
    )
    for commit in re.findall(r"[0-9a-f]{7,40}", some)
  }
  assert len(cited) > 5
  # Only what HEAD is built on: a commit of another branch is not in a clone.
  history = subprocess.check_output(
    [*git, "rev-list", "HEAD"], text=True
  ).split()
  wrong = [c for c in cited if not any(full.startswith(c) for full in history)]
  assert not wrong, {commit: cited[commit] for commit in wrong}


def _blocks(path):
  """The code blocks of a page: the language, and the lines."""
  found = re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(), re.M | re.S)
  return [(language, text.splitlines()) for language, text in found]


@pytest.mark.parametrize("path", _PAGES, ids=lambda path: path.name)
def test_python_in_pages_compiles(path):
  for language, lines in _blocks(path):
    if language == "python":
      compile("\n".join(lines), str(path), "exec")


@pytest.mark.parametrize("path", _PAGES, ids=lambda path: path.name)
def test_commands_in_pages_have_flags_that_exist(path):
  for _, lines in _blocks(path):
    require_commands("\n".join(lines).replace("\\\n", " ").splitlines())


def require_commands(lines):
  """Fails unless the commands of mmdrl among these lines can be parsed."""
  for line in lines:
    if not line.startswith("mmdrl ") or "[" in line:
      continue
    line = re.sub(r"\$(\w+|\{[^}]*\})", "1", line)
    words = shlex.split(line, comments=True)[1:]
    words = words[: next((i for i, w in enumerate(words) if w in ">|&"), None)]
    parser = main.root_parser()
    assert words[0].startswith("-") or words[0] in main.COMMANDS, line
    if words[0] in main.COMMANDS:
      main.load(words[0], parser.commands[words[0]])
      assert not parser.commands[words[0]].parse_known_args(words[1:])[1], line


def test_the_readme_says_no_more_than_fits_two_minutes():
  """Nothing before the first command but what it is, and a picture."""
  readme = (_DOCS.parent / "README.md").read_text()
  before = readme.partition("```")[0]
  assert len(before.split()) < 140
  cited = re.search(r"title +: \{|title += \{([^}]+)\}", readme)[1]
  assert cited in (_DOCS.parent / "CITATION.cff").read_text()
  for path in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", readme):
    size = (_DOCS.parent / path).stat().st_size
    assert 1000 < size < 2_000_000, path


def _command(name):
  """The parser of a command, or of mmdrl itself for None."""
  parser = main.root_parser()
  if name is None:
    return parser
  main.load(name, parser.commands[name])
  return parser.commands[name]


@pytest.mark.parametrize("name", [None, *main.COMMANDS])
def test_help_fits_a_screen(name, monkeypatch):
  monkeypatch.setenv("COLUMNS", "80")
  parser = _command(name)
  shown = parser.format_help().splitlines()
  assert len(shown) <= 24
  assert max(map(len, [*shown, *parser.full_help().splitlines()])) <= 80
  monkeypatch.setenv("COLUMNS", "40")
  narrow = [
    *parser.format_help().splitlines(),
    *parser.full_help().splitlines(),
  ]
  wide = [
    line
    for line in narrow
    if len(line) > 40
    and len(line.split()) > 1
    and not line.startswith(("example:", "documentation:", "more options:"))
  ]
  assert not wide


@pytest.mark.parametrize("name", main.COMMANDS)
def test_help_has_an_example_and_its_page(name):
  parser = _command(name)
  assert (_DOCS.parent / parser.page.partition("#")[0]).is_file()
  assert f"mmdrl {name}" in parser.example
  for line in parser.example.splitlines():
    words = shlex.split(line, comments=True)
    if words[0] == "mmdrl":
      words = words[2 : words.index(">") if ">" in words else None]
      assert not parser.parse_known_args(words)[1]


def test_bare_help_names_a_page_that_is_there():
  assert (_DOCS.parent / main.root_parser().page).is_file()


@pytest.mark.parametrize("name", main.COMMANDS)
def test_help_shows_every_flag_and_each_title_once(name):
  parser = _command(name)
  shown = parser.full_help()
  for option in parser.options():
    assert f"  {option.option_strings[0]}" in shown
  titles = re.findall(r"^(\w[\w ]*):$", shown, re.MULTILINE)
  assert len(titles) == len(set(titles)), titles


def test_every_option_has_a_line_of_help():
  for name in main.COMMANDS:
    for option in _command(name).options():
      assert option.help and "%(default)" not in option.help, option
