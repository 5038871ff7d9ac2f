"""Converts a folder of the hub to the official files of a benchmark: recognises which benchmark it is, and writes all
files."""

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.files import check_place
from menagerie.generators.hub.forms import FORMS, Form, part_in
from menagerie.generators.hub.pictures import PictureFolder
from menagerie.generators.hub.put import Made, own_name, put_below, scratch_below
from menagerie.generators.hub.tables import Table, columns_of, rows_of, tables_in
from menagerie.generators.hub.webdataset import check_options, import_webdataset
from menagerie.generators.sources.nearby import is_webdataset

SPLIT = "test"  # the split that is read if there are several
# Splits that are no tests: "train", "validation", "winoground-dev".
OTHERS = re.compile(r"(?<![a-z])(train(ing)?|val(id(ation)?)?|dev)(?![a-z])", re.IGNORECASE)


def form_of(tables: Sequence[Table], benchmark: str, split: str) -> Form:
    """The form whose columns the split's first table has; if several fit, the one with most columns. Raises if none
    fits, or if forms of two benchmarks fit equally well."""
    table = of_split(tables, split)[0]
    columns = columns_of(table)
    forms = [form for form in FORMS if benchmark in ("", form.benchmark)]
    fitting = sorted((form for form in forms if fits(form, columns)), key=lambda form: -len(form.columns))
    if not fitting:
        wanted = "; ".join(f"{form.benchmark}: {', '.join(form.columns)}" for form in forms)
        raise UserError(f"{table.files[0]} has the columns {', '.join(columns):.500}; known are {wanted}")
    best = [form for form in fitting if len(form.columns) == len(fitting[0].columns)]
    if len({form.benchmark for form in best}) > 1:
        raise UserError(
            f"{table.files[0]} may be {' or '.join(form.benchmark for form in best)}; name one with --benchmark"
        )
    return best[0]


def fits(form: Form, columns: Sequence[str]) -> bool:
    return set(form.columns) <= set(columns)


def of_split(tables: Sequence[Table], split: str) -> list[Table]:
    """The tables of a split; all tables if `split` is empty."""
    found = [table for table in tables if split in ("", table.split)]
    if not found:
        choose("--split", split, sorted({table.split for table in tables}))
    return found


def taken_of(tables: Sequence[Table], form: Form, split: str) -> list[Table]:
    """The tables to read: one split of each configuration, or all splits if they are parts of the benchmark.

    The only split of a configuration is read whatever its name, except that training or validation must be named by
    `split`.
    """
    taken = []
    named = of_split(tables, split)
    for configuration in dict.fromkeys(table.configuration for table in named):
        here = [table for table in named if table.configuration == configuration]
        tests = [table for table in here if table.split == SPLIT]
        if len(here) > 1 and not all(part_in(form, table.split) for table in here):
            if not tests:
                raise UserError(f"{here[0].files[0].parent} has {table_names(here)}; name one with --split")
            here = tests
        if not split and len(here) == 1 and OTHERS.search(here[0].split) and not part_in(form, here[0].split):
            raise UserError(
                f"{here[0].files[0]} is of the split {here[0].split!r}, and there is no test; to read it all the same, "
                f"give --split {here[0].split}"
            )
        taken += here
    if len(taken) > 1 and not form.parts:
        raise UserError(f"{taken[0].files[0]} is one of several tables, {table_names(taken)}; name the folder of one")
    if other := next((table for table in taken if not fits(form, columns_of(table))), None):
        raise UserError(f"{other.files[0]} has other columns than {form.benchmark} has; name the folder of one table")
    return taken


def table_names(tables: Sequence[Table]) -> str:
    return ", ".join(table.name for table in tables)


def import_folder(folder: Path, root: Path, benchmark: str = "", part: str = "", split: str = "") -> Made:
    """Write the official files of a folder of the hub below the data root `root`.

    Options that aren't given are inferred: `benchmark` from the columns, `part` (of a benchmark with a file for each)
    from a column or the names of tables and folder, `split` as the only one or "test". Existing files are kept; raises
    if one differs from the new file of its name. An import that fails leaves nothing behind.
    """
    check_place("--data-root", root)
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}; name one that was downloaded from the Hugging Face hub")
    if is_webdataset(folder):
        check_options(folder, benchmark, part)
        return import_webdataset(folder, root, split or SPLIT)
    if benchmark:
        choose("benchmark of the hub", benchmark, sorted({form.benchmark for form in FORMS}))
    tables = tables_in(folder)
    form = form_of(tables, benchmark, split)
    if part and form.part_column:
        raise UserError(f"the column {form.part_column!r} says which part a row is of; leave --part out")
    if part:
        choose(f"part of {form.benchmark}", part, form.parts)
    taken, images = taken_of(tables, form, split), form.spec.images[0]
    with scratch_below(root) as scratch:
        pictures = PictureFolder(folder, scratch / images)
        records = records_of(taken, form, (part, own_name(folder)), pictures)
        warning = write_annotations(scratch, form, records)
        count = sum(1 for _ in pictures.out.glob("*"))
        put_below(root, scratch, images)
    counts = {} if form.images_only else {name: len(rows) for name, rows in records.items()}
    left_out = [table.name for table in tables if table not in taken]
    return Made(form.benchmark, images, counts, count, [table.name for table in taken], left_out, form.note, warning)


def records_of(
    tables: Sequence[Table], form: Form, names: tuple[str, str], pictures: PictureFolder
) -> dict[str, list[Any]]:
    """Write the pictures of all rows; returns the records by part of the benchmark, which a column, the option `part`,
    or the name of the table or of the folder tells; `names` are that option and that folder's."""
    records: dict[str, list[Any]] = {}
    for table in tables:
        by_part: dict[str, list[Any]] = {}
        told = (part_in(form, name) for name in (names[0], table.split, table.configuration, names[1]))
        whole = next(filter(None, told), "")
        for row in rows_of(table, (*form.columns, *form.more)):
            part = part_in(form, row.text(form.part_column)) if form.part_column else whole
            if form.parts and not part:
                way = f"its {form.part_column!r} tells none" if form.part_column else "name it with --part"
                raise UserError(f"{row.file}: {row.place} doesn't say which of {', '.join(form.parts)} it is; {way}")
            by_part.setdefault(part, []).append(form.record(row, partial(pictures.keep, row)))
        if again := next((part for part in by_part if part in records), None):
            raise UserError(
                f"{table.files[0]} has rows of {again or form.benchmark}, as another table; name one folder"
            )
        records |= by_part
    if not records:
        raise UserError(f"{tables[0].files[0]} has no rows; get it again")
    return records


def write_annotations(scratch: Path, form: Form, records: Mapping[str, Sequence[Any]]) -> str:
    """Write the annotation files. Returns a warning if they don't name photographs by their numbers in COCO or Visual
    Genome; else an empty text. Training needs these numbers to leave out the benchmark's photographs, and is refused
    without them."""
    warning = ""
    for part, rows in records.items() if form.files else ():
        path = scratch / form.files[part]
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".jsonl":
            text = "".join(json.dumps(record) + "\n" for record in rows)
        else:
            text = json.dumps({str(k): record for k, record in enumerate(rows)} if form.keyed else rows)
        path.write_text(text, encoding="utf-8")
        try:
            list(form.spec.photographs(path) if form.spec.photographs else ())
        except UserError:
            warning = (
                "its images aren't called by their collection's numbers, so studies/real_data.py refuses to train with "
                "this data root; for that, put the authors' files and images in place of these: " + form.spec.source
            )
    return warning
