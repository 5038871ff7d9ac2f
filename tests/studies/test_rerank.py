"""Retrieval by a model that reads pairs: refused for too many pairs, or after a first pass of another model."""

import json

import pytest
import torch

from menagerie.models.checkpoint import build_scorer, save_checkpoint
from menagerie.models.evaluation import scoring
from menagerie.models.library.load import load_scorer
from menagerie.models.towers.config import TextSpace, TowerConfig
from menagerie.studies.transfer import Transfer
from tests.helpers.benchmark_files import IMAGES, MAKERS, captions_of
from tests.helpers.scorers import OPTIONS

TOP = 2
TOWERS = TowerConfig("nano", resolution=32, tokenizer="open_clip")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("rerank")
    MAKERS["retrieval-coco"](folder / "data")
    for seed, name in enumerate(("clip", "fusion")):
        torch.manual_seed(seed)
        model = build_scorer(name, TOWERS, TextSpace((), 77), OPTIONS[name])
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.05 * torch.randn(parameter.shape))
        save_checkpoint(folder / name, name, model)
    return folder


def piece(folder, model="fusion", **options):
    out, data = folder / "out", folder / "data"
    study = Transfer(models=(str(folder / model),), benchmarks=("retrieval-coco",), data_root=data, **options)
    (only,) = study.pieces()
    return only.job(out)


def run(one):
    one.run(lambda *progress: None, lambda: None)
    file = one.folder / "result.json"
    return json.loads(file.read_text()) if file.is_file() else None


def recalls(first, second, k):
    """The recall of rows with given own candidates, by a loop; of equal scores the first comes first."""
    (scores, own), right = second, 0
    for row, mine in enumerate(own):
        last = sorted(first[row])[-TOP]  # some captions are of several images: they tie
        best = [j for j in range(first.shape[1]) if first[row, j] >= last]
        rest = sorted(set(range(first.shape[1])) - set(best), key=lambda j, row=row: -first[row, j])
        order = sorted(best, key=lambda j, row=row: -scores[row, j]) + rest
        right += bool(set(order[:k]) & mine)
    return right / len(own)


def test_the_best_candidates_of_a_first_pass_are_ranked_again(folder, monkeypatch):
    kept = {"rerank_top": TOP}
    plain, behind = piece(folder, **kept), piece(folder, rerank=str(folder / "clip"), **kept)
    assert plain.id == behind.id, "as no pool has too many pairs"
    monkeypatch.setattr(scoring, "MOST_PAIRS", IMAGES * 2)
    assert run(plain) is None
    assert "--rerank MODEL" in plain.problem
    behind = piece(folder, rerank=str(folder / "clip"), **kept)
    assert behind.id != plain.id
    captions = [text for k in range(IMAGES) for text in captions_of(k)]
    passes = IMAGES * len(set(captions))
    monkeypatch.setattr(scoring, "MOST_PAIRS", passes - 1)
    result = run(behind)
    owners = [k for k in range(IMAGES) for _ in captions_of(k)]
    files = [folder / f"data/coco/val2014/COCO_val2014_{k:012d}.jpg" for k in range(IMAGES)]
    first, second = (load_scorer(folder / name).score(files, captions).numpy() for name in ("clip", "fusion"))
    of_images = [{j for j, own in enumerate(owners) if own == k} for k in range(IMAGES)]
    of_texts = [{own} for own in owners]
    for k in (1, 5):
        found = {name: result["headlines"][f"{name} R@{k}"]["official"] for name in ("I2T", "T2I")}
        assert found["I2T"] == pytest.approx(recalls(first, (second, of_images), k))
        assert found["T2I"] == pytest.approx(recalls(first.T, (second.T, of_texts), k))
    (record,) = result["reranked"].values()
    assert (record["top"], record["of"]) == (TOP, passes)
    assert TOP * IMAGES <= record["pairs"] < record["of"]
