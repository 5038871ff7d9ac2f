"""Which benchmark a folder of the hub is, and which of its tables are read."""

import re
from collections.abc import Sequence

from menagerie.envs.core.errors import UserError, choose
from menagerie.generators.hub.forms import FORMS, Form, part_in
from menagerie.generators.hub.tables import Table, columns_of

SPLIT = "test"  # which is read where there are several
# Splits that are for other things than a test: "train", "validation", "winoground-dev".
OTHERS = re.compile(r"(?<![a-z])(train(ing)?|val(id(ation)?)?|dev)(?![a-z])", re.IGNORECASE)


def form_of(tables: Sequence[Table], benchmark: str, split: str) -> Form:
    """The form whose columns a table has: of several the one with most of them; raises where none or two fit."""
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
    """Whether a table has all columns of a form."""
    return set(form.columns) <= set(columns)


def of_split(tables: Sequence[Table], split: str) -> list[Table]:
    """The tables of a split, or all where none is named."""
    found = [table for table in tables if split in ("", table.split)]
    if not found:
        choose("--split", split, sorted({table.split for table in tables}))
    return found


def taken_of(tables: Sequence[Table], form: Form, split: str) -> list[Table]:
    """The tables that are read: of each configuration one split, or all of them where they are parts.

    A split that is there alone is read, but for one that is called like what models are trained on.
    """
    taken = []
    named = of_split(tables, split)
    for configuration in dict.fromkeys(table.configuration for table in named):
        own = [table for table in named if table.configuration == configuration]
        tests = [table for table in own if table.split == SPLIT]
        if len(own) > 1 and not all(part_in(form, table.split) for table in own):
            if not tests:
                raise UserError(f"{own[0].files[0].parent} has {table_names(own)}; name one with --split")
            own = tests
        if not split and len(own) == 1 and OTHERS.search(own[0].split) and not part_in(form, own[0].split):
            raise UserError(
                f"{own[0].files[0]} is of the split {own[0].split!r}, and there is no test; to read it all the same, "
                f"give --split {own[0].split}"
            )
        taken += own
    if len(taken) > 1 and not form.parts:
        raise UserError(f"{taken[0].files[0]} is one of several tables, {table_names(taken)}; name the folder of one")
    if other := next((table for table in taken if not fits(form, columns_of(table))), None):
        raise UserError(f"{other.files[0]} has other columns than {form.benchmark} has; name the folder of one table")
    return taken


def table_names(tables: Sequence[Table]) -> str:
    """The names of tables."""
    return ", ".join(table.name for table in tables)
