"""The tables of a study of photographs as texts, and what they say in sentences."""

import pandas as pd

from menagerie.envs.core.figures import short
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.photographs import questions
from menagerie.studies.photographs.lines import Study
from menagerie.studies.photographs.measures import KNOWN, RECOGNITION, SWAPS
from menagerie.studies.photographs.trainings import OWN, SYNTHETIC
from menagerie.studies.photographs.worlds import HELD_OUT, PHOTOGRAPHS

# Tests in tables.
TESTED = {HELD_OUT: "held-out photographs", PHOTOGRAPHS: "all photographs", SYNTHETIC: "rendered animals"}


def gap_table(rows: list[questions.Gap]) -> pd.DataFrame:
    """(a) Rendered and photographed animals, and their difference."""
    columns = ["model", "test", "measure", "rendered (%)", "photographed (%)", "photographed − rendered"]
    return pd.DataFrame([[short(row.model), *row[1:3], *map(str, row[3:])] for row in rows], columns=columns)


def step_table(rows: list[questions.Step]) -> pd.DataFrame:
    """(b) By the photographs in training, with and without synthetic training."""
    columns = ["model", "measure", "photographs in training", "tested on", "from scratch (%)", "after synthetic (%)"]
    texts = [
        [
            short(row.model),
            row.measure,
            trained_on(row),
            TESTED[row.test],
            *map(str, (row.scratch, row.tuned, row.saved)),
        ]
        for row in rows
    ]
    table = pd.DataFrame(texts, columns=[*columns, "after synthetic − from scratch"])
    return table.drop_duplicates()  # without photographs both lines of the figure begin alike


def trained_on(row: questions.Step) -> str:
    """The photographs of a row."""
    if not row.count:
        return "none"
    return f"{row.count} of each animal" if row.world == OWN else f"of {row.count} other animals"


def worth_table(rows: list[questions.Worth]) -> pd.DataFrame:
    """(c) The fewest images that reach each target."""
    columns = [
        "model",
        "measure",
        "target (%)",
        "images from scratch",
        "images after synthetic",
        "ratio",
        "95 % interval",
    ]
    texts = []
    for row in rows:
        numbers = [f"{100 * row.target:.0f}", str(row.scratch), "0" if str(row.tuned) == "1" else str(row.tuned)]
        texts.append([short(row.model), row.measure, *numbers, ratio_text(row), row.ratio.interval])
    return pd.DataFrame(texts, columns=columns)


def ratio_text(row: questions.Worth) -> str:
    """How many times the images a model needs from scratch; a bound where one of both never reaches the target."""
    if row.scratch.censored and row.tuned.censored:
        return DASH
    sign = "≥ " if row.scratch.censored else "≤ " if row.tuned.censored else ""
    ratio = row.scratch.images / row.tuned.images
    return f"{sign}{ratio:.2g}" if ratio < 100 else f"{sign}{ratio:.0f}"


def change_table(rows: list[questions.Change]) -> pd.DataFrame:
    """(d) What each factor changes."""
    columns = ["model", "changed", "tested on", "measure", "as it is (%)", "changed (%)", "difference"]
    return pd.DataFrame(
        [[short(row.model), row.factor, TESTED[row.test], row.measure, *map(str, row[4:])] for row in rows],
        columns=columns,
    )


def audit_table(study: Study) -> pd.DataFrame:
    """How many photographs training and test have, and how many both."""
    columns = ["photographs in training", "number", "photographs tested", "their number", "in both"]
    return pd.DataFrame([list(map(str, row)) for row in study.audit], columns=columns)


def gap_words(rows: list[questions.Gap]) -> list[str]:
    """What (a) found, a sentence for each model and test."""
    found: dict[tuple[str, str], dict[str, questions.Gap]] = {}
    for row in rows:
        found.setdefault((row.model, row.test), {})[row.measure] = row
    return [
        f"{short(model)}, {test}: from rendered to photographed animals recognition changes by {its[RECOGNITION].gap} "
        f"points to {its[RECOGNITION].photographs} %, swaps by {its[SWAPS].gap} to {its[SWAPS].photographs} %, and "
        f"swaps where all is recognised by {its[KNOWN].gap if KNOWN in its else '– (no scene is, rendered)'}."
        for (model, test), its in found.items()
    ]


def step_words(rows: list[questions.Step]) -> list[str]:
    """What (b) found, at the most photographs of the tested animals."""
    own = [row for row in rows if row.world == OWN and row.count]
    most = max((row.count for row in own), default=0)
    return [
        f"{short(row.model)}, {row.measure} on held-out photographs after training on up to {row.count} others of each "
        f"animal: {row.scratch} % from scratch, {row.tuned} % after synthetic training ({row.saved} points)."
        for row in own
        if row.count == most
    ]
