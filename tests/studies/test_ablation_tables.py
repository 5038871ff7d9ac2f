"""The page of an ablation study, of stored runs: what it finds, what is awaited, and options varied together."""

from dataclasses import replace

import pytest

from menagerie.studies.ablations import PRESETS
from menagerie.studies.analysis.tables import DASH, WAITING
from menagerie.studies.frame.claims import lowest_by_task
from menagerie.studies.frame.layout import Sheet
from menagerie.studies.frame.records import Records
from menagerie.studies.pages.ablations import export_ablations, parts, sections_of
from tests.studies.stored import stored_run

ATTENTION, TOKENS = "regular attention", "default_tokens=2"


@pytest.fixture(scope="module")
def section(tmp_path_factory):
    """The binding split: OC-CLIP is right more often than with regular attention; a third row isn't finished."""
    study = replace(PRESETS["smoke"], rows=(ATTENTION, TOKENS), splits=("binding",), seeds=3).fill_in()
    out = tmp_path_factory.mktemp("ablated")
    for arm in study.arms:
        if (row := arm.labels["row"]) != TOKENS:
            skill = 0.2 if row == ATTENTION else 0.9
            stored_run(out, arm.cell.model, arm.cell.seed, dict(arm.labels), skill, name=arm.id)
    return sections_of(study, Records(tuple(study.arms), out))["binding"]


def test_a_lower_row_confirms_the_papers_claim(section):
    (verdict,) = section.verdicts()
    assert (verdict.row, verdict.outcome) == (ATTENTION, "confirmed")
    assert section.differences.keys() == {ATTENTION}
    assert section.differences[ATTENTION].high < 0
    assert "1 of 1 rows are lower than OC-CLIP by more than chance and 0 higher" in section.finding()


def test_unfinished_rows_and_rows_without_a_comparison_have_different_marks(section):
    rows = {row[0]: row[1:] for row in Sheet(section.table()).frame.to_numpy().tolist()}
    assert rows["OC-CLIP"][-1] == DASH
    assert set(rows[TOKENS]) == {WAITING}
    assert rows[ATTENTION][-1] == str(section.differences[ATTENTION])
    assert (section.missing(TOKENS), section.missing("joint relation")) == (WAITING, DASH)


def test_each_task_has_the_accuracy_of_its_worst_test(section):
    table = lowest_by_task("tasks", section.records, (*section.differences, "OC-CLIP", TOKENS))
    rows = {row[0]: dict(zip(table.header, row, strict=True)) for row in table.rows}
    scores = section.records.scores
    own = scores[(scores.row == ATTENTION) & scores.subset.isin(("seen_pairs", "unseen_pairs"))]
    for task in ("swap", "replace animal", "text score"):
        lowest = own[own.task == task].groupby("subset").accuracy.mean().min()
        assert rows[ATTENTION][task] == f"{100 * lowest:.1f}"
    # 45 % of four-way items, where chance is 25 %, are less of the way to 100 % than 90 % of swaps.
    assert "text score 45.0" in rows["OC-CLIP"]["lowest of all"]
    assert set(list(rows[TOKENS].values())[1:]) == {WAITING}


def test_the_page_has_all_parts_while_runs_are_missing(section):
    names = [part.name for part in parts(section.study, section.every) if hasattr(part, "name")]
    assert names == ["binding", "claims", "accuracy-binding", "tasks-binding", "training"]
    export_ablations(section.study, section.every)
    lines = (section.every.out / "ablations.csv").read_text().splitlines()
    assert {line.split(",")[1] for line in lines[1:]} == {"OC-CLIP", ATTENTION}
    assert (section.every.out / "ablations.tex").exists()
