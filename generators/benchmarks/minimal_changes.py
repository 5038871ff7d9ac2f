"""EqBen, VisMin and NaturalBench-Retrieval: two images that differ in little, each with its text, scored as Winoground.

- EqBen (Wang et al. 2023, "Equivariant similarity for vision-language foundation models"): frames of videos, rendered
  scenes and images of a diffusion model. Read are the authors' subset of a tenth and the smaller one for models that
  write text ("mini"). Parts are the data sets of the authors' evaluate_eqben_locally.py: the first folders of images.
  We haven't seen the file of all 251 048 records.
- VisMin (Awal et al. 2024): photographs of COCO val2017 and generated images; one of two has another object, attribute,
  relation or number. Parts are the categories of the authors' vismin-bench/metric.py. The hub has the set as arrow
  files; here it has one JSON object per line. Training leaves out val2017 as a whole.
- NaturalBench-Retrieval (Li et al. 2024): pairs of Flickr30k that CLIP and BLIP-2 confuse, as naturalbench_retrieval.py
  of the authors scores them. NaturalBench's questions aren't asked: scorers can't answer them.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from menagerie.generators.benchmarks.four_way import FourWay, four_way, read_four
from menagerie.generators.benchmarks.photographs import Record
from menagerie.generators.benchmarks.registry import benchmark_of_files
from menagerie.generators.sources.kept_out import FLICKR

IMAGES, CAPTIONS = ("image_0", "image_1"), ("caption_0", "caption_1")


def read_eqben(path: Path, part: str) -> Iterator[Record]:
    """Yield the records, whose part is the first folder of their images."""
    for record in read_four(path, part, ("image0", "image1"), ("caption0", "caption1")):
        yield record._replace(tags=(record.images[0].file.partition("/")[0],))


BENCHMARK_EQBEN = benchmark_of_files(
    "eqben", {"": "eqben/eqben_subset_10percent_final.json"}, read_eqben, "eqben/image_subset", FourWay
)
BENCHMARK_EQBEN_MINI = benchmark_of_files(
    "eqben-mini", {"": "eqben_mini/all_select.json"}, read_eqben, "eqben_mini/images", FourWay
)
BENCHMARK_VISMIN = four_way(
    "vismin",
    "vismin/test.jsonl",
    partial(read_four, images=IMAGES, texts=("text_0", "text_1"), tags=("category",)),
)
BENCHMARK_NATURALBENCH_RETRIEVAL = benchmark_of_files(
    "naturalbench-retrieval",
    {"": "naturalbench/metadata.json"},
    partial(read_four, images=IMAGES, texts=CAPTIONS),
    "naturalbench/images",
    FourWay,
    shows=FLICKR,
)
