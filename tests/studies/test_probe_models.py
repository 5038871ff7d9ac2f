"""Probes of a study's own runs, and of models as they are: finished runs and models from elsewhere on one probe set."""

import shutil
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.records import read_records
from menagerie.models.library.sources import Checkpoint
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.run import Running
from menagerie.studies.measures.bits import agreed_setting
from menagerie.studies.probes import ProbeModels
from menagerie.studies.scoring.models import Model, less_seed
from tests.command import ROOT, no_page, succeed
from tests.helpers.scorers import small_open_clip

STUDY = [sys.executable, str(ROOT / "studies/probes.py"), "--preset", "smoke", "--steps", "2", "--keep-states", "0"]
STUDY += ["--workers", "1", "--out", "a"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the run `a`, which its study has probed, and its CLIP in the run `clip`."""
    folder = tmp_path_factory.mktemp("probes")
    succeed(STUDY, folder, page=False)
    (cell,) = (file.parent for file in folder.glob("a/cells/*/result.json") if '"model": "clip"' in file.read_text())
    shutil.copytree(cell, folder / "clip" / "cells" / cell.name)
    return folder


def test_each_layer_is_read_at_each_kept_state_once(folder):
    found = pd.read_csv(folder / "a" / "bits.csv", dtype=str, keep_default_na=False)
    assert set(found["step"]) == {"", "0.0"}
    for model in ("clip", "oc-clip"):
        bits = found[(found["model"] == model) & (found["measure"] == "bits") & (found["step"] == "")]
        read = set(zip(bits["part"], bits["layer"], bits["read"], strict=True))
        assert {("image", "stem", "mean"), ("text", "tokens", "mean"), ("image", "tokens", "all tokens")} <= read
        assert (("image", "embedding", "mean") in read) == (model == "clip"), "OC-CLIP has no single vector"
        assert bits["value"].astype(float).between(0, 1).all()
    words = found[(found["model"] == "clip") & (found["layer"] == "stem") & (found["part"] == "text")]
    held = words[words["measure"] == "bits"]["value"].astype(float)
    assert np.allclose(held, 0, atol=0.02), "the mean of the words is a bag of them"
    before = {path: path.stat().st_mtime_ns for path in (folder / "a" / "cells").glob("*/measures/*.jsonl")}
    assert len(before) == 2 * 2 * 2
    succeed(STUDY, folder, figures=False)
    assert before == {path: path.stat().st_mtime_ns for path in before}, "what is measured isn't measured again"


def study_of(folder, *models, **options):
    return ProbeModels(models=models, store=folder / "store", threads=1, **options)


def test_a_finished_cell_has_the_probes_that_its_study_took_and_others_have_theirs(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    study = study_of(folder, "clip", small_open_clip(tmp_path))
    study.check()
    study.prepare(tmp_path)
    for piece in study.pieces():
        piece.job(tmp_path).run(lambda *given: None, lambda: None)
        assert not piece.job(tmp_path).problem
    (taken,) = (path for path in folder.glob("clip/cells/*/measures/bits-*.jsonl") if "step" not in path.name)
    files = {file.parent.parent.name: read_records(file) for file in tmp_path.glob("cells/*/measures/bits-*.jsonl")}
    ours, small = (files[piece.id] for piece in study.pieces())
    assert ours[1:] == read_records(taken)[1:]
    places = {(row["part"], row["layer"], row["read"]) for row in small[1:]}
    assert {("image", "block 1", "mean"), ("text", "block 1", "mean"), ("image and text", "score", "score")} <= places
    assert {("image", "embedding", "hidden layer"), ("image", "tokens", "attention")} <= places
    assert ("image", "embedding", "mean") in places, "images of 32 px are framed for a model that reads 48"
    with no_page():
        Running(study, tmp_path).publish()
    records = Records(tuple(study.plan(Records((), tmp_path))), tmp_path)
    page = [*study.page(records)]
    said = [part.text for part in page if hasattr(part, "text")]
    refused = [text for text in said if "where the bit is used: refused, the score doesn't tell" in text]
    assert len(refused) == 2, "neither is trained"
    assert len([text for text in said if "has which texture: all patches" in text]) == 2
    (table,) = (part for part in page if getattr(part, "name", "") == "trained-on-probe-set")
    counts = {tuple(row[:2]): row[2:] for row in table.rows}
    assert {key[1] for key in counts} == {"left_first", "right_first", "all"}
    assert counts[study.tested[0].label, "left_first"][-3:-1] == ["0 of 144", "0 of 144"], "images that no training had"
    assert set(counts[study.tested[1].label, "all"][:-1]) == {"unknown"}
    assert len((tmp_path / "bits.csv").read_text().splitlines()) == len(ours) + len(small) - 1


def test_named_layers_alone_are_read(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    study = study_of(folder, "clip", layers=("stem",))
    study.check()
    assert study.bits.file() != replace(study.bits, layers=()).file()
    (piece,) = (piece.job(tmp_path) for piece in study.pieces())
    piece.run(lambda *given: None, lambda: None)
    rows = read_records(piece.folder / "measures" / study.bits.file())[1:]
    assert {row["layer"] for row in rows} == {"stem", "score"}


def test_the_probe_set_is_of_the_world_and_the_size_that_models_were_trained_with(folder, monkeypatch):
    monkeypatch.chdir(folder)
    study = study_of(folder, "a")
    assert (study.probe_set.world, study.bits.resolution) == ("tiny", 32)
    assert agreed_setting("--world", "", {"one": "tiny", "two": ""}, "pug") == "tiny"
    assert agreed_setting("--world", "eight", {"one": "tiny", "two": "pug"}, "pug") == "eight"
    with pytest.raises(UserError, match="one was trained with tiny, two with pug: give the --world"):
        agreed_setting("--world", "", {"one": "tiny", "two": "pug"}, "pug")


def cell(tmp_path, **place):
    label = "run: clip " + " ".join(f"{name} {value}" for name, value in place.items())
    return Model(label, Checkpoint("run", tmp_path / label / "checkpoint", "clip"), "run", label, tuple(place.items()))


def test_cells_that_differ_in_their_seed_alone_are_seeds_of_one_model(tmp_path):
    cells = [cell(tmp_path, pairs=pairs, seed=seed) for pairs in (0.2, 0.5) for seed in (0, 1)]
    called = [(model.label, seed) for model, seed in map(less_seed, cells)]
    assert called == [(f"run: clip (pairs {pairs})", seed) for pairs in (0.2, 0.5) for seed in (0, 1)]
