"""Kinds of files that others write. Any well-formed content is right, and all else is one clear error."""

import shutil
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from menagerie.envs.worlds import load_world
from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.generators.false_captions.files import read_false_captions, write_false_captions
from menagerie.generators.false_captions.record import FalseCaption
from menagerie.generators.hub.write import import_folder
from menagerie.generators.sources.image_files import ImageFiles
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.registry import load_source
from menagerie.generators.splits.recipe_file import SHIPPED, read_recipe
from menagerie.models.library.judged import kind_of_hugging_face
from menagerie.studies.ledger.claim_file import SHIPPED as CLAIMS
from menagerie.studies.ledger.claim_file import read_claim
from tests.faults.file_kinds import FileKind
from tests.faults.our_files import RESOLUTION
from tests.helpers.benchmark_files import MAKERS as BENCHMARKS
from tests.helpers.cutout_files import draw, world_of
from tests.helpers.source_files import MAKERS as SOURCES
from tests.helpers.source_files import picture, write_shard

WORLD = """
extends = "tiny"
textures = ["red", "their tiles"]
backgrounds = ["desert", "their park"]

[animal."their blob"]
mesh = "blob.stl"
size = 1.2

[texture."their tiles"]
image = "tiles.png"
tile = 0.4

[background."their park"]
image = "park.png"
"""


def make_recipe(folder: Path) -> Path:
    shutil.copy(SHIPPED["no_red_cat"], folder / "mine.toml")
    return folder / "mine.toml"


def make_claim(folder: Path) -> Path:
    shutil.copy(CLAIMS / "half-truths.toml", folder / "mine.toml")
    return folder / "mine.toml"


def make_world(folder: Path) -> Path:
    import trimesh

    body = trimesh.creation.icosphere(2, 0.5)
    trimesh.Trimesh(body.vertices * (1.4, 0.8, 1), body.faces).export(folder / "blob.stl")
    rng = np.random.default_rng(0)
    for name in ("tiles", "park"):
        Image.fromarray(rng.integers(90, 200, (32, 32, 3), np.uint8)).save(folder / f"{name}.png")
    (folder / "mine.toml").write_text(WORLD)
    return folder / "mine.toml"


def make_cutout(folder: Path) -> Path:
    draw(folder / "lion.png")
    world_of(folder, '[animal.lion]\ncutouts = ["lion.png"]\n', '["lion", "rabbit"]')
    return folder / "lion.png"


def read_world(path: Path) -> Any:
    return asdict(load_world(str(path.parent / "mine.toml"))) | {"source": ""}


def with_root(make: Any) -> Any:
    def made(folder: Path) -> Path:
        (folder / ".root").touch()
        return make(folder)

    return made


def source(name: str, file: str) -> Any:
    return with_root(lambda folder: (SOURCES[name](folder), folder / file)[1])


def root_of(path: Path) -> Path:
    return next(parent for parent in path.parents if (parent / ".root").exists())


def read_source(name: str, recipe: str = "") -> Any:
    def read(path: Path) -> Any:
        data = load_source(name).open(Place(root_of(path), RESOLUTION, caption=recipe))
        return list(data.texts()), data.images(range(len(data)))

    return read


def benchmark(name: str, pattern: str) -> Any:
    return with_root(lambda folder: (BENCHMARKS[name](folder), min(folder.glob(pattern)))[1])


def read_benchmark(name: str) -> Any:
    def read(path: Path) -> Any:
        return list(load_benchmark(name).build(Place(root_of(path), RESOLUTION, allow_missing=True)).content())

    return read


def make_photograph(folder: Path, form: str) -> Path:
    (folder / f"a.{form}").write_bytes(picture("a", form))
    return folder / f"a.{form}"


def make_array(folder: Path) -> Path:
    np.save(folder / "a.npy", np.random.default_rng(0).integers(0, 256, (12, 16, 3), np.uint8))
    return folder / "a.npy"


def read_photograph(path: Path) -> Any:
    return ImageFiles(path.parent, [path.name], RESOLUTION).read([0])


def make_configured(folder: Path) -> Path:
    (folder / "config.json").write_text('{"model_type": "clip", "text_config": {"hidden_size": 32}}')
    return folder / "config.json"


def make_false_pairs(folder: Path) -> Path:
    texts = (("a red cat", "a blue cat"), ("two dogs", "three dogs"))
    pairs = [FalseCaption("a.jpg", true, "replace", "replace attribute", false) for true, false in texts]
    write_false_captions(folder / "false.jsonl", pairs)
    return folder / "false.jsonl"


def make_table(folder: Path, form: str) -> Path:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    (folder / "hub").mkdir(parents=True)
    rows = [
        {"image": {"bytes": picture(f"{k}"), "path": f"{k:012}.jpg"}, "caption": f"a cat {k}", "negative_caption": "x"}
        for k in range(3)
    ]
    table = arrow.Table.from_pylist(rows).replace_schema_metadata({"huggingface": '{"info": {"features": {}}}'})
    path = folder / f"hub/swap_obj.{form}"
    if form == "parquet":
        parquet.write_table(table, path)
    else:
        with arrow.OSFile(str(path), "wb") as file, arrow.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table)
    return path


def make_webdataset(folder: Path, file: str) -> Path:
    own = folder / "wds_pair"
    write_shard(
        own / "test/0.tar",
        {f"s{k}.{e}": picture(f"{k}") if e == "jpg" else k.encode() for k in "01" for e in ("jpg", "cls")},
    )
    (own / "classnames.txt").write_text("cat\ndog\n")
    return own / file


def read_imported(path: Path) -> Any:
    hub = next(parent for parent in path.parents if parent.name in ("hub", "wds_pair"))
    out = hub.with_name("data")
    try:
        import_folder(hub, out)
        return {str(file.relative_to(out)): file.read_bytes() for file in out.rglob("*") if file.is_file()}
    finally:
        assert out.exists() or sorted(hub.parent.iterdir()) == [hub]
        shutil.rmtree(out, ignore_errors=True)


COCO, GENOME = "coco/annotations/captions_train2017.json", "vg/region_descriptions.json"
KINDS: dict[str, tuple[Any, Any]] = {
    "claim of the ledger": (make_claim, read_claim),
    "recipe": (make_recipe, lambda path: read_recipe(str(path))),
    "world": (make_world, read_world),
    "mesh of a world": (lambda folder: make_world(folder).with_name("blob.stl"), read_world),
    "cut-out of a world": (make_cutout, read_world),
    "picture of a world": (lambda folder: make_world(folder).with_name("tiles.png"), read_world),
    "captions of COCO": (source("coco", COCO), read_source("coco")),
    "regions of Visual Genome": (source("visual genome", GENOME), read_source("visual genome", "regions")),
    "false captions": (make_false_pairs, read_false_captions),
    "tar shard": (source("tar shards", "shards/00000.tar"), read_source("tar shards")),
    "table of a benchmark": (benchmark("negbench", "**/*.csv"), read_benchmark("negbench")),
    "photograph (JPEG)": (partial(make_photograph, form="jpeg"), read_photograph),
    "photograph (PNG)": (partial(make_photograph, form="png"), read_photograph),
    "photograph (array)": (make_array, read_photograph),
    "parquet table of the hub": (partial(make_table, form="parquet"), read_imported),
    "arrow table of the hub": (partial(make_table, form="arrow"), read_imported),
    "tar file of a webdataset": (partial(make_webdataset, file="test/0.tar"), read_imported),
    "class names of a webdataset": (partial(make_webdataset, file="classnames.txt"), read_imported),
    "config of Hugging Face": (make_configured, lambda path: kind_of_hugging_face(path.parent)),
}
THEIRS = [FileKind(name, *entry, free=True) for name, entry in KINDS.items()]
