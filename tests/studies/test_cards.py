"""Cards of frozen benchmarks, as a user makes and verifies them."""

import json
import re
import shutil
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_csv
from menagerie.envs.core.records import file_digest, read_record, seal
from menagerie.generators.benchmarks.benchmark import Item
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.templates import Caption
from menagerie.generators.frozen.benchmark import load_frozen
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe_file import FROZEN
from menagerie.generators.trained_on import RecipeScenes, Training
from menagerie.models.library.sources import HuggingFace
from menagerie.models.towers.config import TowerConfig
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.records import Records
from menagerie.studies.scoring.cards import (
    COLUMNS,
    card_numbers,
    portable_label,
    read_scores,
    record_results,
    score_row,
    verify_card,
    write_board,
    write_cards,
)
from menagerie.studies.scoring.models import Model, parse_models
from menagerie.studies.scoring.splits import split_piece
from menagerie.studies.split_study import PRESETS
from tests.command import ROOT, read_rows, run_here, succeed
from tests.helpers.chat_service import Sent
from tests.helpers.vision_service import GOES_ON, VisionService
from tests.studies.test_evaluate import MINE

EVALUATE = [sys.executable, str(ROOT / "studies" / "evaluate.py")]
CARDS = [sys.executable, "-m", "menagerie", "cards"]
MODEL = ["mine.py:Mine", "--architecture", "nano", "--threads", "1", "--out", "runs/cards"]
TEXTS = tuple(Caption(text, SceneGraph((text,))) for text in ("a cat", "a dog"))
RECIPE = BindingRecipe("tiny", pairs=0.5, test_pairs=0.2, views=1, test_views=1, test_scenes=12)


def write_entry(path, digests):
    """The file of a frozen benchmark of a recipe of the tests."""
    lines = [f"{name} = {json.dumps(value)}" for name, value in asdict(RECIPE).items()]
    parts = [f'{name} = "{value}"' for name, value in digests.items()]
    path.write_text("\n".join(["version = 3", "resolution = 32", "[recipe]", 'kind = "binding"', *lines]))
    path.write_text("\n".join([path.read_text(), "[digests]", *parts]))
    load_frozen.cache_clear()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a card of an untrained model on a small benchmark, which is added to those of the program."""
    folder = tmp_path_factory.mktemp("cards")
    (folder / "mine.py").write_text(MINE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FROZEN, "small-3", folder / "small-3.toml")
        write_entry(folder / "small-3.toml", {})
        first = run_here([*EVALUATE, *MODEL, "--splits", "small-3"], folder, page=False)
        assert first.returncode == 2
        assert "small-3 has no digests yet" in first.stderr
        found = dict(re.findall(r'(\w+) = "(\w+)"', first.stderr))
        write_entry(folder / "small-3.toml", found)
        succeed([*EVALUATE, *MODEL, "--splits", "small-3"], folder, page=False)
        yield folder
    load_frozen.cache_clear()


@pytest.fixture
def card(folder, tmp_path):
    """A copy of the card with its scores."""
    (path,) = (folder / "runs" / "cards" / "cards").glob("*.json")
    for file in path.parent.glob(f"{path.stem}.*"):
        shutil.copy(file, tmp_path)
    return tmp_path / path.name


def resealed(path, change):
    """Change a card and seal it anew, as a forger would."""
    content = read_record(path)
    change(content)
    path.write_text(seal(content, indent=1) + "\n")


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("/home/me/runs/mine: clip (pairs 0.2)", "mine: clip (pairs 0.2)"),
        ("runs/mine: oc-clip", "runs/mine: oc-clip"),
        ("hf:/data/models/clip", "hf:clip"),
        ("ViT-B-32//data/weights.pt", "ViT-B-32/weights.pt"),
        ("ViT-B-16/openai", "ViT-B-16/openai"),
        ("/home/me/mine.py:Mine", "mine.py:Mine"),
    ],
)
def test_cards_name_no_folder_of_the_machine(label, name):
    assert portable_label(Model(label, HuggingFace(label, ""))) == name


def test_a_card_has_the_numbers_of_the_results(folder, card):
    rows = read_rows(folder / "runs" / "cards" / "results.csv")
    expected = {(r["subset"], r["task"]): r for r in rows if int(r["n"])}
    content = read_record(card)
    found = {(number["test"], number["task"]): number for number in content["tests"]}
    assert found.keys() == expected.keys()
    for key, row in expected.items():
        assert found[key]["accuracy"] == pytest.approx(float(row["accuracy"]), abs=1e-5)
        assert found[key]["records"] == int(row["n"])
    assert {n["chance"] for n in content["tests"] if n["task"] == "swap"} == {0.5}
    swaps = [number["accuracy"] for number in content["tests"] if number["task"] == "swap"]
    assert content["means"][0]["accuracy"] == pytest.approx(np.mean(swaps), abs=1e-5)
    assert content["benchmark"]["digest"] == load_frozen("small-3").digest
    assert content["scores"] == file_digest(card.with_suffix(".csv"))


def test_a_card_is_verified_with_its_scores_alone(card):
    done = run_here([*CARDS, "verify", str(card)], card.parent)
    assert (done.returncode, done.stderr) == (0, "")
    assert "mine.py:Mine on small-3 verified" in done.stdout
    card.with_suffix(".csv").unlink()
    with pytest.raises(UserError, match="without its scores"):
        verify_card(card)


def test_a_study_of_a_frozen_recipe_trains_on_that_recipe():
    """Of which training had nothing that the tests call unseen (tests/generators/test_trained_on.py)."""
    bench = load_frozen("binding-2").recipe
    study = replace(PRESETS["laptop"].with_recipe(bench), models=("clip",), seeds=1)
    (cell,) = (arm.cell for arm in study.plan(Records((), Path())))
    assert cell.data.recipe == bench


@pytest.fixture
def leaky(folder, tmp_path, monkeypatch):
    """A card of a model whose training had the hard negatives of all training pairs."""
    monkeypatch.chdir(folder)
    training = Training((RecipeScenes(replace(RECIPE, hard_negatives=1.0)),))
    monkeypatch.setattr("menagerie.studies.scoring.models.find_training", lambda source: training)
    (file,) = folder.glob("store/*/frozen-small-3.h5")
    (model,) = parse_models(["mine.py:Mine"], [], TowerConfig("nano", "", 32))
    piece = split_piece(model, "small-3", file, frozen=True).job(tmp_path)
    piece.run(lambda done, text: None, lambda: None)
    assert not piece.problem
    (path,) = write_cards(Records((Arm(piece, {"split": "small-3"}),), tmp_path))
    return path, piece


def test_a_card_leaves_out_what_training_had_and_says_so(leaky, tmp_path):
    path, piece = leaky
    card = verify_card(path)
    lost = piece.covered["seen_pairs"].records
    assert {number.test for number in card.tests} == {"unseen_pairs", "different_bag"}
    assert card.model.left_out["seen_pairs"] == lost > 0
    assert card.means[0].records == sum(its.records for its in card.tests if its.task == "swap")
    assert f"{lost} of {lost} records left out" in path.read_text()
    write_board([path], tmp_path / "board.md")
    assert f"| mine.py:Mine, without {lost} records for what its training had |" in (tmp_path / "board.md").read_text()
    kept = read_scores(path.with_suffix(".csv"))
    assert sum(item.had for item in kept if item.task == "swap") == lost, "their scores stand in the file all the same"
    resealed(path, lambda content: content["model"]["left_out"].update(seen_pairs=1))
    with pytest.raises(UserError, match="records that training had differ"):
        verify_card(path)


def test_a_changed_card_is_refused(card):
    text = card.read_text()
    (digit, *_) = re.findall(r'"accuracy": 0\.(\d)', text)
    card.write_text(text.replace(f'"accuracy": 0.{digit}', f'"accuracy": 0.{(int(digit) + 1) % 10}', 1))
    done = run_here([*CARDS, "verify", str(card)], card.parent)
    assert done.returncode == 1
    assert f"refused: {card} was changed since it was written" in done.stderr


def other_benchmark():
    return {"name": "binding-2", "version": 2, "resolution": 64, "digest": load_frozen("binding-2").digest}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c: c["benchmark"].update(digest="0" * 12), "is of another small-3: "),
        (lambda c: c["benchmark"].update(other_benchmark()), "has scores of other records than binding-2"),
        (lambda c: c["tests"][0].update(accuracy=0.125), "accuracy=0.125,"),
        (lambda c: c["means"][0].update(high=0.99), "high=0.99,"),
        (lambda c: c.update(scores="1-0"), "was changed since it was written"),
        (lambda c: c["means"].pop(), "but its scores give"),
    ],
)
def test_a_forged_card_is_refused(card, change, says):
    resealed(card, change)
    with pytest.raises(UserError, match=re.escape(says)):
        verify_card(card)


def test_the_leaderboard_refuses_a_changed_card(card, tmp_path):
    write_board([card], tmp_path / "board.md")
    board = (tmp_path / "board.md").read_text()
    swaps = read_record(card)["means"][0]
    (row,) = (line for line in board.splitlines() if line.startswith("| mine.py:Mine |"))
    assert f"| {100 * swaps['accuracy']:.1f} |" in row
    assert f"[card]({card.name})" in row
    card.write_text(card.read_text().replace("mine.py:Mine", "best.py:Best"))
    done = run_here([*CARDS, "board", str(card), "--out", "second.md"], tmp_path)
    assert done.returncode == 2
    assert "was changed since it was written" in done.stderr
    assert not (tmp_path / "second.md").exists()


@pytest.fixture(scope="module")
def judged(folder):
    """The folder of the cards of a judge that is asked for yes and for choices, and refuses two of three captions."""

    def prudish(request):
        grey = request.caption.startswith("Is this grey?")
        return GOES_ON if grey or sum(request.caption.encode()) % 3 == 0 else Sent(status=400, body=b"policy")

    with VisionService(lambda image, text: 1.0, fault=prudish) as service:
        command = [*EVALUATE, f"chat:{service.url}#fake", "--judge.forms", "yes", "choice", "--splits", "small-3"]
        done = run_here([*command, "--out", "runs/judged"], folder, page=False)
    assert done.returncode == 0, done.stderr
    return folder / "runs/judged"


def test_cards_and_the_leaderboard_say_how_many_items_have_no_verdict(judged, tmp_path):
    cards = sorted((judged / "cards").glob("*.json"))
    write_board(cards, tmp_path / "board.md")
    results = [json.loads(path.read_text()) for path in judged.glob("cells/*/result.json")]
    assert len(results) == len(cards) == 2
    for result in results:
        counts = result["judged"]
        said = f"{counts['undecided']} of {counts['items']} items without a verdict"
        assert counts["undecided"] > 0.05 * counts["items"]
        name = f"fake ({result['model'].rpartition(' (')[2]}"
        assert f"| {name}, {said} |" in (tmp_path / "board.md").read_text()


def test_a_benchmark_that_was_scored_as_a_file_gets_a_card_by_its_name(folder):
    (file,) = folder.glob("store/*/frozen-small-3.h5")
    model = [*MODEL[:-1], "runs/twice"]
    for splits, cards in (([str(file)], 0), (["small-3"], 1), ([str(file), "small-3"], 1)):
        succeed([*EVALUATE, *model, "--splits", *splits], folder, page=False)
        assert len([*(folder / "runs/twice").glob("cards/*.json")]) == cards


def test_a_damaged_benchmark_is_refused_with_what_differs(folder):
    text = (folder / "small-3.toml").read_text()
    try:
        (folder / "small-3.toml").write_text(re.sub('texts = "..', 'texts = "zz', text))
        load_frozen.cache_clear()
        done = run_here([*EVALUATE, *MODEL, "--splits", "small-3"], folder, page=False)
    finally:
        (folder / "small-3.toml").write_text(text)
        load_frozen.cache_clear()
    assert done.returncode == 2
    assert "small-3: its texts here differ from the benchmark's (texts " in done.stderr


def test_numbers_count_ties_by_what_a_guess_would_get(tmp_path):
    """Pairs a to f: five with one right answer of two, and one with a tie of three texts."""
    rows = [("test", "swap", "scene", pair, 1, "2 1" if pair < "d" else "1 2") for pair in "abcde"]
    rows += [("test", "assignment", "scene", "f", 1, "1 1 1 0"), ("test", "paraphrase", "scene", "f", 2, "2 2 1")]
    rows += [("test", "four-way", "scene", "f", 1, "1 0; 0 1")]
    write_csv(tmp_path / "scores.csv", COLUMNS[:-1], rows)  # as before there was the last column
    (swaps, every), tests = card_numbers(record_results(read_scores(tmp_path / "scores.csv")))
    by_task = {number.task: number for number in tests}
    assert by_task["swap"].accuracy == 0.6
    assert by_task["swap"].low < 0.6 < by_task["swap"].high
    assert (by_task["assignment"].accuracy, by_task["assignment"].chance) == (0.33333, 0.25)
    assert (by_task["paraphrase"].accuracy, by_task["paraphrase"].chance) == (1.0, 0.33333)
    assert by_task["group score"].chance == pytest.approx(1 / 6, abs=1e-5)
    assert by_task["assignment"].low is None
    assert swaps.accuracy == 0.6
    assert every.accuracy == pytest.approx((0.6 + 1 / 3 + 1) / 3, abs=1e-5)


def test_images_without_a_verdict_count_as_guesses(tmp_path):
    """They stand in the file as such, so that four-way items of equal scores stay wrong."""
    silent, level = np.full((2, 2), np.nan), np.zeros((2, 2))
    rows = [
        score_row("test", Item(f"scene {k}", task, (0, 1), TEXTS, "a"), scores)
        for k, (task, scores) in enumerate(
            [
                ("four-way", silent),
                ("four-way", level),
                ("four-way", np.array([[1.0, 0.0], [np.nan, np.nan]])),
                ("swap", silent[:1]),
            ]
        )
    ]
    write_csv(tmp_path / "scores.csv", COLUMNS, rows)
    points = record_results(read_scores(tmp_path / "scores.csv"))
    found = list(zip(points.task, points.value.round(4), strict=True))
    assert found[:6] == [
        *(("text score", 0.25), ("image score", 0.25), ("group score", 0.1667)),
        *(("text score", 0), ("image score", 0), ("group score", 0)),
    ]
    assert found[6] == ("text score", 0.5)
    assert found[9:] == [("swap", 0.5)]
