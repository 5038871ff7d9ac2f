"""Converts a folder of the hub to the official files of a benchmark: recognises which benchmark it is, and writes all
files."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.files import check_option_folder
from menagerie.envs.core.reading import files_below
from menagerie.generators.benchmarks.registry import load_benchmark, names
from menagerie.generators.hub.classes import CLASSES, import_classes
from menagerie.generators.hub.forms import FORMS, HubForm, own_form, part_in
from menagerie.generators.hub.pictures import PictureFolder
from menagerie.generators.hub.put import ImportSummary, Unread, own_name, put_below, scratch_below, write_annotations
from menagerie.generators.hub.tables import HubTable, hub_columns, read_hub_table, tables_in
from menagerie.generators.hub.webdataset import import_webdataset, is_webdataset

SPLIT = "test"  # the split that is read if there are several
# Splits that are no tests, or, as the hub cuts large sets, the beginning of one: "validation", "partial-test".
OTHERS = re.compile(r"(?<![a-z])(train(ing)?|val(id(ation)?)?|dev|partial)(?![a-z])", re.IGNORECASE)
PARTIAL = "partial-"
ARCHIVES = (".zip", ".tar", ".gz", ".tgz")
OWN = "for a form of your own: `menagerie new mine.py --kind form`, then --form mine.py:FORM"


def recognise_form(table: HubTable, forms: Sequence[HubForm], folder: str) -> HubForm:
    """The fitting form with most columns, of equal ones that of the set called `folder`. Raises if none fits a table's
    columns, or forms of two benchmarks equally."""
    columns = hub_columns(table)
    fitting = [form for form in forms if columns.keys() >= set(form.columns)]
    if not fitting:
        had = ", ".join(f"{name} ({kind})" for name, kind in columns.items())
        wanted = "; ".join(f"{form.benchmark}: {', '.join(form.columns)}" for form in forms)
        raise UserError(f"{table.files[0]} has the columns {had:.600}; {OWN}; known are {wanted}")
    most = max(len(form.columns) for form in fitting)
    fitting = [form for form in fitting if len(form.columns) == most]
    named = [form for form in fitting if form.source.rpartition("/")[2].lower() == folder.lower()]
    best = {form.benchmark: form for form in reversed(named or fitting)}
    if len(best) > 1:
        raise UserError(f"{table.files[0]} may be {' or '.join(best)}; name one with --benchmark")
    return best.popitem()[1]


def select_tables(tables: Sequence[HubTable], form: HubForm, split: str) -> list[HubTable]:
    """The tables to read: those of the `split`; without it those of tests and of parts of the benchmark, and those of a
    configuration with one split, unless its name says that it is no test; `train` may be one if the set has no other.
    Raises if there are none, or several that aren't parts."""
    splits = Counter(table.configuration for table in tables)

    def is_taken(table: HubTable) -> bool:
        if split:
            return table.split == split
        no_test = OTHERS.search(table.split) and (form.trains or table.split != "train")
        alone = splits[table.configuration] == 1 and not no_test
        return alone or table.split == SPLIT or bool(part_in(form, table.split))

    taken = list(filter(is_taken, tables))
    if not taken or (len(taken) > 1 and not form.parts):
        names = ", ".join(table.name for table in taken or tables)
        says = f" (the hub cuts large sets: {PARTIAL}… has the first rows alone)" if PARTIAL in names else ""
        raise UserError(
            f"{tables[0].files[0].parent} has {names}{says}; name one with --split, or the folder of one table"
        )
    return taken


def import_folder(
    folder: Path,
    root: Path,
    benchmark: str = "",
    part: str = "",
    split: str = "",
    form: str = "",
    allow_missing: bool = False,
) -> ImportSummary:
    """Write the official files of a folder of the hub below the data root `root`.

    Options that aren't given are inferred: `benchmark` from the columns, `part` (of a benchmark with a file for each)
    from a column or the names of tables and folder, `split` as the only one or "test", `form` (file.py:NAME of your
    own) from the columns. Rows that can't be read are an error, or are counted if they may be missing. Existing files
    are kept; raises if one differs from the new file of its name. An import that fails leaves nothing behind.
    """
    check_option_folder("--data-root", root)
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}; name one that was downloaded from the Hugging Face hub")
    if is_webdataset(folder):
        if part or form:
            raise UserError(f"{folder} is a webdataset, whose form is known; leave --part and --form out")
        return import_webdataset(folder, root, split or SPLIT, benchmark)
    if benchmark:
        choose("benchmark of the hub", benchmark, sorted({form.benchmark for form in FORMS} | {CLASSES.benchmark}))
    if not (tables := tables_in(folder)):
        raise UserError(where_it_belongs(folder, root))
    if split:
        choose("--split", split, sorted({table.split for table in tables}))
    forms = [own_form(form)] if form else [one for one in (*FORMS, CLASSES) if benchmark in ("", one.benchmark)]
    chosen = recognise_form(next(its for its in tables if split in ("", its.split)), forms, own_name(folder))
    if part and chosen.part_column:
        raise UserError(f"the column {chosen.part_column!r} says which part a row is of; leave --part out")
    if part:
        choose(f"part of {chosen.benchmark}", part, chosen.parts)
    taken, unread = select_tables(tables, chosen, split), Unread(allow_missing)
    left_out = [table.name for table in tables if table not in taken]
    read = [table.name for table in taken]
    if chosen is CLASSES:
        made = import_classes(folder, root, taken[0], unread)
        return made._replace(read=read, left_out=[*left_out, *unread.told()])
    images = chosen.spec.images[0]
    with scratch_below(root) as scratch:
        pictures = PictureFolder(folder, scratch / images)
        records = convert_rows(taken, chosen, (part, own_name(folder)), pictures, unread)
        warnings = [write_annotations(scratch, chosen, records)]
        count = sum(1 for _ in pictures.out.glob("*"))
        put_below(root, scratch, images)
    warnings += ["the hub cut this set: these are its first rows alone"] * any(PARTIAL in name for name in read)
    counts = {} if chosen.images_only else {name: len(rows) for name, rows in records.items()}
    says = "; ".join(filter(None, warnings))
    benchmark = chosen.benchmark
    return ImportSummary(benchmark, images, counts, count, read, [*left_out, *unread.told()], chosen.note, says)


def where_it_belongs(folder: Path, root: Path) -> str:
    """What to do with a folder without tables: perhaps a clone with a benchmark's own files, or with archives."""
    files = {path.name: path for path in files_below(folder) if ".git" not in path.parts}
    specs = [load_benchmark(name) for name in names()]
    found = {spec.name: [file for file in (*spec.files, *spec.one_of) if Path(file).name in files] for spec in specs}
    best = max(specs, key=lambda spec: len(found[spec.name]))
    says = [f"there are no parquet or arrow files in {folder}"]
    if its := found[best.name]:
        moves = ", ".join(f"{files[Path(file).name].relative_to(folder)} to {root / file}" for file in its)
        says.append(f"it has files as {best.name} has them: copy {moves}, and its images to {root / best.images[0]}")
    if packed := [path.relative_to(folder) for path in files.values() if path.suffix in ARCHIVES]:
        says.append(f"unpack {', '.join(map(str, packed[:5]))} first")
    return "; ".join(says if len(says) > 1 else [*says, "name the folder that has them"])


def convert_rows(
    tables: Sequence[HubTable], form: HubForm, names: tuple[str, str], pictures: PictureFolder, unread: Unread
) -> dict[str, list[Any]]:
    """Write the pictures of all rows; returns the records by part of the benchmark, which a column, the option `part`,
    or the name of the table or of the folder tells; `names` are that option and that folder's."""
    records: dict[str, list[Any]] = {}
    for table in tables:
        by_part: dict[str, list[Any]] = {}
        parts = (part_in(form, name) for name in (names[0], table.split, table.configuration, names[1]))
        whole = next(filter(None, parts), "")
        for row in read_hub_table(table, (*form.columns, *form.more)):
            part = part_in(form, row.text(form.part_column)) if form.part_column else whole
            if form.parts and not part:
                way = f"its {form.part_column!r} tells none" if form.part_column else "name it with --part"
                raise UserError(f"{row.file}: {row.place} doesn't say which of {', '.join(form.parts)} it is; {way}")
            with unread.counting():
                if (record := form.record(row, partial(pictures.keep, row))) is not None:
                    by_part.setdefault(part, []).append(record)
        if again := next((part for part in by_part if part in records), None):
            raise UserError(
                f"{table.files[0]} has rows of {again or form.benchmark}, as another table; name one folder"
            )
        records |= by_part
    if not records:
        raise UserError(unread.first or f"{tables[0].files[0]} has no rows; get it again")
    return records
