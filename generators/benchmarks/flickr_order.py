"""Flickr30k-order of ARO: captions of Karpathy's test split of Flickr30k against shuffles of their words."""

from menagerie.generators.benchmarks import retrieval_flickr30k as images
from menagerie.generators.benchmarks.photographs import Place
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.benchmarks.retrieval import karpathy_test
from menagerie.generators.benchmarks.word_order import WordOrder


def build(place: Place) -> WordOrder:
    """Every caption."""
    return WordOrder("flickr-order", images.IMAGES, karpathy_test(place, images.FORMS), place)


BENCHMARK = BenchmarkSpec(
    name="flickr-order",
    about="a caption against itself with its words in other orders",
    files=(),
    one_of=images.FORMS,
    images=(images.IMAGES,),
    source=images.BENCHMARK.source,
    licence=images.BENCHMARK.licence,
    build=build,
    photographs=images.BENCHMARK.photographs,
    counts={"all": 5000},
    published={"CLIP ViT-B/32, OpenAI": {"all": 58.8}},
)
