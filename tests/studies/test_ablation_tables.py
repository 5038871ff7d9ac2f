"""The page of an ablation study, of stored runs: what it finds, what is awaited, and options varied together."""

from dataclasses import replace

import pytest

from menagerie.studies.ablations import PRESETS
from menagerie.studies.analysis.tables import WAITING
from menagerie.studies.frame.layout import Sheet
from menagerie.studies.frame.parts import HeatMap, Rows, Sentence
from menagerie.studies.frame.records import Records
from tests.studies.stored import stored_run

ATTENTION, TOKENS = "regular attention", "default_tokens=2"


def stored(out, rows, skills, split="binding"):
    """The page of a study of one split, in which each row is as accurate as its skill; others aren't
    finished."""
    study = replace(PRESETS["smoke"], rows=rows, splits=(split,), seeds=3).fill_in()
    for arm in study.arms:
        if (row := arm.labels["row"]) in skills:
            stored_run(
                out, arm.cell.model, arm.cell.seed, dict(arm.labels), skills[row], name=arm.id, tests=arm.cell.tests
            )
    return list(study.page(Records(tuple(study.arms), out)))


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """OC-CLIP is right more often than with regular attention; a third row isn't finished."""
    return stored(tmp_path_factory.mktemp("ablated"), (ATTENTION, TOKENS), {"OC-CLIP": 0.9, ATTENTION: 0.2})


def test_a_lower_row_confirms_the_papers_claim(parts):
    (claims,) = (part for part in parts if isinstance(part, Rows))
    ((_, row, tests, outcome, difference, _),) = claims.rows
    assert (row, outcome) == (ATTENTION, "confirmed")
    assert tests == "binding: seen pairs, unseen pairs, unseen pairs: replace texture"
    assert difference.startswith("-")
    said = [part.text for part in parts if isinstance(part, Sentence)]
    assert any("1 of 1 rows are lower than OC-CLIP by more than chance and 0 higher" in text for text in said)


def test_rows_are_compared_with_the_unchanged_model_and_unfinished_ones_are_marked(parts):
    accuracy, differences = (
        Sheet(next(part for part in parts if getattr(part, "name", "") == f"{name}-binding")).frame.set_index("row")
        for name in ("accuracy", "differences")
    )
    assert {*accuracy.index} == {"OC-CLIP", ATTENTION, TOKENS}
    assert {*differences.index} == {f"{row} − OC-CLIP" for row in (ATTENTION, TOKENS)}
    for table in (accuracy.loc[TOKENS], differences.loc[f"{TOKENS} − OC-CLIP"]):
        assert {*table} == {WAITING}
    assert all(text.startswith("-") for text in differences.loc[f"{ATTENTION} − OC-CLIP"])


def test_options_that_are_varied_together_have_a_heat_map(tmp_path, monkeypatch):
    monkeypatch.setattr("menagerie.studies.ablations.weight_ratio", lambda *_: None)  # of weights that aren't there
    sides = {row: 0.5 for row in ("dim=4", "relation_dim=4", "dim=4 relation_dim=4")}
    skills = sides | {"OC-CLIP": 0.5}
    maps = [its for its in stored(tmp_path / "a", tuple(sides), skills, "spatial") if isinstance(its, HeatMap)]
    assert [(its.x, its.y) for its in maps] == [("relation_dim", "dim")]
    assert {(arm.labels["dim"], arm.labels["relation_dim"]) for arm in maps[0].records.arms} >= {(4, 4)}
    assert len({(arm.labels["dim"], arm.labels["relation_dim"]) for arm in maps[0].records.arms}) == 4
    for rows, split in ((tuple(sides)[:2], "spatial"), (tuple(sides), "binding")):
        fewer = stored(tmp_path / f"of {split}", rows, skills, split)
        assert not [its for its in fewer if isinstance(its, HeatMap)], "not all combinations are trained"
