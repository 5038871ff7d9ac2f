"""Kinds of files that the project writes and reads back. Any damage is noticed, or changes nothing."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from menagerie.envs.core.files import write_csv
from menagerie.envs.core.reading import read_json
from menagerie.envs.core.records import check_digest, write_record, write_records
from menagerie.envs.render.atlas import Atlas
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.frozen.benchmark import load_frozen
from menagerie.generators.parsers.graph_json import ParseCache
from menagerie.generators.sources.shard_index import FOLDER, index_of
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.pack import pack
from menagerie.generators.storage.split_file import read_split
from menagerie.models.checkpoint import load_checkpoint, save_checkpoint
from menagerie.models.judges.judge import AnswerStore
from menagerie.models.judges.questions import Answer
from menagerie.models.kept_states import keep_state
from menagerie.models.kept_states import load_kept_state as load_kept
from menagerie.models.recipe import Recipe
from menagerie.models.training.loop import build_optimizer
from menagerie.models.training.state import History, StateFile, load_state, save_state
from menagerie.studies.analysis.errors import read_predictions
from menagerie.studies.attention import store_of_run
from menagerie.studies.frame.cells import read_tuned
from menagerie.studies.frame.measure import Measure, read_measured, write_measured
from menagerie.studies.published.pack import add_run, read_rest
from menagerie.studies.published.restore import read_margins
from menagerie.studies.runs.evaluation import FILE, PREDICTIONS
from menagerie.studies.runs.folder import claim
from menagerie.studies.runs.results import CARRIED, read_carried, read_result, read_results, write_result
from menagerie.studies.runs.training_log import COLUMNS, read_training
from menagerie.studies.runs.training_log import FILE as LOG
from menagerie.studies.scoring.cards import COLUMNS as COLUMNS_OF_SCORES
from menagerie.studies.scoring.cards import CardModel, read_card, write_card
from menagerie.studies.scoring.cards import read_scores as read_card_scores
from tests.faults.file_kinds import FileKind
from tests.helpers.judge import ANEW
from tests.helpers.scorers import scorer
from tests.helpers.source_files import make_shards
from tests.helpers.splits import RECIPE, make_split

RESOLUTION = 16
ANSWERS = [Answer("Yes", (("Yes", -0.5), ("No", -1.25))), Answer(likelihood=-2.5), Answer(refused="HTTP 400: no")]
CAPTIONS = {f"a cat on {k} mats": SceneGraph(("cat", f"{k} mats"), (Edge("on", 0, 1),)) for k in range(4)}


def make_checkpoint(folder: Path) -> Path:
    save_checkpoint(folder, "clip", scorer("clip"))
    return folder


def make_card(folder: Path) -> Path:
    """Write a card with its scores."""
    rows = [("unseen_pairs", "swap", f"scene {k}", f"cat, {k % 6}", 1, f"0.{k} 0.5", 0) for k in range(12)]
    write_csv(folder / "scores.csv", COLUMNS_OF_SCORES, rows)
    model, program = CardModel("clip", "0", "small", "", 0), {"version": "0.1", "render_version": 1, "commit": ""}
    frozen, path = load_frozen("binding-2"), folder / "card.json"
    write_card(path, folder / "scores.csv", frozen, model, program, "2026-11-27")
    return path


def read_scores_of_card(path: Path) -> list[Any]:
    """Read the scores of a card, which has their digest."""
    check_digest(path, read_card(path.with_suffix(".json")).scores)
    return [(*item[:5], item.scores.tolist()) for item in read_card_scores(path)]


def read_checkpoint(path: Path) -> Any:
    model = load_checkpoint(path.parent, "clip")
    return model.towers_config, model.texts, model.config, model.state_dict()


def make_state(folder: Path) -> Path:
    model = scorer("clip")
    optimizer, history = build_optimizer(model, Recipe()), History(8)
    for step in range(3):
        optimizer.zero_grad()
        sum((parameter**2).sum() for parameter in model.parameters()).backward()
        optimizer.step()
        history.add(step, torch.tensor(0.5 / (step + 1)), 1e-3)
    history.read()
    save_state(StateFile(folder / "state.pt"), model, optimizer, 3, history)
    return folder / "state.pt"


def read_state(path: Path) -> Any:
    model = scorer("clip")
    optimizer, history = build_optimizer(model, Recipe()), History(8)
    fresh = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    if step := load_state(StateFile(path), model, optimizer, history):
        return step, model.state_dict(), optimizer.state_dict()["state"], history.table()
    assert all(torch.equal(tensor, fresh[name]) for name, tensor in model.state_dict().items())
    return ANEW


def cell_result(seed: int) -> dict[str, Any]:
    """A short result of a finished cell."""
    scores = {"accuracy": 0.5 + 0.01 * seed, "official": 0.5, "tie_rate": 0.0, "n": 6}
    return {
        **{"id": f"cell{seed}", "model": "clip", "seed": seed, "pairs": 0.2, "hard_negatives": 1.0},
        **{"settings": {"model": "clip", "data": {"kind": "binding"}}, "axes": ["pairs", "hard_negatives"]},
        **{"train_images": 40, "images_seen": 640, "parameters": 1000},
        **{"subsets": {"unseen_pairs": {"swap": scores, "image score": scores | {"tie_rate": None}}}},
        **{"seconds": 1.5, "provenance": {"commit": "abc", "cores": 2}},
    }


def make_cell(folder: Path) -> Path:
    """Write a finished cell with its tables."""
    rng = np.random.default_rng(0)
    lines = [
        f"unseen_pairs,swap,scene {k},cat dog,a cat and a dog {k},a dog and a cat {k},{a:.9g},{b:.9g},,"
        for k, (a, b) in enumerate(rng.normal(size=(6, 2)))
    ]
    (folder / FILE).write_text("\n".join([",".join(PREDICTIONS), *lines]) + "\n")
    steps = [f"{k},{1 / k:.9g},0.001,{'' if k % 2 else 0.5},123.4,0.25" for k in range(1, 6)]
    (folder / LOG).write_text("\n".join([",".join(COLUMNS), *steps]) + "\n")
    write_result(folder, cell_result(0), (FILE,), (LOG,))
    return folder


def make_cells(folder: Path) -> Path:
    write_records(folder / "cells.jsonl", [cell_result(seed) for seed in range(3)])
    return folder / "cells.jsonl"


@dataclass(frozen=True)
class Config:
    """Options of a run."""

    store: str = "store"
    split: Sequence[str] = ()
    steps: int = 100
    rate: float = 0.001


def make_config(folder: Path) -> Path:
    (folder / "cells").mkdir()
    claim(folder, Config(), frozenset())
    return folder / "config.json"


def read_claim(path: Path) -> Any:
    claim(path.parent, Config(), frozenset())
    return store_of_run(path.parent)


def record(name: str, content: dict[str, Any]) -> Callable[[Path], Path]:
    """Return what makes a record of that name."""

    def make(folder: Path) -> Path:
        write_record(folder / name, content, indent=1)
        return folder / name

    return make


WORDS_CARRIED = {"words": 12, "new_words": ["cat"], "positions": 20, "new_positions": 2, "from": "a"}
TUNED = read_json(Path(__file__).parents[2] / "studies" / "recipes" / "laptop.json")


def make_kept(folder: Path) -> Path:
    keep_state(folder / "cells/cell0", 3, "clip", scorer("clip"))
    return folder / "cells/cell0/states/3/config.json"


def read_kept(path: Path) -> Any:
    model = load_kept(path.parents[2], 3, "clip")
    return model.towers_config, model.texts, model.config, model.state_dict()


@dataclass(frozen=True)
class Norm(Measure):
    """A measure without rows."""

    def rows(self, scorer: Any, material: Any, seed: int) -> list[dict[str, Any]]:
        return []


def make_measured(folder: Path) -> Path:
    return write_measured(folder / "cells/cell0", Norm(), None, [{"norm": 0.25 * k, "part": "text"} for k in range(3)])


def read_norms(path: Path) -> Any:
    rows = read_measured(path.parents[1], Norm())
    return ANEW if rows is None else rows


def make_published(folder: Path) -> Path:
    """Publish a run whose tests could be made again; returns the folder of its records."""
    (cell := folder / "run/cells/cell0").mkdir(parents=True)
    make_cell(cell)
    settings = {"model": "clip", "data": {"kind": "binding", "split": {}}}
    write_result(cell, cell_result(0) | {"settings": settings, "provenance": ORIGIN}, (FILE,), (LOG,))
    write_records(folder / "run/cells.jsonl", [cell_result(0)])
    claim(folder / "run", Config(), frozenset())
    add_run(folder / "run", "run", folder / "records")
    return folder / "records"


def make_store(folder: Path, packed: bool = False) -> Path:
    path = make_split(folder, RECIPE, RESOLUTION)
    if packed:
        pack(path)
    return path


def make_atlas(folder: Path) -> Path:
    atlas = Atlas(folder / "atlas.bin")
    for number in range(4):
        atlas.append(("desert", number), np.full(200 + number, number, np.uint8))
    return atlas.path


def read_atlas(path: Path) -> Any:
    """Read the intact entries, and say whether another can be added."""
    atlas = Atlas(path)
    atlas.refresh()
    atlas.check(list(atlas.index))
    found = {key: atlas.views[0][place : place + 200].tolist() for key, place in atlas.checked.items()}
    atlas.append(("city", 0), np.zeros(200, np.uint8))
    return found | {("city", 0): ("city", 0) in atlas.checked}


def read_whole_split(path: Path) -> Any:
    """Read all records and pixels."""
    found, split = {}, read_split(path)
    for name in split.subsets:
        data = SplitDataset(split, name)
        rows = range(len(data))
        found[name] = (data.records.scenes, data.records.true, data.records.false, data.images(rows), data.masks(rows))
    return split.recipe, found


def parses(root: Path) -> ParseCache:
    return ParseCache(root, "rules", {"version": 1})


def make_parses(folder: Path) -> Path:
    cache = parses(folder)
    for caption, graph in CAPTIONS.items():
        cache.keep(caption, (graph, ""))
    cache.keep("of", (None, "no nodes"))
    return cache.path


def read_parses(path: Path) -> Any:
    cache = parses(path.parents[1])
    return {caption: cache.get(caption) for caption in (*CAPTIONS, "of") if cache.get(caption)}


def make_answers(folder: Path) -> Path:
    store = AnswerStore(folder, "model", {"model": "m"})
    for k, answer in enumerate(ANSWERS):
        store.keep(str(k), answer)
    return store.path


def read_answers(path: Path) -> Any:
    store = AnswerStore(path.parents[1], "model", {"model": "m"})
    return {k: store.get(str(k)) for k in range(len(ANSWERS)) if store.get(str(k))}


def make_index(folder: Path) -> Path:
    make_shards(folder)
    index_of(folder / "shards/00000.tar")
    return folder / "shards" / FOLDER / "00000.tar.json"


def read_shard_index(path: Path) -> Any:
    index = index_of(path.parents[1] / "00000.tar")
    return list(index.keys), list(index.texts), index.offsets, index.sizes, index.flickr, dict(index.refused)


def is_part(found: Any, intact: Any) -> bool:
    """Whether all entries found are those of the intact file; missing ones are made anew."""
    return all(found[key] == intact[key] for key in found)


ORIGIN = {"command": "python studies/a.py", "started": "2026", "commit": "abc", "processor": "p", "versions": {}}
KINDS: dict[str, tuple[Any, ...]] = {
    "checkpoint config": (lambda f: make_checkpoint(f) / "config.json", read_checkpoint),
    "checkpoint weights": (lambda f: make_checkpoint(f) / "model.safetensors", read_checkpoint),
    "training state": (make_state, read_state),
    "result of a cell": (lambda f: make_cell(f) / "result.json", lambda p: read_result(p.parent) or ANEW),
    "results of a study": (make_cells, lambda p: read_results(p.parent)),
    "predictions": (lambda f: make_cell(f) / FILE, lambda p: read_predictions(p.parent).to_csv()),
    "training log": (lambda f: make_cell(f) / LOG, lambda p: read_training(p.parent) or ANEW),
    "config of a run": (make_config, read_claim),
    "what was carried": (record(CARRIED, WORDS_CARRIED), lambda p: read_carried(p.parent)),
    "kept state": (make_kept, read_kept),
    "measured rows": (make_measured, read_norms),
    "published records": (
        lambda f: make_published(f) / "run.csv.xz",
        lambda p: read_margins(p, read_rest(p.with_name("run.json.xz"))["records"]).to_csv(),
    ),
    "published results": (lambda f: make_published(f) / "run.json.xz", read_rest),
    "tuned recipes": (record("best.json", TUNED), lambda p: read_tuned(str(p), ("clip", "oc-clip"))),
    "atlas": (make_atlas, read_atlas, is_part),
    "parsed captions": (make_parses, read_parses, is_part),
    "answers of judges": (make_answers, read_answers, is_part),
    "index of a tar shard": (make_index, read_shard_index),
    "split": (make_store, read_whole_split),
    "card": (make_card, read_card),
    "scores of a card": (lambda f: make_card(f).with_suffix(".csv"), read_scores_of_card),
    "packed split": (partial(make_store, packed=True), read_whole_split),
}
OURS = [FileKind(name, *entry) for name, entry in KINDS.items()]
