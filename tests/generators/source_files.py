"""The files of every training source in its official format, tiny: with the oddities that the real ones have."""

from collections.abc import Callable
from pathlib import Path

from tests.generators.benchmark_files import write_images, write_json

IMAGES = 4  # of COCO
FLICKR = "http://farm{0}.staticflickr.com/{0}153/297077387{0}_164f0c0b83_z.jpg"


def make_coco(root: Path) -> None:
    """Captions in another order than their images, with spare white space; numbers of images aren't contiguous."""
    numbers = [9 + 7 * k for k in range(IMAGES)]
    images = [
        {"id": n, "file_name": f"{n:012d}.jpg", "license": 3, "height": 24, "width": 36, "flickr_url": FLICKR.format(k)}
        for k, n in enumerate(numbers)
    ]
    texts = [(n, text) for n in numbers for text in (f"A cat on {n} mats.", f"  {n} mats\n with a cat ")]
    annotations = [{"id": 5 * k, "image_id": n, "caption": text} for k, (n, text) in enumerate(reversed(texts))]
    content = {"info": {"year": 2017}, "licenses": [], "images": images, "annotations": annotations}
    write_json(root / "coco/annotations/captions_train2017.json", content)
    write_images(root / "coco/train2017", [image["file_name"] for image in images])


MAKERS: dict[str, Callable[[Path], None]] = {"coco": make_coco}
