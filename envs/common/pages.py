"""Reports as pages of one file: a template that extends `base_page.html`, and its values."""

from pathlib import Path
from typing import Any

import jinja2

from envs.common.files import write_text


def write_page(out: Path, template: Path, **values: Any) -> Path:
    """Fill `template` and write the page, whole or not at all; a value that it lacks raises."""
    loader = jinja2.FileSystemLoader([template.parent, Path(__file__).parent])
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    write_text(out, environment.get_template(template.name).render(values))
    return out
