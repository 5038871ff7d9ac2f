"""SugarCrepe++ (Dumpala et al. 2024): SugarCrepe's captions, each with a paraphrase that is also true.

An image is right if both true captions score strictly higher than the false one (the paper's image-to-text task).
Chance is 1/3. The text-only task is missing, because it compares texts with each other.
"""

from collections.abc import Iterator, Mapping

from menagerie.generators.benchmarks.benchmark import Outcome, Scores
from menagerie.generators.benchmarks.photographs import Photograph, Record
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.benchmarks.sugarcrepe import IMAGES, SugarCrepe
from menagerie.generators.sources.kept_out import COCO, named_in
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import read_json_list

FOLDER = "sugarcrepe_pp"
COUNTS: Mapping[str, int] = {
    **{"replace_att": 788, "replace_obj": 1652, "replace_rel": 1406},
    **{"swap_att": 666, "swap_obj": 245},
}
TEXTS = ("caption", "caption2", "negative_caption")


class SugarCrepePlusPlus(SugarCrepe):
    """SugarCrepe++, with the accuracy over all records (micro) and the mean of its five files (macro); the paper
    reports the files alone."""

    true_texts = 2


def both_above(scores: Scores) -> Outcome:
    """Whether both of two true texts score higher than a false one; the neutral accuracy breaks ties at random."""
    *true, false = scores[0]
    lowest, level = min(true), sum(score == false for score in true)
    return Outcome(float(lowest > false), 0.0 if lowest < false else 1 / (1 + level), bool(lowest == false))


def build(place: Place) -> SugarCrepePlusPlus:
    records = [record for name in COUNTS for record in read_part(place, name)]
    return SugarCrepePlusPlus("sugarcrepe-pp", IMAGES, records, place, both_above)


def read_part(place: Place, name: str) -> Iterator[Record]:
    """Yield the records of one file; records of one photograph form a cluster."""
    for entry in read_json_list(place.path(f"{FOLDER}/{name}.json")):
        image = Photograph(entry.text("filename"))
        yield Record(f"{name} {entry.field('id', int)}", name, (image,), tuple(map(entry.text, TEXTS)), image.file)


BENCHMARK = BenchmarkSpec(
    name="sugarcrepe-pp",
    about="two captions that say the same, and one of nearly the same words that doesn't",
    files=tuple(f"{FOLDER}/{name}.json" for name in COUNTS),
    images=(IMAGES,),
    source="github.com/Sri-Harsha/scpp (data/*.json); images: cocodataset.org, 2017 Val images",
    licence="CC BY 4.0; images: Flickr's terms, see COCO",
    build=build,
    photographs=named_in(COCO, read_json_list, "filename"),
    counts=COUNTS,
)
