"""Linear probes and nearest neighbours on image embeddings, for the sets of zero-shot classification.

Classifiers are fitted to the embeddings of a set's training images and scored on its test images, those of `zero-shot`:
a linear probe on all training images and on 1, 2, 4, 8 and 16 of each class, and k nearest neighbours. Texts play no
part. What is chosen (the strength of regularisation, the number of neighbours) is chosen on validation images alone.

Splits are those of CLIP_benchmark and VTAB as far as files say which: training images lie at
`zero_shot_train/SET/CLASS/*.jpg`, those for validation at `zero_shot_val/SET/CLASS/*.jpg`, and torchvision's sets have
lists. Where there is no validation, a tenth of the training images is drawn for it, as CLIP_benchmark draws a share and
VTAB takes the last tenth (fifth, of Pets). The draw is ours, with a seed; so is that of few shots.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.generators.benchmarks.benchmark import SEED
from menagerie.generators.benchmarks.class_folders import SLOT, folders_in
from menagerie.generators.benchmarks.matrix import Pool
from menagerie.generators.benchmarks.photographs import Photograph, Record
from menagerie.generators.benchmarks.registry import benchmark_spec
from menagerie.generators.benchmarks.zero_shot import FOLDER, ImageSet, ZeroShot, set_in
from menagerie.generators.benchmarks.zero_shot_torchvision import FOLDER as TORCHVISION
from menagerie.generators.benchmarks.zero_shot_torchvision import SETS, image_set, sets_in
from menagerie.generators.captions.templates import Caption
from menagerie.generators.sources.place import Place

TRAIN, VAL, TEST = "train", "val", "test"
FOLDERS = {TRAIN: "zero_shot_train", VAL: "zero_shot_val", TEST: FOLDER}
NEIGHBOURS = "k-NN"
# Training images of each class, by classifier; 0: all.
SHOTS = {"linear": 0, **{f"linear, {shots}-shot": shots for shots in (1, 2, 4, 8, 16)}, NEIGHBOURS: 0}
HELD_OUT = 10  # a training image of so many is for validation, where a set has no such part
# The number of each image, and of its class.
Labels = Sequence[tuple[int, int]]


class Probe(ZeroShot):
    """A pool for each set and classifier: test images, and classes in place of texts."""

    def __init__(self, name: str, folder: str, sets: Sequence[ImageSet], place: Place) -> None:
        """Names of records begin with their part: train, val or test. Raises for missing images."""
        super().__init__(name, folder, sets, place)
        if self.dropped:
            raise UserError(f"{name}: {self.lacking}; a probe needs all of them")
        self.parts = {pool.name: split_parts(pool) for pool in self.pools}
        self.kinds = {f"{pool.name} {kind}": (pool.name, kind) for pool in self.pools for kind in self.kinds_of(pool)}
        self.pools = [tested(pool, kind) for pool in self.pools for kind in self.kinds_of(pool)]

    @property
    def texts(self) -> Sequence[Caption]:
        """None: nothing is read."""
        return ()

    def reword(self, texts: Mapping[Caption, Caption]) -> "Probe":
        """Itself."""
        return self

    def kinds_of(self, pool: Pool) -> list[str]:
        """The classifiers of a set: few shots need so many training images of each class."""
        counts = Counter(label for _, label in self.parts[pool.name][TRAIN])
        fewest = min(counts[k] for k in range(len(pool.texts)))
        return [kind for kind, shots in SHOTS.items() if shots <= fewest]


def split_parts(pool: Pool) -> dict[str, Labels]:
    """The images of each part of a set with their classes."""
    parts: dict[str, list[tuple[int, int]]] = {part: [] for part in FOLDERS}
    for row, label in pool.pairs:
        parts[record_part(pool.records[row])].append((pool.images[row], label))
    if not parts[VAL]:
        order = generator(SEED, "validation of a probe", pool.name).permutation(len(parts[TRAIN]))
        count, every = max(1, len(order) // HELD_OUT), parts[TRAIN]
        parts[VAL], parts[TRAIN] = ([every[k] for k in np.sort(some)] for some in (order[:count], order[count:]))
    return parts


def record_part(record: Record) -> str:
    return record.name.partition(" ")[0]


def tested(pool: Pool, kind: str) -> Pool:
    """The pool of a classifier: the test images of a set."""
    rows = [row for row, record in enumerate(pool.records) if record_part(record) == TEST]
    labels = dict(pool.pairs)
    pairs = tuple((new, labels[row]) for new, row in enumerate(rows))
    records, images = (tuple(every[row] for row in rows) for every in (pool.records, pool.images))
    return Pool(f"{pool.name} {kind}", records, images, pool.texts, pairs)


def joined(name: str, parts: dict[str, ImageSet], folders: dict[str, str]) -> ImageSet:
    """The parts of a set as one, each record named with its part; raises if their classes differ."""
    for part, one in parts.items():
        if one.classes != parts[TEST].classes:
            raise UserError(f"{name}: the classes of its {part} images aren't those of its test images; copy it again")
    records = (
        record._replace(
            name=f"{part} {record.name}",
            images=tuple(Photograph(f"{folders.get(part, '')}{image.file}") for image in record.images),
        )
        for part, one in parts.items()
        for record in one.records
    )
    return ImageSet(name, tuple(records), parts[TEST].classes, (SLOT,))


def build(place: Place) -> Probe:
    sets = []
    for folder in folders_in(place.only(FOLDERS[TRAIN])):
        there = {part: place.only(root) / folder.name for part, root in FOLDERS.items()}
        parts = {part: set_in(path.name, path) for part, path in there.items() if part != VAL or path.is_dir()}
        sets.append(joined(folder.name, parts, {part: f"{root}/" for part, root in FOLDERS.items()}))
    if not sets:
        raise UserError(f"there are no folders in {place.only(FOLDERS[TRAIN])}; put sets of training images there")
    return Probe("probe", ".", sets, place)


def build_torchvision(place: Place) -> Probe:
    root, sets = place.only(TORCHVISION), []
    for name in sets_in(root):
        parts = [TRAIN, VAL, TEST] if name in LISTED else [TRAIN, TEST]
        sets.append(joined(name, {part: image_set(name, SETS[name][1](root, part)) for part in parts}, {}))
    return Probe("probe-torchvision", TORCHVISION, sets, place)


LISTED = ("dtd", "fgvc_aircraft")  # torchvision's sets with a list of validation images

BENCHMARK = benchmark_spec("probe", build, (FOLDERS[TRAIN], FOLDER))
BENCHMARK_PROBE_TORCHVISION = benchmark_spec("probe-torchvision", build_torchvision, (TORCHVISION,))
