"""Reports as self-contained HTML pages: a template that extends `base_page.html`, filled with values."""

import re
from collections.abc import Mapping
from pathlib import Path

import jinja2
import numpy as np
from markupsafe import Markup, escape

from menagerie.envs.core.files import write_text
from menagerie.studies.report.figures import ACCURACY, colour_at, ink

# Characters in paths and field names after which a line may be broken, and hyphenated words that must not be.
JOINT = re.compile(r"(?<=[\w.])=?[/_:]+(?=\w)")
OPTION, HYPHENATED = r"(?<![^\s(])--[\w.-]*\w", r"\w[\w.]*(?:-[\w.]+)+"
WHOLE = re.compile(f"{OPTION}|{HYPHENATED}")
INTERVAL = re.compile(r"(?<= )\[[^\]]*\]")
LONGEST = 16  # letters of a hyphenated word that is kept on one line
TAG = re.compile(r"<[^>]*>")


def write_page(out: Path, template: Path, **values: object) -> Path:
    """Fill `template` and write the page, whole or not at all; raises if a value is missing."""
    loader = jinja2.FileSystemLoader([template.parent, Path(__file__).parent])
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters |= {
        "shade": accuracy_style,
        "unbroken": break_in_path,
        "foldable": break_before_interval,
        "used": terms_in,
    }
    write_text(out, environment.get_template(template.name).render(values))
    return out


def accuracy_style(cell: str, chance: float | int = 50) -> Markup:
    """The style of a table cell that begins with an accuracy in percent: a colour on the scale of figures, with
    `chance` in the middle. A cell in which a comma follows the number (a remark such as "no skill") gets no colour."""
    number = re.match(r"\d+(\.\d+)?(?![\d.,])", cell)
    if number is None:
        return Markup("")
    ends = 0, chance, max(100, chance + 1e-9)  # 100 is in the middle where it is chance
    colour = colour_at(float(np.interp(float(number[0]), ends, (0, 50, 100))), ACCURACY)
    return Markup(' style="background: {}; color: {}"').format(colour, ink(colour))


def break_in_path(text: object) -> Markup:
    """Mark up a command or a path so that a browser may break it after a slash, an underscore or a colon, but not
    within an option's name or a short hyphenated word. By default, browsers break after each hyphen."""

    def whole(found: re.Match[str]) -> str:
        word = found[0]
        kept = word.startswith("--") or len(word) <= LONGEST
        return f'<span class="whole">{word}</span>' if kept else word

    return Markup(WHOLE.sub(whole, JOINT.sub(r"\g<0><wbr>", str(escape(text)))))


def break_before_interval(cell: str) -> Markup:
    """Mark up a table cell so that a browser may break a line between a number and its interval, or within a name after
    a slash, an underscore or a colon (runs/a, file.py:Class)."""
    return Markup(INTERVAL.sub(r'<span class="whole">\g<0></span>', str(break_in_path(cell))))


def terms_in(page: str, terms: Mapping[str, str]) -> dict[str, str]:
    """Choose the terms that occur in the text of a page, in singular or plural, or with underscores as a field's name;
    returns them with their meanings."""
    text = TAG.sub(" ", page)
    patterns = {term: r"[\s_-]+".join(map(re.escape, re.split(r"[\s-]", term))) for term in terms}
    return {term: terms[term] for term, words in patterns.items() if re.search(rf"\b{words}s?\b", text, re.IGNORECASE)}
