"""CLEVR-bind behind its official prompt for CLIP: "a photo of" before each caption, without a space unless the file has
one, as the authors' code puts them together."""

from dataclasses import replace

from menagerie.generators.benchmarks import clevr_bind
from menagerie.generators.benchmarks.clevr_bind import PROMPT, ClevrBind, prompted
from menagerie.generators.benchmarks.photographs import Place

NAME = "clevr-bind-prompted"


def build(place: Place) -> ClevrBind:
    """The tables and lists of `clevr-bind`."""
    return prompted(NAME, place, PROMPT)


BENCHMARK = replace(
    clevr_bind.BENCHMARK,
    name=NAME,
    about="colours, shapes and relations of one or two simple things, five captions each behind CLIP's prompt",
    build=build,
)
