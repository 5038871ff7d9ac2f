"""Probing models as they are: runs, checkpoints and models from elsewhere on one probe set, without any training."""

import shutil
import sys
from dataclasses import replace

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.records import read_records
from menagerie.models.library.sources import Checkpoint
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.run import Running
from menagerie.studies.probing.models import ProbeModels
from menagerie.studies.probing.piece import agreed_setting
from menagerie.studies.scoring.models import Model, by_training
from tests.command import ROOT, succeed
from tests.helpers.scorers import small_open_clip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the run `a` of one CLIP, which its study has probed, and a checkpoint of it outside of the run."""
    folder = tmp_path_factory.mktemp("probes")
    study = [sys.executable, str(ROOT / "studies/probes.py"), "--preset", "smoke", "--models", "clip", "--steps", "2"]
    succeed([*study, "--keep-states", "0", "--workers", "1", "--out", "a"], folder, page=False)
    shutil.copytree(next(folder.glob("a/cells/*/checkpoint")), folder / "alone" / "checkpoint")
    return folder


def study_of(folder, *models, **options):
    return ProbeModels(models=models, store=folder / "store", threads=1, **options)


def test_a_finished_cell_has_the_probes_that_its_study_took_and_others_have_theirs(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    study = study_of(folder, "a", small_open_clip(tmp_path))
    study.check()
    study.prepare(tmp_path)
    for piece in study.pieces():
        piece.job(tmp_path).run(lambda *given: None, lambda: None)
        assert not piece.job(tmp_path).problem
    (taken,) = (path for path in folder.glob("a/cells/*/measures/*.jsonl") if "step" not in path.name)
    files = {file.parent.parent.name: read_records(file) for file in tmp_path.glob("cells/*/measures/*.jsonl")}
    ours, small = (files[piece.id] for piece in study.pieces())
    assert ours[1:] == read_records(taken)[1:]
    places = {(row["part"], row["layer"], row["read"]) for row in small[1:]}
    assert {("image", "block 1", "mean"), ("text", "block 1", "mean"), ("image and text", "score", "score")} <= places
    assert ("image", "embedding", "mean") in places, "images of 32 px are framed for a model that reads 48"
    Running(study, tmp_path).publish()
    records = Records(tuple(study.plan(Records((), tmp_path))), tmp_path)
    said = [part.text for part in study.page(records) if hasattr(part, "text")]
    assert len([text for text in said if "has which texture: all patches" in text]) == 2
    (table,) = (part for part in study.page(records) if getattr(part, "name", "") == "trained-on-probe-set")
    counts = {tuple(row[:2]): row[2:] for row in table.rows}
    assert {key[1] for key in counts} == {"left_first", "right_first", "all"}
    assert counts[study.tested[0].label, "left_first"][-2:] == ["0 of 144", "0 of 144"], "images that no training had"
    assert set(counts[study.tested[1].label, "all"]) == {"unknown"}
    assert len((tmp_path / "bits.csv").read_text().splitlines()) == len(ours) + len(small) - 1


def test_named_layers_alone_are_read(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(folder)
    study = study_of(folder, "a", layers=("stem",))
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
    called = [(model.label, seed) for model, seed in by_training(cells).values()]
    assert called == [(f"run: clip (pairs {pairs})", seed) for pairs in (0.2, 0.5) for seed in (0, 1)]
