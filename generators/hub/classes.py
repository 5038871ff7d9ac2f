"""Converts images with numbers of classes, from a table or a webdataset of CLIP_benchmark, to folders by class, which
`zero-shot` reads."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from reprlib import repr as shown

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.class_folders import IMAGENET, SAME, class_from_folder, set_name
from menagerie.generators.benchmarks.zero_shot import BENCHMARK, FOLDER
from menagerie.generators.hub.forms import HubForm
from menagerie.generators.hub.pictures import PictureFolder, suffix_of
from menagerie.generators.hub.put import ImportSummary, Unread, own_name, put_below, scratch_below
from menagerie.generators.hub.tables import HubTable, hub_classes, read_hub_table
from menagerie.generators.sources.rows import FileRow

IMAGE, LABEL = "image", "label"
IMAGENETS = 1000  # classes
CLASSES = HubForm(
    BENCHMARK.name, "ILSVRC/imagenet-1k and its like", (IMAGE, LABEL), lambda row, keep: None, trains=True
)


def import_classes(folder: Path, root: Path, table: HubTable, unread: Unread) -> ImportSummary:
    """Write the images of a table by class. ImageNet's classes keep CLIP's names; others have those that the table
    notes. Raises if it notes none."""
    name = set_name(own_name(folder))
    known = SAME.get(name, name) == IMAGENET
    names = [class_from_folder(name, text) for text in hub_classes(table, LABEL)]
    if not known and not names:
        raise UserError(f"{table.files[0]} doesn't say what its classes are called; get it as `datasets` saves it")

    def class_of(row: FileRow) -> int:
        number = row.field(LABEL, int)
        if not 0 <= number < (len(names) or IMAGENETS):
            raise row.error(f"has no class, but {number}: is its split without labels? name another with --split")
        return number

    rows = read_hub_table(table, (IMAGE, LABEL), numbered=True)
    return write_classes(folder, root, name, (rows, class_of, unread), () if known else names)


def write_classes(
    folder: Path,
    root: Path,
    name: str,
    images: tuple[Iterable[FileRow], Callable[[FileRow], int], Unread],
    names: Sequence[str],
    templates: Sequence[str] = (),
) -> ImportSummary:
    """Write images in folders by the number of their class, with class names and templates beside them, if given.
    `images` are rows, what gives a row's class, and what counts rows that can't be read. Raises if the set is there
    already, and for a class without images."""
    (rows, class_of, unread), place, counts = images, f"{FOLDER}/{name}", Counter[int]()
    if (root / place).exists():
        raise UserError(f"{root / place} is there already; take it away, or name another --data-root")
    with scratch_below(root) as scratch:
        for row in rows:
            with unread.counting():
                number = class_of(row)
                pictures = PictureFolder(folder, scratch / place / str(number))
                ending = suffix_of(row, IMAGE, pictures.read(row, IMAGE)[0])
                pictures.keep(row, IMAGE, f"{counts.total():07}{ending}")
                counts[number] += 1
        if not counts:
            raise UserError(unread.first or f"{folder} has no rows; get it again")
        called = names or range(IMAGENETS)
        if bare := [name for number, name in enumerate(called) if not counts[number]]:
            raise UserError(f"{folder} has no images of {shown(bare)}; get it again, or name another --split")
        if len(names) == 1:
            raise UserError(f"{folder} has one class, and choosing needs at least 2")
        classes = [f"{k}\t{text}" for k, text in enumerate(names)]
        for file, texts in {"classes": classes, "templates": templates}.items():
            if texts:
                (scratch / place / f"{file}.txt").write_text("\n".join((*texts, "")), encoding="utf-8")
        put_below(root, scratch)
    return ImportSummary(BENCHMARK.name, place, {name: counts.total()}, counts.total(), [], unread.told())
