"""Audit of an exported split: its files are made again from the recipe in its data sheet and compared one by one."""

import io
import json
import re
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Int32, Int64, UInt8
from PIL import Image

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.files import scratch_folder
from menagerie.envs.core.reading import open_file, parse_json, read_bytes, read_text
from menagerie.envs.core.validation import SIDE
from menagerie.envs.render import image_identity
from menagerie.envs.render.occlusion import area_table
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.render.row import RowRenderer, renderer_of
from menagerie.envs.scene import Scene
from menagerie.envs.world import World
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.findings import Finding, first, skipped
from menagerie.generators.audit.pixels import Progress
from menagerie.generators.audit.regeneration import CLAIM, Incomparable, made_again, trusted_world
from menagerie.generators.audit.rendered import SAMPLE
from menagerie.generators.export import formats
from menagerie.generators.export.formats import FORMATS, INSTANCES, ExportPart, File
from menagerie.generators.export.write import MARK, SHEET, mark
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.generators.storage.pictures import SplitPictures
from menagerie.generators.storage.split_file import Records, Split, recipe_version
from menagerie.generators.vocabulary import Vocabulary, has_crowds

REMEDY = "export the split again with 'menagerie export'"
PICTURES = "pictures are the same when rendered again"


@dataclass(frozen=True)
class Export:
    """A folder that an export wrote: its format and mark; the split, world and subsets that its data sheet names."""

    folder: Path
    form: str
    mark: str
    split: Split
    world: World
    subsets: tuple[str, ...]


class RenderedReader(SplitPictures):
    """A reader that renders a row each time it is read, in place of reading it from an image store."""

    def __init__(self, renderer: Renderer | RowRenderer, records: Sequence[Records], split: Split) -> None:
        self.renderer, self.split = renderer, split
        self.scene_of: dict[int, Scene] = {}
        for r in records:
            self.scene_of |= dict(zip(r.rows.tolist(), r.scenes, strict=True))

    def read(self, row: int, name: str = "images") -> np.ndarray:
        """Render the scene of a row; return its image, or its mask if `name` is "masks"."""
        (image,), (mask,) = self.renderer.render([self.scene_of[row]])
        return image if name == "images" else mask

    def areas(self, rows: Int64[np.ndarray, " n"]) -> Int32[np.ndarray, "n things"]:
        """The number of pixels that each thing covers without the others; as in stores, known only if the rows show
        crowds."""
        scenes = [self.scene_of[row] for row in rows.tolist()]
        crowds = has_crowds(self.split.vocabulary.encode(scenes))
        return area_table(self.renderer.areas(scenes) if crowds else [() for _ in scenes])


def audit_export(folder: Path, pixels: str, report: Progress, world_file: Path | None = None) -> list[Finding]:
    """All findings on an export; `pixels` is "sample" or "all". Raises `UserError` if the export can't be read."""
    try:
        export = read_export(folder, world_file)
    except Incomparable as reason:
        return [skipped(CLAIM, str(reason))]
    try:
        made = made_again(export.split, world_file)
    except Incomparable as reason:
        return [skipped(CLAIM, str(reason))]
    except UserError as error:
        return [Finding(CLAIM, False, f"its recipe can't be made: {error}; {REMEDY}")]
    chosen = {choose(f"subset in {folder / SHEET}", name, made): made[name] for name in export.subsets}
    same = mark(replace(export.split, subsets=chosen), export.form) == export.mark
    findings = [Finding(CLAIM, same, "" if same else f"{folder / MARK} is of another split; {REMEDY}")]
    with scratch_folder() as cache:
        return [*findings, *compared(export, chosen, pixels == "all", cache, report)]


def read_export(folder: Path, world_file: Path | None) -> Export:
    """Read the mark and the data sheet of an export; raises `UserError` if the folder isn't a whole export, and
    `Incomparable` as `trusted_world` does."""
    try:
        text, sheet = read_text(folder / MARK), read_text(folder / SHEET)
        recipe_text = re.search(r"```json\n(.*?)\n```", sheet, re.DOTALL)[1]
        marked, recipe = (parse_json(part, name) for part, name in ((text, MARK), (recipe_text, SHEET)))
        form = choose(f"format in {folder / MARK}", str(marked["format"]), FORMATS)
        choose(f"kind of split in {folder / SHEET}", str(recipe["kind"]), KINDS)
        world = load_world(trusted_world(str(recipe["world"]), world_file))
        version = recipe_version(KINDS[recipe["kind"]])  # exports don't record theirs
        split = Split(folder / SHEET, recipe, str(marked["store"]), Vocabulary.of(world), [], {}, True, version)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise UserError(f"{folder} is not a whole export of a split ({error}); {REMEDY}") from error
    return Export(folder, form, text, split, world, tuple(re.findall(r"^\| `([^`]+)` \| \d", sheet, re.MULTILINE)))


def compared(
    export: Export, made: dict[str, Records], everything: bool, cache: Path, report: Progress
) -> Iterator[Finding]:
    """Compare the files of an export with those that its recipe gives."""
    world, side = export.world, side_of_pictures(export)
    reader = RenderedReader(renderer_of(world, side, cache), list(made.values()), export.split)
    parts = {name: ExportPart(name, records, reader) for name, records in made.items()}
    here = image_identity(world, side)
    drawn = export.form == INSTANCES and here != export.split.identity  # their JSON files are made of masks
    files = [file for file in FORMATS[export.form](list(parts.values())) if not (drawn and file.path.endswith("json"))]
    every = [shown for file in files for shown in records_shown(file)]
    some = every if everything else every[:: max(1, len(every) // SAMPLE)]
    rendered = set(some if here == export.split.identity else ())
    texts, pictures = [], []
    for n, file in enumerate(files):
        wrong = partial(differences, export.folder, file, parts.get(file.subset), rendered)
        for kind, what in wrong():
            (pictures if kind == "picture" else texts).append(f"{file.path}: {what}")
        report("read", n + 1, len(files))
    yield outcome("files and texts are those of the recipe", texts, f"{len(files)} files")
    if here != export.split.identity:
        yield skipped(PICTURES, f"they are of another renderer or world ({export.split.identity}, here {here})")
    else:
        yield outcome(PICTURES, pictures, f"{len(rendered)} of {len(every)} pictures")


def records_shown(file: File) -> list[tuple[str, int]]:
    """The subset and the number of each record whose picture an exported file holds."""
    path = Path(file.path)
    if path.suffix == ".png":
        return [(file.subset, int(path.stem))]
    if path.suffix != ".tar":
        return []
    start = int(path.stem.rsplit("-", 1)[1]) * formats.SHARD_SAMPLES
    return [(file.subset, start + i) for i in range(file.samples)]


def outcome(claim: str, wrong: Sequence[str], detail: str) -> Finding:
    holds, named = first(iter(wrong))
    return Finding(claim, holds, detail if holds else f"{len(wrong)} wrong, {named}; {REMEDY}")


def side_of_pictures(export: Export) -> int:
    """Side of an export's pictures in pixels, read from the first one; raises `UserError` if that can't be read."""
    pattern = "*.tar" if export.form == "webdataset" else "images/**/*.png"
    path = min(export.folder.glob(pattern), default=export.folder)
    try:
        if export.form != "webdataset":
            return pixels_of(read_bytes(path)).shape[0]
        with open_file(path) as file, tarfile.open(fileobj=file) as tar:
            return pixels_of(tar.extractfile(tar.next()).read()).shape[0]
    except (OSError, ValueError, AttributeError, SyntaxError, tarfile.TarError) as error:
        raise UserError(f"{export.folder}: {path.name} has no readable picture ({error}); {REMEDY}") from error


def pixels_of(content: bytes) -> UInt8[np.ndarray, "h w 3"]:
    """The pixels of a picture file's content; raises `ValueError` if it is larger than any rendered picture."""
    with Image.open(io.BytesIO(content), formats=("PNG",)) as picture:
        if max(picture.size) > SIDE.high:
            raise ValueError(f"a picture of {picture.width} x {picture.height} pixels")
        return np.asarray(picture.convert("RGB"))


def differences(
    folder: Path, file: File, part: ExportPart | None, rendered: set[tuple[str, int]]
) -> Iterator[tuple[str, str]]:
    """Compare an exported file with its expected content; yields ("text" or "picture", difference).

    Pictures are compared only for the records in `rendered`.
    """
    path = folder / file.path
    try:
        content = read_bytes(path)
        if path.suffix == ".json":
            if content != written(file.write):
                yield "text", "other texts than the recipe gives"
        elif path.suffix == ".png":
            index = int(path.stem)
            if (file.subset, index) in rendered and not same_picture(content, part, index):
                yield "picture", part.records.scenes[index].key
        else:
            yield from tar_differences(content, file, part, rendered)
    except (OSError, ValueError, SyntaxError, tarfile.TarError) as error:  # SyntaxError: Pillow, for torn PNG files
        yield "text", f"can't be read ({error})"


def written(write: Callable[[Path], object]) -> bytes:
    with scratch_folder() as folder:
        write(folder / "file")
        return (folder / "file").read_bytes()


def same_picture(content: bytes, part: ExportPart, index: int) -> bool:
    """Whether a picture file shows the rendering of the record's scene."""
    return np.array_equal(pixels_of(content), part.reader.read(int(part.records.rows[index])))


def tar_differences(
    content: bytes, file: File, part: ExportPart, rendered: set[tuple[str, int]]
) -> Iterator[tuple[str, str]]:
    """Compare a tar file of samples with its expected content; yields pairs as `differences` does."""
    indices = [i for _, i in records_shown(file)]
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        members = {member.name: tar.extractfile(member).read() for member in tar if member.isfile()}
    if members.keys() != {f"{i:09d}.{suffix}" for i in indices for suffix in ("png", "txt", "json")}:
        yield "text", "other samples than the recipe gives"
        return
    for i in indices:
        png, text, facts = (members[f"{i:09d}.{suffix}"] for suffix in ("png", "txt", "json"))
        expected = part.records.captions[i].encode(), json.dumps(part.facts(i)).encode()
        if (text, facts) != expected:
            yield "text", f"sample {i}, {part.records.scenes[i].key}, has other texts than the recipe gives"
        if (part.name, i) in rendered and not same_picture(png, part, i):
            yield "picture", f"sample {i}, {part.records.scenes[i].key}"
