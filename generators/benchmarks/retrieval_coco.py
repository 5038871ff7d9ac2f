"""Retrieval on COCO's 5000 test images of Karpathy and Fei-Fei (2015), with 25 010 captions: the usual figures."""

from menagerie.generators.benchmarks.photographs import Place
from menagerie.generators.benchmarks.registry import BenchmarkSpec
from menagerie.generators.benchmarks.retrieval import Retrieval, karpathy_test, photographs_of_test, records_of
from menagerie.generators.sources.kept_out import COCO

FORMS = ("coco/dataset_coco.json", "coco/coco_karpathy_test.json", "coco/coco_test_karpathy.json")
IMAGES = "coco/val2014"


def build(place: Place) -> Retrieval:
    """The images of the test split."""
    return Retrieval("retrieval-coco", IMAGES, records_of(karpathy_test(place, FORMS)), place)


BENCHMARK = BenchmarkSpec(
    name="retrieval-coco",
    about="which of all captions is an image's, and the other way: Karpathy's test split of COCO",
    files=(),
    one_of=FORMS,
    images=(IMAGES,),
    source=(
        "cs.stanford.edu/people/karpathy/deepimagesent (caption_datasets.zip), BLIP's coco_karpathy_test.json, or "
        "CLIP_benchmark's coco_test_karpathy.json (github.com/mehdidc/retrieval_annotations); images: "
        "cocodataset.org, 2014 Val images"
    ),
    licence="captions CC BY 4.0; images: Flickr's terms, see COCO",
    build=build,
    photographs=photographs_of_test(COCO, FORMS),
    counts={"all": 5000},
)
