"""A report and its files: one page that needs no other file, and the rest."""

import html
import pathlib
import re
from importlib import resources
from typing import List, Mapping, NamedTuple, Sequence, Tuple

from tf_mmdrl.core import errors, full_disk, plotting, whole_files
from tf_mmdrl.report import tables
from tf_mmdrl.report.tables import Table

_SHORT = 18  # letters of a row's name that stay on one line


class Picture(NamedTuple):
  """A figure, drawn.

  Attributes:
    name: the name of its files.
    caption: below it, and for those who cannot see it.
    png: the file.
    svg: the file.
    on_page: whether it stands in the page too.
  """

  name: str
  caption: str
  png: bytes
  svg: str
  on_page: bool = True


class Section(NamedTuple):
  """A part of the page.

  Attributes:
    title: its heading.
    words: paragraphs before the rest.
    pictures: figures.
    tables: tables, below the figures.
    folded: whether the tables are folded away at first.
  """

  title: str
  words: Sequence[str] = ()
  pictures: Sequence[Picture] = ()
  tables: Sequence[Table] = ()
  folded: bool = False


class Report(NamedTuple):
  """All of a report.

  Attributes:
    title: the title of the page.
    subtitle: one line on what was measured.
    headline: the figures to see first, each with its meaning.
    notes: what the reader should know.
    sections: the rest.
    files: texts to lie beside the page, by name.
  """

  title: str
  subtitle: str
  headline: Sequence[Tuple[str, str]]
  notes: Sequence[str]
  sections: Sequence[Section]
  files: Mapping[str, str] = {}


def write(report: Report, directory: pathlib.Path) -> List[pathlib.Path]:
  """Writes `report.html`, the tables and, in `figures/`, the figures.

  Args:
    report: what to write.
    directory: an existing one.

  Returns:
    The files.
  """
  contents = {"report.html": render(report).encode()}
  contents.update((name, text.encode()) for name, text in report.files.items())
  for section in report.sections:
    for table in section.tables:
      contents[f"{table.name}.csv"] = tables.to_csv(table).encode()
      contents[f"{table.name}.md"] = tables.to_markdown(table).encode()
    for picture in section.pictures:
      contents[f"figures/{picture.name}.png"] = picture.png
      contents[f"figures/{picture.name}.svg"] = picture.svg.encode()
  try:
    whole_files.write_all(directory, contents)
  except OSError as error:
    refused = full_disk.refused(
      directory, error, sum(map(len, contents.values()))
    )
    raise errors.UserError(
      f"{refused}: pass another -o. An older report there has not changed"
    ) from None
  return [directory / name for name in contents]


def render(report: Report) -> str:
  """The page; figures, style and script stand in it."""
  sections = [section for section in report.sections if _has_content(section)]
  links = "".join(
    f'<a href="#{_anchor(section)}">{_text(section.title)}</a>'
    for section in sections
  )
  cards = "".join(
    f"<li><strong>{_text(figure)}</strong><span>{_text(words)}</span></li>"
    for figure, words in report.headline
  )
  notes = "".join(f"<li>{_text(note)}</li>" for note in report.notes)
  return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{_text(report.title)}</title>
<style>
{_data("report.css")}</style>
</head>
<body>
<header>
<h1>{_text(report.title)}</h1>
<p class="subtitle">{_text(report.subtitle)}</p>
<ul class="cards">{cards}</ul>
<nav>{links}</nav>
</header>
<main>
<section class="notes"><h2>What to know</h2><ul>{notes}</ul></section>
{"".join(map(_section, sections))}
</main>
<footer>Made by <code>mmdrl</code>. Every table lies beside this page as
CSV and Markdown, every figure as PNG and SVG.</footer>
<script>
{_data("report.js")}</script>
</body>
</html>
"""


def _section(section: Section) -> str:
  words = "".join(f"<p>{_text(paragraph)}</p>" for paragraph in section.words)
  shown = [picture for picture in section.pictures if picture.on_page]
  figures = "".join(map(_figure, shown))
  grid = f'<div class="figures">{figures}</div>' if figures else ""
  below = "".join(_table(table, section.folded) for table in section.tables)
  return (
    f'<section id="{_anchor(section)}"><h2>{_text(section.title)}</h2>'
    f"{words}{grid}{below}</section>\n"
  )


def _figure(picture: Picture) -> str:
  caption = _text(picture.caption)
  drawn = _for_page(picture.svg, picture.name)
  labelled = drawn.replace("<svg", f'<svg role="img" aria-label="{caption}"', 1)
  return f"<figure>{labelled}<figcaption>{caption}</figcaption></figure>"


def _table(table: Table, folded: bool) -> str:
  words = [tables.text_column(table, i) for i in range(len(table.columns))]
  heads = "".join(
    f'<th scope="col"{_side(words[index])}>'
    f'<button type="button">{_text(heading)}</button></th>'
    for index, heading in enumerate(table.headings)
  )
  rows = "".join(_row(table, row, words) for row in table.rows)
  notes = "".join(f"<p>{_text(note)}</p>" for note in table.notes)
  content = (
    f'<div class="scroll" tabindex="0" role="region"'
    f' aria-label="{_text(table.title)}"><table><thead><tr>{heads}</tr></thead>'
    f'<tbody>{rows}</tbody></table></div><div class="below">{notes}</div>'
  )
  if folded:
    title = f"<summary>{_text(table.title)}</summary>"
    return f"<details>{title}{content}</details>"
  return f"<h3>{_text(table.title)}</h3>{content}"


def _row(table: Table, row: tables.Cells, words: Sequence[bool]) -> str:
  best = tables.best_cells(table, row)
  cells = []
  for index, cell in enumerate(row):
    number, *rest = map(_text, tables.display(table, cell))
    small = "".join(f"<small>{part}</small>" for part in rest if part)
    inner = f"<b>{number}</b>{small}" if index in best else number + small
    value = tables.number(cell)
    order = "" if value is None else f' data-order="{value:.10g}"'
    if index == 0:
      short = ' class="short"' if len(number) <= _SHORT else ""
      cells.append(f'<th scope="row"{short}>{inner}</th>')
    else:
      cells.append(f"<td{_side(words[index])}{order}>{inner}</td>")
  return f"<tr>{''.join(cells)}</tr>"


def _has_content(section: Section) -> bool:
  return bool(section.pictures or section.tables or section.words)


def _anchor(section: Section) -> str:
  return slug([section.title.lower()])


def _side(words: bool) -> str:
  return ' class="words"' if words else ""


def _text(words: str) -> str:
  return html.escape(words)


def _data(name: str) -> str:
  file = resources.files("tf_mmdrl.report") / "data" / name
  return file.read_text()


def _for_page(svg: str, name: str) -> str:
  """An SVG to stand within a page.

  Args:
    svg: what `plotting.to_svg` gave.
    name: the name of the figure; its identifiers are made unique with it.

  Returns:
    The `<svg>` element: sized by the page, in the colour of the page's text.
  """
  element = svg[svg.index("<svg") :]
  head, rest = element.split(">", 1)
  head = re.sub(r'\s(width|height|xmlns:xlink)="[^"]*"', "", head)
  rest = re.sub(r"<metadata>.*?</metadata>", "", rest, flags=re.DOTALL)
  rest = re.sub(r'\sid="([^"]+)"', rf' id="{name}-\1"', rest)
  rest = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", rest)
  rest = re.sub(r'xlink:href="#([^"]+)"', rf'href="#{name}-\1"', rest)
  return f"{head}>{rest}".replace(plotting.INK, "currentColor")


def slug(words: Sequence[str]) -> str:
  """A file name of words."""
  return re.sub(r"[^A-Za-z0-9.=-]+", "_", "_".join(words)).strip("_")
