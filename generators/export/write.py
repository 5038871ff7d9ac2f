"""Exports splits in the formats of other tools.

`export_split` writes the files of a format (`menagerie.generators.export.formats`), a data sheet and Croissant metadata
that describe the folder, and the digests of all files as `sha256sum` writes them. The folder appears whole or not at
all."""

import json
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.files import scratch_folder, write_text, writing
from menagerie.envs.core.options import docstring
from menagerie.envs.core.provenance import commit
from menagerie.envs.core.reading import read_bytes
from menagerie.envs.core.records import sha256
from menagerie.envs.world import WORLDS
from menagerie.generators.export.croissant import croissant
from menagerie.generators.export.formats import FORMATS, ExportPart, File
from menagerie.generators.frozen.digests import frozen_in
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

`sha256sum -c SHA256SUMS` tells whether all files are as they were written. `croissant.json` describes them to programs
(MLCommons Croissant).

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
METADATA = "croissant.json"
SUMS = "SHA256SUMS"
MARK = ".export.json"  # identifies the split, its subsets and the format of the export


def export_split(
    path: Path, form: str, out: Path, subsets: Sequence[str] = (), progress: Progress | None = None
) -> dict[str, tuple[int, int]]:
    """Write a split's `subsets` (default: all) into the folder `out` in the format `form`. The same export, if it is
    there already, stays.

    Returns for each subset the number of samples in the export and of records in the split.
    `progress` is called with "export", the samples done and their total.
    """
    lay_out = FORMATS[choose("format", form, FORMATS)]
    split = select_subsets(read_split(path), subsets)
    for name in split.subsets:
        check_intact(split, name)
    pixels = SplitPictures(split)
    files = list(lay_out([ExportPart(name, records, pixels) for name, records in split.subsets.items()]))
    exported = {name: sum(file.samples for file in files if file.subset == name) for name in split.subsets}
    if not any(exported.values()):
        raise UserError(f"nothing in {', '.join(exported)} of {path} can be exported as {form}; choose other --subsets")
    counts = {name: (samples, len(split.subsets[name])) for name, samples in exported.items()}
    texts = {
        MARK: json.dumps({"format": form, "split": split.digest, "subsets": sorted(split.subsets)}, indent=1),
        SHEET: data_sheet(split, form, out, subsets, counts),
    }
    if not is_there(out, texts[MARK], {*(file.path for file in files), *texts, METADATA, SUMS}):
        place, benchmark = out.resolve(), frozen_in(split)
        with scratch_folder(place.parent) as scratch, writing(out, made := scratch / "export"):
            write_export(made, files, texts, lambda sums: croissant(split, form, files, sums, benchmark), progress)
            os.sync()  # or a power cut might leave a folder of empty files
            made.rename(place)
    return counts


def select_subsets(split: Split, subsets: Sequence[str]) -> Split:
    """The split with only the named subsets, or all if none is named; raises for a name that is unknown or that can't
    name a file."""
    names = {choose(f"subset of {split.path}", name, split.subsets) for name in subsets or split.subsets}
    for name in names:  # they become file names, and the split may come from a stranger
        if not re.fullmatch(r"\w+( \d+)?", name, re.ASCII):
            raise UserError(f"{split.path} has a subset {name!r}, which can't name a file; do not trust this file")
    return replace(split, subsets={name: records for name, records in split.subsets.items() if name in names})


def write_export(
    out: Path,
    files: Sequence[File],
    texts: Mapping[str, str],
    describe: Callable[[Mapping[str, str]], str],
    progress: Progress | None,
) -> None:
    """Write the files of a format, the `texts` of further files by their paths, the metadata that `describe` makes of
    the digests of the former, and the digests of all."""
    done, total = 0, sum(file.samples for file in files)
    for file in files:
        (out / file.path).parent.mkdir(parents=True, exist_ok=True)
        file.write(out / file.path)
        done += file.samples
        if progress:
            progress("export", done, total)
    sums = {file.path: sha256(out / file.path).hex() for file in files}
    for path, text in {**texts, METADATA: describe(sums)}.items():
        write_text(out / path, text)
        sums[path] = sha256(out / path).hex()
    write_text(out / SUMS, "".join(f"{sums[path]}  {path}\n" for path in sorted(sums)))


def is_there(out: Path, mark: str, planned: set[str]) -> bool:
    """Whether this same export is in `out`; raises if anything else is, or if there is no folder to make it in."""
    if not out.absolute().parent.is_dir():
        raise UserError(f"there is no folder {out.parent} to make {out.name} in; make it, or choose another --out")
    if out.exists() and not out.is_dir():
        raise UserError(f"the output folder {out} is a file; choose another --out")
    paths = (path for path in out.rglob("*") if path.is_symlink() or not path.is_dir())
    present = {path.relative_to(out).as_posix() for path in paths}
    if any(out.glob("*")) and (MARK not in present or read_bytes(out / MARK) != mark.encode()):
        raise UserError(f"{out} has files but is not this export of this split; choose another --out")
    if present and (odd := sorted(present ^ planned)):
        raise UserError(f"{out} isn't as it was written, first at {odd[0]}; take it away, or choose another --out")
    return bool(present)
