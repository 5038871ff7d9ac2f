"""Exports splits in the formats of other tools.

`export` writes the files of a format (`menagerie.generators.export.formats`), each whole or not at all, and
finally a data sheet that describes the folder, and the digests of all files as `sha256sum` writes them. If interrupted
at any moment, it continues from the last whole file.
"""

import contextlib
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.files import clear_leftovers, is_temporary, whole_file, write_text
from menagerie.envs.core.locks import FileLock
from menagerie.envs.core.options import docstring
from menagerie.envs.core.provenance import commit
from menagerie.envs.core.reading import read_bytes
from menagerie.envs.core.records import sha256
from menagerie.envs.world import WORLDS
from menagerie.generators.export.formats import FORMATS, ExportPart, File
from menagerie.generators.storage.folder import Progress
from menagerie.generators.storage.pack import check_intact
from menagerie.generators.storage.pictures import SplitPictures
from menagerie.generators.storage.split_file import Split, read_split

TEMPLATE = """\
# {name} as {form}

Rendered scenes of textured animals, each with a caption; where there is one, a hard negative (the same words, bound
differently) and the scene graphs of both. Made by Menagerie, a suite for the binding problem in vision-language models
(binding-menagerie {version}{commit}).
{sizes}
## Files

{files}

`sha256sum -c SHA256SUMS` tells whether all files are as they were written.

## Subsets

| subset | samples here | records of the split |
|---|---|---|
{subsets}

## Recipe

The split's, with the identity of its images `{identity}`:

```json
{recipe}
```

Made with

```
{command}
```

## Licence

The images and texts are under the Apache License 2.0 (https://www.apache.org/licenses/LICENSE-2.0).{own}
"""
OWN = "\nThis world is defined by its user: the meshes and pictures in it may have licences of their own."


def data_sheet(
    split: Split, form: str, out: Path, subsets: Sequence[str], counts: Mapping[str, tuple[int, int]]
) -> str:
    """The data sheet as Markdown; its command names no parent folders, because the export may be shared."""
    call = ["menagerie", "export", split.path.name, "--format", form, "--out", out.absolute().name]
    return TEMPLATE.format(
        name=split.path.name,
        form=form,
        sizes=f"\nThe animals come in sizes: {', '.join(sizes)}.\n" if (sizes := split.vocabulary.sizes) else "",
        version=version("binding-menagerie"),
        commit=f", commit {commit()}" if commit() else "",
        files=docstring(FORMATS[form]),
        subsets="\n".join(f"| `{name}` | {samples} | {records} |" for name, (samples, records) in counts.items()),
        identity=split.identity,
        recipe=json.dumps(split.recipe, indent=1),
        command=shlex.join([*call, *(["--subsets", *subsets] if subsets else [])]),
        own="" if split.recipe["world"] in WORLDS else OWN,
    )


SHEET = "README.md"
SUMS = "SHA256SUMS"
MARK = ".export.json"  # identifies the split, its subsets and the format of the export
LOCK = ".export.lock"  # a file of its own, because a lock on a file that is replaced keeps nobody out


def export(
    path: Path, form: str, out: Path, subsets: Sequence[str] = (), progress: Progress | None = None
) -> dict[str, tuple[int, int]]:
    """Write a split's `subsets` (default: all) into the folder `out` in the format `form`.

    Returns for each subset the number of samples in the export and of records in the split.
    `progress` is called with "export", the samples done and their total.
    """
    lay_out = FORMATS[choose("format", form, FORMATS)]
    split = chosen(read_split(path), subsets)
    for name in split.subsets:
        check_intact(split, name)
    pixels = SplitPictures(split)
    files = list(lay_out([ExportPart(name, records, pixels) for name, records in split.subsets.items()]))
    exported = {name: sum(file.samples for file in files if file.subset == name) for name in split.subsets}
    if not any(exported.values()):
        raise UserError(f"nothing in {', '.join(exported)} of {path} can be exported as {form}; choose other --subsets")
    counts = {name: (samples, len(split.subsets[name])) for name, samples in exported.items()}
    with claimed(out, mark(split, form), {file.path for file in files}):
        write_missing(files, out, progress)
        if not (out / SHEET).exists():
            write_text(out / SHEET, data_sheet(split, form, out, subsets, counts))
        if not (out / SUMS).exists():
            paths = sorted([*(file.path for file in files), MARK, SHEET])
            write_text(out / SUMS, "".join(f"{sha256(out / path).hex()}  {path}\n" for path in paths))
    return counts


def chosen(split: Split, subsets: Sequence[str]) -> Split:
    """The split with only the named subsets, or all if none is named; raises for a name that is unknown or that can't
    name a file."""
    names = {choose(f"subset of {split.path}", name, split.subsets) for name in subsets or split.subsets}
    for name in names:  # they become file names, and the split may come from a stranger
        if not re.fullmatch(r"\w+( \d+)?", name, re.ASCII):
            raise UserError(f"{split.path} has a subset {name!r}, which can't name a file; do not trust this file")
    return replace(split, subsets={name: records for name, records in split.subsets.items() if name in names})


def marked(split: Split, form: str) -> dict[str, str | list[str]]:
    """What identifies an export's format and content."""
    return {"format": form, "split": split.digest, "subsets": sorted(split.subsets)}


def mark(split: Split, form: str) -> str:
    """The same as JSON."""
    return json.dumps(marked(split, form), indent=1)


def write_missing(files: Sequence[File], out: Path, progress: Progress | None) -> None:
    """Write the files that don't exist yet."""
    done, total = 0, sum(file.samples for file in files)
    for file in files:
        if not (out / file.path).exists():
            with whole_file(out / file.path) as temporary:
                file.write(temporary)
        done += file.samples
        if progress:
            progress("export", done, total)


@contextlib.contextmanager
def claimed(out: Path, mark: str, planned: set[str]) -> Iterator[None]:
    """Lock the folder `out` for this export, new or continued; raises if it has other content or is locked already."""
    check_folder(out, mark, planned)  # so that a folder with other content gets no lock
    out.mkdir(exist_ok=True)
    lock = FileLock(out / LOCK)
    if not lock.acquire(wait=False):
        raise UserError(f"another export is working in {out}; wait for it or choose another --out")
    try:
        check_folder(out, mark, planned)  # another export may have begun there since
        if not (out / MARK).exists():
            write_text(out / MARK, mark)
        clear_leftovers(out, below=True, alone=True)
        yield
    finally:
        lock.release()


def check_folder(out: Path, mark: str, planned: set[str]) -> None:
    """Raise unless `out` is empty or new, or holds only a part of this same export."""
    if not out.absolute().parent.is_dir():
        raise UserError(f"there is no folder {out.parent} to make {out.name} in; make it, or choose another --out")
    if out.exists() and not out.is_dir():
        raise UserError(f"the output folder {out} is a file; choose another --out")
    present = {path for path in present_in(out) if not is_temporary(Path(path))} - {LOCK}
    if present and (MARK not in present or read_bytes(out / MARK) != mark.encode()):
        raise UserError(f"{out} has files but is not this export of this split; choose another --out")
    if foreign := sorted(present - planned - {MARK, SHEET, SUMS}):
        raise UserError(
            f"{out} holds files that this export has no place for, first {foreign[0]}; choose another --out"
        )


def present_in(out: Path) -> set[str]:
    """The paths of all files and links below a folder."""
    paths = (path for path in out.rglob("*") if path.is_symlink() or not path.is_dir())
    return {path.relative_to(out).as_posix() for path in paths}
