"""Reports as self-contained HTML pages: a template that extends `base_page.html`, filled with values."""

from pathlib import Path

import jinja2

from envs.common.files import write_text


def write_page(out: Path, template: Path, **values: object) -> Path:
    """Fill `template` and write the page, whole or not at all; a missing value raises."""
    loader = jinja2.FileSystemLoader([template.parent, Path(__file__).parent])
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    write_text(out, environment.get_template(template.name).render(values))
    return out
