"""Converts a folder of the hub to the official files of a benchmark: recognises which benchmark it is, and writes all
files."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.files import check_option_folder
from menagerie.generators.hub.forms import FORMS, HubForm, part_in
from menagerie.generators.hub.pictures import PictureFolder
from menagerie.generators.hub.put import ImportSummary, own_name, put_below, scratch_below
from menagerie.generators.hub.tables import HubTable, hub_columns, read_hub_table, tables_in
from menagerie.generators.hub.webdataset import import_webdataset, is_webdataset

SPLIT = "test"  # the split that is read if there are several
# Splits that are no tests: "train", "validation", "winoground-dev".
OTHERS = re.compile(r"(?<![a-z])(train(ing)?|val(id(ation)?)?|dev)(?![a-z])", re.IGNORECASE)


def recognise_form(table: HubTable, benchmark: str) -> HubForm:
    """The fitting form with most columns. Raises if none fits a table's columns, or forms of two benchmarks equally."""
    columns = hub_columns(table)
    forms = [form for form in FORMS if benchmark in ("", form.benchmark)]
    fitting = [form for form in forms if set(form.columns) <= set(columns)]
    if not fitting:
        wanted = "; ".join(f"{form.benchmark}: {', '.join(form.columns)}" for form in forms)
        raise UserError(f"{table.files[0]} has the columns {', '.join(columns):.500}; known are {wanted}")
    most = max(len(form.columns) for form in fitting)
    best = {form.benchmark: form for form in reversed(fitting) if len(form.columns) == most}
    if len(best) > 1:
        raise UserError(f"{table.files[0]} may be {' or '.join(best)}; name one with --benchmark")
    return best.popitem()[1]


def select_tables(tables: Sequence[HubTable], form: HubForm, split: str) -> list[HubTable]:
    """The tables to read: those of the `split`; without it those of tests and of parts of the benchmark, and those of a
    configuration with one split, unless that is called training or validation. Raises if there are none, or several
    that aren't parts."""
    splits = Counter(table.configuration for table in tables)

    def is_taken(table: HubTable) -> bool:
        if split:
            return table.split == split
        alone = splits[table.configuration] == 1 and not OTHERS.search(table.split)
        return alone or table.split == SPLIT or bool(part_in(form, table.split))

    taken = list(filter(is_taken, tables))
    if not taken or (len(taken) > 1 and not form.parts):
        names = ", ".join(table.name for table in taken or tables)
        raise UserError(f"{tables[0].files[0].parent} has {names}; name one with --split, or the folder of one table")
    return taken


def import_folder(folder: Path, root: Path, benchmark: str = "", part: str = "", split: str = "") -> ImportSummary:
    """Write the official files of a folder of the hub below the data root `root`.

    Options that aren't given are inferred: `benchmark` from the columns, `part` (of a benchmark with a file for each)
    from a column or the names of tables and folder, `split` as the only one or "test". Existing files are kept; raises
    if one differs from the new file of its name. An import that fails leaves nothing behind.
    """
    check_option_folder("--data-root", root)
    if not folder.is_dir():
        raise UserError(f"there is no folder {folder}; name one that was downloaded from the Hugging Face hub")
    if is_webdataset(folder):
        if part or benchmark not in ("", "zero-shot"):
            raise UserError(f"{folder} is a webdataset of classes, for zero-shot; leave --benchmark and --part out")
        return import_webdataset(folder, root, split or SPLIT)
    if benchmark:
        choose("benchmark of the hub", benchmark, sorted({form.benchmark for form in FORMS}))
    tables = tables_in(folder)
    if split:
        choose("--split", split, sorted({table.split for table in tables}))
    form = recognise_form(next(table for table in tables if split in ("", table.split)), benchmark)
    if part and form.part_column:
        raise UserError(f"the column {form.part_column!r} says which part a row is of; leave --part out")
    if part:
        choose(f"part of {form.benchmark}", part, form.parts)
    taken, images = select_tables(tables, form, split), form.spec.images[0]
    with scratch_below(root) as scratch:
        pictures = PictureFolder(folder, scratch / images)
        records = convert_rows(taken, form, (part, own_name(folder)), pictures)
        warning = write_annotations(scratch, form, records)
        count = sum(1 for _ in pictures.out.glob("*"))
        put_below(root, scratch, images)
    counts = {} if form.images_only else {name: len(rows) for name, rows in records.items()}
    left_out = [table.name for table in tables if table not in taken]
    return ImportSummary(
        form.benchmark, images, counts, count, [table.name for table in taken], left_out, form.note, warning
    )


def convert_rows(
    tables: Sequence[HubTable], form: HubForm, names: tuple[str, str], pictures: PictureFolder
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
            by_part.setdefault(part, []).append(form.record(row, partial(pictures.keep, row)))
        if again := next((part for part in by_part if part in records), None):
            raise UserError(
                f"{table.files[0]} has rows of {again or form.benchmark}, as another table; name one folder"
            )
        records |= by_part
    if not records:
        raise UserError(f"{tables[0].files[0]} has no rows; get it again")
    return records


def write_annotations(scratch: Path, form: HubForm, records: Mapping[str, Sequence[Any]]) -> str:
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
