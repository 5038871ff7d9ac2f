"""The study of remedies for text embeddings: its rows, the share of a lead, its page, and the question of places."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from menagerie.generators.splits.probe_scenes import objects_from_left
from menagerie.models.towers.preparation import Framing
from menagerie.studies.frame.measure import write_measured
from menagerie.studies.frame.parts import Chart, Sentence
from menagerie.studies.frame.records import Records
from menagerie.studies.measures.bits import RelatedSplit
from menagerie.studies.measures.probes import bits, probe_left
from menagerie.studies.text_embeddings import PRESETS, UNDECIDED, recovered_share, remedies
from tests.command import ROOT, read_rows, run_here
from tests.studies.known_embeddings import axes, embedding
from tests.studies.stored import stored_run

SKILLS = {"CLIP": 0.6, "deeper text tower": 0.6, "swapped captions": 0.8, "OC-CLIP": 0.95}
NONE, SOME, ALL = "deeper text tower", "swapped captions", "OC-CLIP"


def stored(out, skills, bits=None):
    """A study of stored runs on the binding split, three seeds each, as accurate as the skill of their row."""
    study = replace(PRESETS["laptop"], rows=(NONE, SOME, ALL), splits=("binding",), seeds=3).fill_in()
    for arm in study.arms:
        row = arm.labels["row"]
        stored_run(out, arm.cell.model, arm.cell.seed, dict(arm.labels), skills[row], pairs=12, name=arm.id)
        held = {"part": "text", "layer": "embedding", "read": "mean", "measure": "bits", "value": (bits or {}).get(row)}
        write_measured(out / "cells" / arm.id, study.bits["binding"], None, [held] if row in (bits or {}) else [])
    return study, Records(tuple(study.arms), out)


def test_the_recovered_share_is_the_way_between_two_means():
    means = np.array([[0.5, 0.7, 0.9], [0.6, 0.6, 1.0], [0.8, 0.9, 0.8]])
    assert recovered_share(means, 0, 1, 2)[:2] == pytest.approx([0.5, 0])
    assert np.isnan(recovered_share(means, 0, 1, 2)[2]), "no lead, no share"
    assert recovered_share(means, 0, 2, 2)[:2] == pytest.approx([1, 1])
    assert recovered_share(np.array([[0.9, 0.7, 0.5]]), 2, 1, 0) == pytest.approx([0.5]), "in any order of columns"


def test_remedies_that_recover_are_told_from_undecided_ones(tmp_path):
    study, records = stored(tmp_path, SKILLS, bits={"CLIP": 0.1, SOME: 0.3})
    lead, found = remedies(study.tests("binding", records), "CLIP", ALL)
    points = records.where(task="swap", subset="unseen_pairs").points.groupby("row")["value"].mean()
    share = (points[SOME] - points["CLIP"]) / (points[ALL] - points["CLIP"])
    its = {remedy.row: remedy for remedy in found}
    assert set(its) == {NONE, SOME}
    assert lead.value == pytest.approx(points[ALL] - points["CLIP"])
    assert its[SOME].share.value == pytest.approx(share)
    assert its[SOME].share.low > 0
    assert its[SOME].outcome == "recovers"
    assert its[NONE].outcome == UNDECIDED
    every = list(study.page(records))
    (text,) = (part.text for part in every if isinstance(part, Sentence))
    assert f"{SOME} {100 * share:.0f} [" in text
    (drawn,) = (part.chart for part in every if isinstance(part, Chart))
    assert {*drawn.data["row"]} == {NONE, SOME}
    (held,) = (part for part in every if getattr(part, "name", "") == "held-binding")
    text = {row[0]: row[held.header.index("text embedding")] for row in held.rows}
    assert (text["CLIP"][:4], text[SOME][:4], text[ALL]) == ("0.10", "0.30", "–")
    study.export(records)
    rows = {row["row"]: row for row in read_rows(tmp_path / "remedies.csv")}
    assert float(rows[SOME]["share"]) == pytest.approx(share)
    assert rows[NONE]["outcome"] == UNDECIDED
    numbers = {(row["row"], row["number"]): float(row["value"]) for row in read_rows(tmp_path / "rows.csv")}
    assert numbers["CLIP", "unseen_pairs: swaps"] == pytest.approx(points["CLIP"])
    assert numbers[SOME, "unseen_pairs: swaps above CLIP"] == pytest.approx(points[SOME] - points["CLIP"])
    held = [numbers[row, "bits: text embedding"] for row in ("CLIP", SOME)]
    assert held == pytest.approx([0.1, 0.3])


def test_the_linear_map_is_of_the_clip_beside_it():
    study = PRESETS["linear"].fill_in()
    clip, labclip = (next(arm.cell for arm in study.arms if arm.cell.model == name) for name in ("clip", "labclip"))
    assert labclip.base.recipe == clip.recipe == study.training
    assert labclip.base.towers == clip.towers
    assert clip.towers.architecture == "mini"
    assert {"seen_2", "unseen_2"} <= {*clip.tests}
    records = Records(tuple(study.arms), study.store)
    assert study.tests("own", records).chosen == (("test", (("unseen_2", "swap"),)),)


def test_without_a_lead_no_remedy_has_a_share(tmp_path):
    study, records = stored(tmp_path, SKILLS | {ALL: 0.6})
    lead, found = remedies(study.tests("binding", records), "CLIP", ALL)
    assert lead.low <= 0
    assert {(its.share, its.outcome) for its in found} == {(None, UNDECIDED)}


def test_rows_take_equal_steps_on_both_grids():
    study = PRESETS["laptop"].fill_in()
    cells = [arm.cell for arm in study.arms if arm.cell.seed == 0]
    assert {cell.data.kind for cell in cells} == {"binding", "spatial"}
    assert {(cell.recipe.steps, cell.recipe.batch) for cell in cells} == {(1000, 64)}
    assert {cell.data.recipe.pairs for cell in cells} == {0.6}
    towers = {arm.labels["row"]: arm.cell.towers.architecture for arm in study.arms}
    assert (towers["CLIP"], towers[NONE], towers[ALL]) == ("mini", "deep-text", "mini")
    assert len({cell.id for cell in cells}) == len(cells) == 2 * len(study.lines)
    assert study.bits["spatial"].file() != study.bits["binding"].file()


@pytest.mark.parametrize(("kind", "known"), [("place", 1.0), ("concept", 0.0), ("object", 0.0)])
def test_only_embeddings_with_separate_places_tell_which_object_is_left(kind, known):
    made = axes(animals=5)
    embeddings = embedding(kind, made, width=16)
    assert bits(probe_left(embeddings, made)).value == pytest.approx(known, abs=0.02)


def test_probes_of_the_spatial_grid_read_every_layer_and_captions_state_the_relation(tmp_path):
    given = ["--splits", "spatial", "--rows", SOME, "--upper", SOME, "--steps", "2", "--workers", "1", "--out", "out"]
    command = [sys.executable, str(ROOT / "studies/text_embeddings.py"), "--preset", "smoke", *given]
    done = run_here(command, tmp_path, page=False)
    assert done.returncode == 0, done.stderr
    rows = read_rows(tmp_path / "out" / "bits.csv")
    read = {(row["part"], row["layer"], row["read"]) for row in rows if row["measure"] == "bits"}
    assert read == {
        ("image", "tokens", "mean"), ("image", "tokens", "all tokens"), ("image", "embedding", "mean"),
        ("text", "tokens", "mean"), ("text", "embedding", "mean"), ("image and text", "score", "score"),
    }  # fmt: skip
    (file,) = tmp_path.glob("store/*/probe-*.h5")
    for subset, word in (("left_first", "left"), ("right_first", "right")):
        data = RelatedSplit(file, subset, Framing(32))
        (true,), (false,) = data.captions([0], [0]), data.negatives([0], [0])
        left, right = objects_from_left(data.records.scenes[0])[:: 1 if word == "left" else -1]
        assert f"{left.texture} {left.animal} to the {word} of a {right.texture} {right.animal}" in true.text
        assert f"{right.texture} {right.animal} to the {word} of a {left.texture} {left.animal}" in false.text
        assert true.graph.edges[0].predicate == f"to the {word} of"
