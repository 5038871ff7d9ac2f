"""What a model could decide without binding, on every page of tests on splits: swaps by whether training showed what
their captions state, and what words alone decide."""

import io
import math
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pandas as pd

from menagerie.envs.core.reading import read_text
from menagerie.generators.benchmarks.words_alone import text_words
from menagerie.generators.captions.hard_negatives.tasks import TASKS
from menagerie.generators.familiarity import STRATA, stratum_of
from menagerie.generators.splits.facts import STATED
from menagerie.studies.analysis.errors import read_predictions
from menagerie.studies.analysis.words import CHANCES
from menagerie.studies.frame.parts import Heading, Part, Rows, Table
from menagerie.studies.frame.records import Records
from menagerie.studies.runs.evaluation import FILE
from menagerie.studies.runs.results import checked_file

SEEN_SAYS = (
    "Accuracy on swaps of all tests by whether training showed the {}s that only the true and that only the false "
    "caption states. What was seen tells nothing where it is neither or both. Swaps without such a difference are left "
    "out."
)
WORDS_SAYS = (
    "In percent, by the first run on a split, of tasks with one false caption: how often it has the same words as the "
    "true one, the accuracy of the best bag of words, and of always preferring the longer or the shorter caption."
)
WORDS = ("test", "task", "records", "same words", "bag of words", "length")


def shortcut_parts(records: Records) -> Iterator[Part]:
    """Yield tables of strata of swaps and of what words alone decide; nothing without records of splits."""
    records = records.where(lambda arm: (records.folder(arm) / FILE).is_file())  # fits of codes leave none
    swaps, found = records.where(task="swap", subset=records.tests), list[Part]()
    rows = [name for name in ("model", "split") if any(name in arm.place for arm in records.arms)]
    for kind in STATED:
        its = swaps.regroup(STRATA, lambda arm, kind=kind: strata_in(records.folder(arm), kind))
        if len(its.points):
            folded = f"Swaps by whether training showed their {kind}s"
            found.append(Table(f"seen-{kind}", its, rows, says=SEEN_SAYS.format(kind), folded=folded))
    first = {arm.place.get("split", ""): arm for arm, result in reversed(records.results) if result.get("subsets")}
    tested = ((split, row) for split, arm in first.items() for row in rows_of_words(records.folder(arm)))
    if lines := [[f"{split} {test}".strip(), *rest] for split, (test, *rest) in tested]:
        found.append(Rows("words-alone", WORDS, lines, says=WORDS_SAYS, folded="What words alone decide"))
    yield from [Heading("Without binding"), *found] if found else ()


@cache  # finished runs don't change
def strata_in(folder: Path, kind: str) -> dict[str, str]:
    """Return the strata of a run's swaps by a kind of fact, by scene, without those whose captions don't differ in it;
    none of a run whose training isn't known, or that an earlier version made."""
    sides, text = [f"{side}_{kind}_seen" for side in ("true", "false")], read_text(checked_file(folder, FILE))
    frame = pd.read_csv(io.StringIO(text), usecols=lambda name: name in ("task", "scene", *sides))
    if sides[0] not in frame:
        return {}
    rows = frame[frame["task"] == "swap"].dropna(subset=sides, how="all")[["scene", *sides]].itertuples(index=False)
    return {scene: stratum_of(*(None if math.isnan(n) else int(n) for n in seen)) for scene, *seen in rows}


@cache
def rows_of_words(folder: Path) -> list[list[str]]:
    """Return a row of `WORDS` for each test and task of a run with one true and one false caption."""
    frame, rows = read_predictions(folder), []
    chosen = frame[frame["task"].isin(TASKS.keys() - CHANCES.keys())]
    for (subset, task), part in chosen.groupby(["subset", "task"], sort=False):
        pairs = [tuple(map(text_words, texts)) for texts in zip(part["caption"], part["negative"], strict=True)]
        same = sum(sorted(true) == sorted(false) for true, false in pairs) / len(pairs)
        longer = sum((len(true) > len(false)) + (len(true) == len(false)) / 2 for true, false in pairs) / len(pairs)
        shares = (f"{100 * share:.1f}" for share in (same, 1 - same / 2, max(longer, 1 - longer)))
        rows.append([subset.replace("_", " "), task, str(len(pairs)), *shares])
    return rows
