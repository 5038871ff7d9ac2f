"""Reports as self-contained HTML pages: a template that extends `base_page.html`, filled with values."""

import re
from collections.abc import Mapping
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from menagerie.envs.core.figures import ACCURACY, colour_at, ink, levelled
from menagerie.envs.core.files import write_text

# Characters in paths and field names after which a line may be broken, and hyphenated words that must not be.
JOINT = re.compile(r"(?<=[\w.])=?[/_:]+(?=\w)")
OPTION, HYPHENATED = r"(?<![^\s(])--[\w.-]*\w", r"\w[\w.]*(?:-[\w.]+)+"
WHOLE = re.compile(f"{OPTION}|{HYPHENATED}")
LONGEST = 16  # letters of a hyphenated word that is kept on one line
TAG = re.compile(r"<[^>]*>")


def write_page(out: Path, template: Path, **values: object) -> Path:
    """Fill `template` and write the page, whole or not at all; raises if a value is missing."""
    loader = jinja2.FileSystemLoader([template.parent, Path(__file__).parent])
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters |= {"shade": shade, "unbroken": unbroken, "foldable": foldable, "used": used}
    write_text(out, environment.get_template(template.name).render(values))
    return out


def shade(cell: str, chance: float = 50.0) -> Markup:
    """The style of a table cell that begins with an accuracy in percent: a colour on the scale of figures, with
    `chance` in the middle. A cell in which a comma follows the number (a remark such as "no skill") gets no colour."""
    number = re.match(r"\d+(\.\d+)?(?![\d.,])", cell)
    if number is None:
        return Markup("")
    colour = colour_at(levelled(float(number[0]), chance), ACCURACY)
    return Markup(' style="background: {}; color: {}"').format(colour, ink(colour))


def unbroken(text: object) -> Markup:
    """Mark up a command or a path so that a browser may break it after a slash, an underscore or a colon, but not
    within an option's name or a short hyphenated word. By default, browsers break after each hyphen."""

    def whole(found: re.Match[str]) -> str:
        word = found[0]
        kept = word.startswith("--") or len(word) <= LONGEST
        return f'<span class="whole">{word}</span>' if kept else word

    return Markup(WHOLE.sub(whole, JOINT.sub(r"\g<0><wbr>", str(escape(text)))))


def foldable(cell: str) -> Markup:
    """Mark up a table cell so that a browser may break a line between a number and its interval, or within a name after
    a slash, an underscore or a colon (runs/a, file.py:Class)."""
    before, bracket, interval = cell.partition(" [")
    if bracket:
        interval, closing, after = interval.partition("]")
        return Markup('{} <span class="whole">[{}{}</span>{}').format(before, interval, closing, after)
    return unbroken(cell)


def used(page: str, terms: Mapping[str, str]) -> dict[str, str]:
    """Choose the terms that occur in the text of a page, in singular or plural; returns them with their meanings."""
    text = TAG.sub(" ", page)
    return {term: meaning for term, meaning in terms.items() if re.search(pattern_of(term), text, re.IGNORECASE)}


def pattern_of(term: str) -> str:
    """A regular expression that finds a term in a text, also where it is written as a field's name (with
    underscores)."""
    return r"\b" + r"[\s_-]+".join(map(re.escape, re.split(r"[\s-]", term))) + r"s?\b"
