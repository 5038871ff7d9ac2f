"""Reports as self-contained HTML pages: a template that extends `base_page.html`, filled with values."""

import re
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from envs.common.figure_style import ACCURACY, colour_at, ink, levelled
from envs.common.files import write_text

# The name of an option, and what paths and names of fields may be broken after.
OPTION = re.compile(r"(?<![^\s(])--[\w.-]*\w")
JOINT = re.compile(r"(?<=[\w.])[/_:]+(?=\w)")


def write_page(out: Path, template: Path, **values: object) -> Path:
    """Fill `template` and write the page, whole or not at all; a missing value raises."""
    loader = jinja2.FileSystemLoader([template.parent, Path(__file__).parent])
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters |= {"shade": shade, "unbroken": unbroken, "foldable": foldable}
    write_text(out, environment.get_template(template.name).render(values))
    return out


def shade(cell: str, chance: float = 50.0) -> Markup:
    """The style of a table's cell that begins with an accuracy in percent: its colour on the scale of figures, whose
    middle is `chance`."""
    number = re.match(r"\d+(\.\d+)?", cell)
    if number is None:
        return Markup("")
    colour = colour_at(levelled(float(number[0]), chance), ACCURACY)
    return Markup(' style="background: {}; color: {}"').format(colour, ink(colour))


def unbroken(text: object) -> Markup:
    """A command in which no line ends within the name of an option: browsers break after "--"."""
    return Markup(OPTION.sub(r'<span class="whole">\g<0></span>', str(escape(text))))


def foldable(text: object) -> Markup:
    """A name that may be broken at its joints, as in runs/a, file.py:Class and seen_pairs, rather than anywhere."""
    return Markup(JOINT.sub(r"\g<0><wbr>", str(escape(text))))
