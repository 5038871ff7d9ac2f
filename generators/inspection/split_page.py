"""A split as one self-contained page: its numbers, sample images, and co-occurrences in train."""

from pathlib import Path
from typing import NamedTuple

from menagerie.envs.core.figures import data_uri, png
from menagerie.envs.core.pages import write_page as fill
from menagerie.envs.slots import SLOTS_OF
from menagerie.generators.export.formats import ExportPart
from menagerie.generators.inspection.matrices import (
    Counts,
    animal_counts,
    attribute_counts,
    background_counts,
    count_matrix,
    mentioned_relations,
    pair_coverage,
    role_matrix,
)
from menagerie.generators.inspection.summary import COLUMNS, facts, subset_rows
from menagerie.generators.splits.dependence import normalised_mutual_information
from menagerie.generators.storage.pictures import SplitPictures
from menagerie.generators.storage.split_file import Split

SAMPLES = 5  # samples of each subset


class Picture(NamedTuple):
    """An image of the page."""

    uri: str
    alt: str
    relation: str | None = None


class Sample(NamedTuple):
    """A record of a subset; `negative` is empty if there is none."""

    uri: str
    caption: str
    negative: str


def write_page(split: Split, out: Path) -> None:
    """Write the page, whole or not at all; the same for a split and its packed file."""
    train, v = split.subsets["train"].scenes, split.vocabulary
    textures = attribute_counts(train, v, "texture")
    pairs_only = attribute_counts([scene for scene in train if len(scene.things) > 1], v, "texture")
    fill(
        out,
        Path(__file__).with_suffix(".html"),
        title=split.path.name,
        facts=facts(split),
        table=[COLUMNS, *(row.texts for row in subset_rows(split))],
        samples=samples(split),
        together=[together(split, relation) for relation in mentioned_relations(split)],
        coverage=[coverage(split, relation) for relation in mentioned_relations(split)],
        textures=beside(textures, v.animals, v.textures, "texture"),
        backgrounds=beside(background_counts(train, v), v.animals, v.backgrounds, "background"),
        sizes=beside(attribute_counts(train, v, "size"), v.animals, v.sizes, "size") if v.sizes else None,
        information=f"{normalised_mutual_information(textures):.4f}",
        pair_information=f"{normalised_mutual_information(pairs_only):.4f}",
        slots=SLOTS_OF,
    )


def samples(split: Split) -> dict[str, list[Sample]]:
    """For each subset, a few evenly spaced records."""
    pictures, shown = SplitPictures(split), {}
    for name in (row.subset for row in subset_rows(split)):
        records = split.subsets[name]
        part, count = ExportPart(name, records, pictures), min(SAMPLES, len(records))
        chosen = [len(records) * (2 * i + 1) // (2 * count) for i in range(count)]
        shown[name] = [Sample(data_uri(part.png(i)), records.captions[i], records.negatives[i]) for i in chosen]
    return shown


def together(split: Split, relation: str | None) -> Picture:
    """A matrix with the number of train scenes that show each pair of animals together."""
    v = split.vocabulary
    table = animal_counts(split.subsets["train"].scenes, v, relation)
    axes = SLOTS_OF[relation] if relation else ("", "")
    figure = count_matrix(table, v.animals, v.animals, axes, "scenes of train")
    alt = f"Matrix of animals by animals: scenes of train with both{f', {relation}' if relation else ''}"
    return Picture(data_uri(png(figure, fitted=True)), alt, relation)


def coverage(split: Split, relation: str | None) -> Picture:
    """A matrix with the role of every animal pair."""
    figure = role_matrix(pair_coverage(split, relation), split.vocabulary.animals)
    alt = f"Matrix of animals by animals: the role of each pair{f', {relation}' if relation else ''}"
    return Picture(data_uri(png(figure, fitted=True)), alt, relation)


def beside(table: Counts, animals: tuple[str, ...], names: tuple[str, ...], what: str) -> Picture:
    """A matrix with the number of things in train by animal, and by texture, size or background."""
    figure = count_matrix(table, animals, names, ("", what), "animals of train")
    return Picture(
        data_uri(png(figure, fitted=True)), f"Matrix of animals by {what}s: how often both are together in train"
    )
