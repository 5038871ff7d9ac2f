"""Training on photographs: small files of COCO's format, rendered ones, and 51 real photographs."""

import json
import os
import re
import shutil
import socket
import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.records import write_record
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.models.checkpoint import build_scorer, load_checkpoint, save_checkpoint
from menagerie.models.recipe import Recipe
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.models.towers.preparation import preparation_of
from menagerie.models.training.feed import Feed
from menagerie.studies.frame.command import changeable_options
from menagerie.studies.frame.run import Running, run_study
from menagerie.studies.real_data import RealTraining
from menagerie.studies.runs import executor
from menagerie.studies.runs.command_line import only_models, scorer_options
from menagerie.studies.runs.folder import run_folder
from menagerie.studies.runs.graphs import open_material
from menagerie.studies.runs.runners import run_job
from menagerie.studies.runs.train import fresh_scorer
from menagerie.studies.sources.photograph_study import check_pretrained
from menagerie.studies.transfer import Transfer
from tests.command import no_figures, read_rows
from tests.helpers.benchmark_files import make_sugarcrepe, write_images, write_json
from tests.helpers.chat_service import ChatService, Sent, written
from tests.helpers.scorers import small_open_clip

IMAGES, SHOWN, HELD_OUT = 40, 2, 7  # SugarCrepe shows the first two; a fifth of the other 38 is held out
SHARED = Path(os.environ.get("MENAGERIE_SHARED", "absent")) / "data"
TINY = BindingRecipe(world="tiny", pairs=0.5, hard_negatives=1.0, views=1, test_views=1, test_scenes=4)
PLAIN = RealTraining(
    models=("clip",),
    base=TINY,
    world="tiny",
    resolution=32,
    architecture="nano",
    epochs=0.0,
    recipe=Recipe(steps=4, batch=8, warmup=1),
    scorers=scorer_options("smoke"),
    benchmarks=("sugarcrepe",),
    unknown_words="skip",
)


def make_photographs(root):
    """Forty photographs of COCO with two captions each, and SugarCrepe, which shows two of them."""
    make_sugarcrepe(root)
    objects = list(product(("red", "white", "wooden", "tall"), ("cat", "dog", "bench", "zebra", "cup")))
    images = [{"id": k, "file_name": f"{k:012d}.jpg"} for k in range(1, IMAGES + 1)]
    texts = {k: objects[k % len(objects)] for k in range(1, IMAGES + 1)}
    annotations = [
        {"id": 2 * k + n, "image_id": k, "caption": text.format(*texts[k], k=k)}
        for k in texts
        for n, text in enumerate(("A {0} {1} in Room {k}.", "Room {k}: {1}, {0}"))
    ]
    write_json(root / "coco/annotations/captions_train2017.json", {"images": images, "annotations": annotations})
    write_images(root / "coco/train2017", [image["file_name"] for image in images])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files of `make_photographs` in `data`."""
    folder = tmp_path_factory.mktemp("real")
    make_photographs(folder / "data")
    return folder


def places_in(folder):
    return {"data_root": folder / "data", "store": folder / "store", "parses": folder / "parses"}


@pytest.fixture
def study(folder, monkeypatch):
    """Runs a study in this process, one cell after the other."""

    def in_turn(jobs, cluster, workers, out, on_finished, grows):
        queue = list(jobs)
        while queue:
            job = queue.pop(0)
            run_job(job, lambda step, text="": None, lambda: None)
            queue += on_finished(job) or ()

    def here(out, **options):
        study = replace(PLAIN, **places_in(folder) | options)
        study.check_given(study)
        study = replace(study, scorers=only_models(study.scorers, study.models))
        with no_figures(), run_folder(folder / out, study, changeable_options(study)):
            run_study(study, folder / out)
        return folder / out

    monkeypatch.setattr(executor, "run_jobs", in_turn)
    monkeypatch.chdir(folder)
    return here


def results_of(out):
    return [json.loads(line) for line in (out / "cells.jsonl").open()]


def jobs_of(folder, **options):
    """The cells of a study before any is trained, without benchmarks, as in a dry run."""
    study = replace(PLAIN, dry_run=True, workers=1, **places_in(folder) | options)
    running = Running(study.prepare(folder / "unused"), folder / "unused")
    running.render(running.arms())
    return list(map(running.job, running.arms()))


def objects(request):
    """A graph for "A red cat in Room 3."; useless answers for the others."""
    found = re.fullmatch(r"A (\w+ \w+) in (Room \d+)\.", request.caption)
    return Sent(written(list(found.groups()), [("in", 0, 1)]) if found else "I can't")


def test_cells_are_trained_once_for_each_parser_that_they_read_and_scored_on_benchmarks(
    study, folder, capsys, tmp_path
):
    with ChatService(objects) as service:
        name = f"llm:model=m,url={service.url},answers=1"
        options = {"models": ("clip", "oc-clip"), "parser": ("one-node", name)}
        out = study("both", **options)
        printed = capsys.readouterr().out
        rows, results = read_rows(out / "results.csv"), results_of(out)
        requests = len(service.requests)
        study("both", **options)
        assert len(service.requests) == requests
    trained = IMAGES - SHOWN - HELD_OUT
    assert f"coco: {trained} photographs, {HELD_OUT} held out; {2 * (IMAGES - SHOWN)} captions" in printed
    assert f"left out of coco: {SHOWN} photographs, in sugarcrepe" in printed
    assert f"{2 * (IMAGES - SHOWN)} captions: {IMAGES - SHOWN} parsed, {IMAGES - SHOWN} fell back" in printed
    cells = {(its["model"], its["parser"]) for its in results}
    assert cells == {("clip", "one-node"), ("oc-clip", "one-node"), ("oc-clip", name)}
    assert {its["train_images"] for its in results} == {trained}
    assert {its["subsets"]["validation"]["caption"]["n"] for its in results} == {HELD_OUT}
    by_parser = {its["parser"]: its["loss_negatives"] for its in results if its["model"] == "oc-clip"}
    assert by_parser == {"one-node": [], name: ["graphs swapped and shuffled"]}
    scored = {(row["model"], row["parser"], row["name"]) for row in rows if row["kind"] == "headline" and row["name"]}
    assert len(scored) == 3 * 2  # micro and macro
    assert f"{SHOWN} in sugarcrepe" in (out / "report.html").read_text()
    assert (out / "scores-sugarcrepe.csv").exists()
    assert "6 runs, 6 of them finished before" in capsys.readouterr().out  # cells, and each on its benchmark
    assert read_rows(out / "results.csv") == rows
    check_what_training_had(folder, tmp_path, out)


def check_what_training_had(folder, elsewhere, out):
    """Nothing of SugarCrepe; but one of each once a trained and a held-out caption and photograph are put into it."""
    (job,) = jobs_of(folder)
    whole = open_material(job).train.whole
    trained = set(open_material(job).train.indices.tolist())
    places = min(trained), min(set(range(len(whole))) - trained)
    shutil.copytree(folder / "data", elsewhere / "data")
    records = elsewhere / "data/sugarcrepe/add_att.json"
    content = json.loads(records.read_text())
    for key, place, file in zip(content, places, ("000000000001.jpg", "000000000002.jpg"), strict=True):
        content[key]["caption"] = whole.options[place][1].text
        shutil.copy(whole.files.root / whole.files.names[place], elsewhere / "data/coco/val2017" / file)
    records.write_text(json.dumps(content))
    results = {its["id"]: its for its in results_of(out) if its["parser"] == "one-node" and its["model"] == "clip"}
    found = []
    for root in (folder, elsewhere):
        model, place = f"{out}/cells/{next(iter(results))}", root / "data"
        study = Transfer(models=(model,), data_root=place, benchmarks=("sugarcrepe",))
        found += [piece.had for piece in study.pieces()]
    assert found == ["0 of 14 texts, 0 of 2 image files", "1 of 15 texts, 1 of 2 image files"]


def test_held_out_photographs_are_not_trained_on_and_their_items_have_their_own_captions(folder):
    (job,) = jobs_of(folder)
    material = open_material(job)
    whole = material.train.whole
    trained = {whole.names_of_images[k] for k in material.train.indices}
    asked = [item.record for item in material.tests["validation"].items]
    assert not trained & set(asked)
    assert len(trained | set(asked)) == IMAGES - SHOWN
    for item in material.tests["validation"].items:
        place = whole.names_of_images.index(item.record)
        assert torch.equal(material.tests["validation"].images(item.images), whole.images([place]))
        own = {text.text for text in whole.options[place]}
        assert [text.text in own for text in item.texts] == [True, False, False, False, False]


def test_vocabularies_have_words_without_capitals_and_punctuation(folder):
    (job,) = jobs_of(folder)
    words = fresh_scorer(job, open_material(job)).texts.words
    assert {"a", "zebra", "room", "7"} <= set(words)
    assert not {"A", "Room", "7.", "7:", "zebra,"} & set(words)


@pytest.mark.parametrize("mix", [0.25, 0.5, 1.0])
def test_a_batch_has_its_share_of_rendered_scenes(folder, mix):
    (job,) = jobs_of(folder, mix=(mix,))
    material = open_material(job)
    feed = Feed(material.train, fresh_scorer(job, material).reader, job.cell.recipe, 0)
    photographs = IMAGES - SHOWN - HELD_OUT if mix < 1 else 0
    for step in range(3):
        rendered = np.count_nonzero(feed.sampler.indices(step) >= photographs)
        assert rendered == round(8 * mix)
        assert feed[step].images.shape == (8, 3, 32, 32)
    assert len(material.tests["validation"].items) == HELD_OUT


def test_epochs_count_photographs_whatever_is_mixed_in(folder):
    every = jobs_of(folder, mix=(0.0, 0.5), epochs=3.0)
    assert {job.cell.recipe.steps for job in every} == {12}  # 3 x 31 / 8
    assert len({job.cell.id for job in every}) == 2


def synthetic(folder, model="clip", **towers):
    """A checkpoint that knows the words of rendered scenes."""
    torch.manual_seed(5)
    texts = TextSpace(("a", "and", "caribou", "grass", "red", "white"), 20)
    config = TowerConfig(**{"architecture": "nano", "resolution": 32} | towers)
    save_checkpoint(folder, model, build_scorer(model, config, texts))
    return folder


def test_weights_of_a_run_are_carried_over(study, folder, tmp_path):
    run_of = synthetic(tmp_path / "synthetic")
    fresh, started = jobs_of(folder, starts=("none", str(run_of)))
    before = load_checkpoint(run_of)
    scorer = fresh_scorer(started, open_material(started))
    for word in ("caribou", "red"):
        rows = [its.model.token_embedding.weight[1 + its.texts.words.index(word)] for its in (scorer, before)]
        assert torch.equal(*rows)
    assert "zebra" in scorer.texts.words
    assert torch.equal(scorer.model.visual.proj, before.model.visual.proj)
    assert fresh.cell.id != started.cell.id
    out = study("started", starts=("none", str(run_of)))
    carried = [its.get("carried") for its in results_of(out)]
    assert [its and its["words"] for its in carried] == [None, 6]
    assert "zebra" in carried[1]["new_words"]
    assert {row["start"] for row in read_rows(out / "results.csv")} == {"none", str(run_of)}


@pytest.mark.parametrize("tag", ["", "@default"])
def test_weights_trained_from_a_file_are_carried_over_with_its_options(tag, folder, tmp_path):
    name, file = small_open_clip(tmp_path), tmp_path / "weights.pt"
    torch.save(open_clip.create_model(name).state_dict(), file)
    towers = TowerConfig(name, f"{file}{tag}", 48)
    scorer = build_scorer("clip", towers, TextSpace((), 16))
    save_checkpoint(tmp_path / "trained", "clip", scorer)
    same = {"architecture": name, "pretrained": towers.pretrained, "resolution": 48}
    config = replace(PLAIN, starts=("none", str(tmp_path / "trained")), **same)
    config.check_given(PLAIN)
    fresh, started = jobs_of(folder, starts=config.starts, **same)
    assert (fresh.cell.towers, started.cell.towers) == (towers, TowerConfig(name, str(file), 48, load=False))
    own = fresh_scorer(started, open_material(started))
    assert torch.equal(own.model.visual.proj, scorer.model.visual.proj)


def test_the_folder_of_starting_weights_changes_no_cells_id(folder, tmp_path):
    one, other = (synthetic(tmp_path / name) for name in ("one", "other"))
    ids = [jobs_of(folder, starts=(str(path),))[0].cell.id for path in (one, other)]
    assert len(set(ids)) == 1


def begin(study, folder):
    """Everything before training."""
    study.check_given(PLAIN)
    study.prepare(folder)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"benchmarks": ("mine.py:MINE",)}, "unknown benchmark for --benchmarks 'mine.py:MINE'"),
        ({"tuned": "laptop", "recipe": replace(PLAIN.recipe, learning_rate=1e-4)}, "--learning-rate is replaced"),
        ({"pretrained": "openai", "recipe": replace(PLAIN.recipe, warmup=9)}, "--warmup is replaced"),
        ({"starts": ("other-model",)}, "has no cell of model='clip'"),
        ({"starts": ("other-towers",)}, "architecture is 'micro' there and 'nano' here"),
        ({"starts": ("same",), "pretrained": "openai"}, "pretrained is '' there and 'openai' here"),
        (
            {"models": ("negclip",)},
            "negclip trains with false captions of the kind 'swap', which no photograph of coco has",
        ),
        ({"recipe": Recipe(single_object_phase=0.5)}, "are for rendered scenes alone"),
    ],
)
def test_options_that_cannot_work_are_refused_in_one_line(folder, options, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "mine.py").write_text("raise RuntimeError('run although it is refused')")
    starts = {"same": ("clip", "nano"), "other-model": ("oc-clip", "nano"), "other-towers": ("clip", "micro")}
    for name in options.get("starts", ()):
        synthetic(tmp_path / name, starts[name][0], architecture=starts[name][1])
    with pytest.raises(UserError, match=message) as error:
        begin(replace(PLAIN, store=folder / "store", data_root=folder / "data", **options), tmp_path)
    assert "\n" not in str(error.value)


def test_each_cell_starts_from_the_weights_of_its_own_seed(folder, tmp_path):
    for seed in range(2):
        cell = tmp_path / f"run/cells/{seed}"
        synthetic(cell / "checkpoint")
        result = {"id": str(seed), "model": "clip", "seed": seed, "axes": [], "images_seen": 64, "subsets": {}}
        write_record(cell / "result.json", result)
    jobs = jobs_of(folder, starts=(str(tmp_path / "run"),), seeds=2)
    assert [job.cell.start.folder.parent.name for job in jobs] == ["0", "1"]
    assert [job.cell.images_seen for job in jobs] == [64 + 4 * 8] * 2
    with pytest.raises(UserError, match="seed=2; it has seed=0"):
        jobs_of(folder, starts=(str(tmp_path / "run"),), seeds=3)


def test_a_rehearsal_trains_on_rendered_files_of_cocos_format(study):
    out = study("rehearsed", rehearse=True, benchmarks=("retrieval-coco-val2017",), mix=(0.5,))
    assert [its["mix"] for its in results_of(out)] == [0.5]
    names = {row["name"] for row in read_rows(out / "results.csv") if row["benchmark"] == "retrieval-coco-val2017"}
    assert {"I2T R@1", "T2I R@1"} <= names


@pytest.mark.skipif(not (SHARED / "coco-mini").is_dir(), reason="needs the 51 photographs of coco-mini")
def test_51_real_photographs_from_parsing_to_benchmarks(study, capsys):
    """26 photographs, of which 5 are held out; 26 records of SugarCrepe show one of the other 25."""
    mini = SHARED / "coco-mini"
    with ChatService(halves) as service:
        out = study(
            "mini",
            models=("oc-clip",),
            data_root=SHARED,
            images=(f"coco={mini}", f"coco/val2017={mini / 'val2017'}"),
            parser=(f"llm:model=m,url={service.url},answers=1",),
            allow_missing=True,
            epochs=2.0,
        )
    printed = capsys.readouterr().out
    assert "coco: 21 photographs, 5 held out" in printed
    parsed = [int(number) for number in re.findall(r"captions: (\d+) parsed", printed)]
    assert parsed == [105, 41]  # of 130 captions, and of the 44 texts of 26 records
    assert {its["photographs"] for its in results_of(out)} == {21}
    rows = [
        row for row in read_rows(out / "results.csv") if row["benchmark"] == "sugarcrepe" and row["name"] == "micro"
    ]
    assert [int(float(row["n"])) for row in rows] == [26]


def halves(request):
    """A graph of the parts before and after the first preposition; a useless answer without one."""
    found = re.fullmatch(r"(.+?) (on|in|with|of|at|near|by) (.+)", request.caption)
    return Sent(written([found[1], found[3]], [(found[2], 0, 1)]) if found else "I can't")


@pytest.mark.parametrize(
    ("architecture", "given", "told"),
    [("ViT-B-32", "openai", "FILE@openai"), ("ViT-B-14-DINOv2", "openai+{}", "FILE@openai+{}")],
)
def test_weights_that_cannot_be_fetched_are_given_in_a_way_that_is_taken(
    architecture, given, told, tmp_path, monkeypatch
):
    def nobody(*_, **__):
        raise OSError("no network")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    torch.save({"a": torch.zeros(1)}, file := tmp_path / "weights.pt")
    with pytest.raises(UserError, match=re.escape(f"as --pretrained {told.format(file)}") + "$") as error:
        check_pretrained(architecture, given.format(file))
    way = str(error.value).rpartition("--pretrained ")[2].replace("FILE", str(file))
    assert preparation_of(TowerConfig(architecture, way)) == preparation_of(
        TowerConfig(architecture, given.format(file))
    )
