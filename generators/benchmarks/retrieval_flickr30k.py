"""Retrieval on Flickr30k's 1000 test images of Karpathy and Fei-Fei (2015), with 5000 captions."""

from menagerie.generators.benchmarks.photographs import Place
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.benchmarks.retrieval import Retrieval, karpathy_test, photographs_of_test, records_of
from menagerie.generators.sources.kept_out import FLICKR

FORMS = (
    "flickr30k/dataset_flickr30k.json",
    "flickr30k/flickr30k_test.json",
    "flickr30k/flickr30k_test_karpathy.txt",
)
IMAGES = "flickr30k/images"


def build(place: Place) -> Retrieval:
    """The images of the test split."""
    return Retrieval("retrieval-flickr30k", IMAGES, records_of(karpathy_test(place, FORMS)), place)


BENCHMARK = BenchmarkSpec(
    name="retrieval-flickr30k",
    about="which of all captions is an image's, and the other way: Karpathy's test split of Flickr30k",
    files=(),
    one_of=FORMS,
    images=(IMAGES,),
    source=(
        "cs.stanford.edu/people/karpathy/deepimagesent (caption_datasets.zip), BLIP's flickr30k_test.json, or "
        "CLIP_benchmark's flickr30k_test_karpathy.txt (github.com/mehdidc/retrieval_annotations); images: "
        "shannon.cs.illinois.edu/DenotationGraph, by request"
    ),
    licence="research only; images: Flickr's terms",
    build=build,
    photographs=photographs_of_test(FLICKR, FORMS),
    counts={"all": 1000},
)
