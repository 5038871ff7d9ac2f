"""The parts of a page: what they draw are the estimates of written predictions, and gaps are said."""

import csv
import json
import re
import shutil
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.records import write_record
from menagerie.models.cell_results import RESULT
from menagerie.studies.analysis.tables import DASH, FLAG, WAITING
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.draw import LISTED, mark_up, write_page_part
from menagerie.studies.frame.figures import draw_bars, draw_front, draw_heat_map, draw_lines
from menagerie.studies.frame.layout import Sheet
from menagerie.studies.frame.page import answer_first, check_page_parts, write_report
from menagerie.studies.frame.parts import (
    Bars,
    Front,
    Heading,
    HeatMap,
    Lines,
    Paragraph,
    Rows,
    Sentence,
    Table,
)
from menagerie.studies.frame.records import Records, StoredCell
from menagerie.studies.frame.study import SplitStudy
from menagerie.studies.runs.cell import DIVERGED
from menagerie.studies.runs.evaluation import FILE, PREDICTIONS

MODELS, PAIRS, SEEDS = ("clip", "oc-clip", "negclip"), (0.2, 0.8), (0, 1, 2)
TESTS = ("seen_pairs", "unseen_pairs", "train_pairs")
SKILL = {"clip": 0.4, "oc-clip": 0.9, "negclip": 0.6}
ANIMALS = [f"pair {k}" for k in range(6)]


def write_run(folder, model, pairs, seed):
    """A finished run: `train_pairs` has no scenes where few pairs are in training, and clip likes one caption."""
    folder.mkdir(parents=True)
    rng, subsets = np.random.default_rng([seed, MODELS.index(model), int(10 * pairs)]), {}
    with (folder / FILE).open("w", newline="") as file:
        rows = csv.DictWriter(file, PREDICTIONS, lineterminator="\n", restval="")
        rows.writeheader()
        for subset in TESTS:
            subsets[subset] = {"swap": {"accuracy": None, "tie_rate": None, "n": 0}}
            if subset == "train_pairs" and pairs < 0.5:
                continue
            for task in ("swap", "one animal"):
                right = rng.random(24) < SKILL[model]
                for k, its in enumerate(right):
                    texts = {"scene": f"scene {seed} {k}", "caption": "a", "negative": "b", "animals": ANIMALS[k % 6]}
                    scores = {"score_caption": int(its), "score_negative": int(not its)}
                    rows.writerow({"subset": subset, "task": task, **texts, **scores})
                subsets[subset][task] = {"accuracy": float(right.mean()), "tie_rate": 0.0, "n": len(right)}
            subsets[subset]["text score"] = {"accuracy": 0.01 if model == "clip" else 0.4, "tie_rate": None, "n": 24}
    write_record(
        folder / RESULT, {"id": folder.name, "model": model, "seed": seed, "subsets": subsets, "images_seen": 9}
    )


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """Three models at two places with three seeds; negclip at 0.8 isn't finished."""
    out, arms = tmp_path_factory.mktemp("study"), []
    for seed in SEEDS:
        for pairs in PAIRS:
            for model in MODELS:
                name = f"{model}-{pairs}-{seed}"
                labels = {"pairs": pairs, "kind": "plain", "cost": 100 * (1 + MODELS.index(model)) + 1000 * pairs}
                arms.append(Arm(StoredCell(name, model, seed, TESTS), labels))
                if (model, pairs) != ("negclip", 0.8):
                    write_run(out / "cells" / name, model, pairs, seed)
    return Records(tuple(arms), out)


@pytest.fixture
def swaps(records):
    return records.where(task="swap")


ROWS = ("model", "pairs", "kind")


def rows_of(part):
    """The texts of a table on a page: by the first two cells of a row."""
    return {tuple(row[:2]): list(row[2:]) for row in Sheet(part).frame.itertuples(index=False, name=None)}


def test_a_table_has_the_estimates_and_marks_what_is_missing(swaps, tmp_path):
    part = Table("summary", swaps, ROWS, says="All of it.")
    shown, frame = write_page_part(part, tmp_path), Sheet(part).frame
    found = swaps.estimates(("model", "pairs", "subset"))
    assert frame.columns.tolist() == ["model", "pairs", "seen pairs", "unseen pairs", "train pairs"]
    rows = rows_of(part)
    for (model, pairs), texts in rows.items():
        share = float(pairs.rstrip("%")) / 100
        for subset, text in zip(TESTS, texts, strict=True):
            its = found.get((model, share, subset))
            if its is None:
                assert text == (WAITING if (model, pairs) == ("negclip", "80%") else DASH)
            else:
                assert text.removesuffix(FLAG) == f"{100 * its.value:.1f} ± {100 * its.deviation:.1f}"
                assert text.endswith(FLAG) == (model == "clip")
    assert DASH in rows["clip", "20%"]
    assert frame["model"].tolist() == ["oc-clip", "negclip", "clip"] * 2, "the best first, at each place"
    assert shown["says"] == "All of it. In all rows: kind plain."
    assert "same caption" in shown["flags"]
    assert shown["numbers"] == "seen pairs 72 (6), unseen pairs 72 (6), train pairs 72 (6)"
    assert len(re.findall(r"#T_\w+_row", shown["html"])) == 7, "accuracies that no flag disqualifies"
    table = pd.read_csv(tmp_path / "summary.csv")
    values = {tuple(row[:4]): row[4:7] for row in table.itertuples(index=False, name=None)}
    known = swaps.estimates((*ROWS, "subset"))
    assert values.keys() == known.keys()
    assert all(values[key] == pytest.approx((its.value, its.low, its.high), nan_ok=True) for key, its in known.items())


def test_a_table_of_differences_leaves_the_first_model_out(swaps):
    rows = rows_of(Table("differences", swaps, ("model", "pairs"), against={"model": "clip"}))
    found = swaps.estimates(("model", "pairs", "subset"), {"model": "clip"})
    assert {name for name, _ in rows} == {"oc-clip − clip", "negclip − clip"}
    assert rows["oc-clip − clip", "80%"] == [str(found["oc-clip", 0.8, test]) for test in TESTS]
    assert rows["negclip − clip", "80%"] == [WAITING] * 3
    assert rows["oc-clip − clip", "20%"][2] == DASH


def test_tasks_have_their_own_chance_and_empty_columns_are_left_out(records, tmp_path):
    sheet = Sheet(Table("tasks", records.where(subset="train_pairs", pairs=0.8), ("model",), ("task",)))
    assert sheet.frame.columns.tolist() == ["model", "swap", "one animal", "text score"]
    assert sheet.chances == {"text score": 25.0}
    empty = Sheet(Table("empty", records.where(pairs=0.2, task="swap"), ("model",)))
    assert empty.notes == "Without records: train pairs."
    assert list(empty.frame.columns) == ["model", "seen pairs", "unseen pairs"]
    started = Records(records.arms, tmp_path)
    assert list(Sheet(Table("empty", started, ("model",))).frame.columns) == ["model"], "a plan without results"


def test_a_heat_map_has_its_numbers_in_the_squares(swaps, tmp_path):
    part = HeatMap("accuracy", swaps, x="kind", y="pairs", says="All.")
    drawn = draw_heat_map(part)
    found = swaps.estimates(("subset", "model", "pairs", "kind"))
    assert drawn.numbers.found == found
    frame = drawn.chart.data
    texts = frame["text"].tolist()
    assert sorted(text for text in texts if text not in (DASH, WAITING)) == sorted(
        f"{100 * its.value:.1f}\n±{100 * its.deviation:.1f}" for its in found.values()
    )
    assert (texts.count(DASH), texts.count(WAITING)) == (3, 3)
    assert frame["right"].unique().tolist() == list(MODELS)
    shown = write_page_part(part, tmp_path)
    assert json.loads(shown["specification"])["$schema"]
    files = {file.name for file in (tmp_path / "figures").iterdir()}
    assert files == {f"accuracy.{kind}" for kind in ("png", "svg", "csv")}
    table = pd.read_csv(tmp_path / "figures" / "accuracy.csv")
    values = {key: its.value for key, its in found.items()}
    assert {tuple(row[:4]): row[4] for row in table.itertuples(index=False)} == pytest.approx(values)


def test_lines_stand_at_their_values_or_at_what_was_measured(swaps):
    unseen = swaps.where(subset="unseen_pairs")
    part = Lines("curve", unseen, x="pairs", level=0.75, beside=unseen.where(model="clip", pairs=0.2))
    frame, found = draw_lines(part).chart.data, unseen.estimates(("model", "pairs"))
    curve = frame[(frame["colour"] == "oc-clip") & (frame["kind"] == "estimate")]
    expected = [[pairs, *(100 * np.array(found["oc-clip", pairs][:3]))] for pairs in PAIRS]
    assert np.allclose(curve[["x", "value", "low", "high"]], expected)
    assert frame[frame["kind"] == "beside"]["value"].tolist() == pytest.approx([100 * found["clip", 0.2].value])
    assert frame["chance"].unique().tolist() == [50]
    assert {75, "min"} <= {value for value in numbers_in(draw_lines(part).chart.to_dict())}
    measured = draw_lines(Lines("curve", unseen, x="pairs", at="cost", log=True)).chart.data
    assert {*measured["x"]} == {300, 400, 500, 900, 1000}


def numbers_in(specification):
    """All values in a specification, at any depth, without its data."""
    if isinstance(specification, dict):
        return {v for name, part in specification.items() if name != "datasets" for v in numbers_in(part)}
    if isinstance(specification, list):
        return {value for part in specification for value in numbers_in(part)}
    return {specification}


def test_bars_are_pale_where_one_caption_is_liked_whatever_the_image(swaps, tmp_path):
    unseen = swaps.where(subset="unseen_pairs", pairs=0.2)
    drawn, found = draw_bars(Bars("models", unseen)), unseen.estimates(("subset", "model"))
    frame = drawn.chart.data
    assert frame["row"].tolist() == ["oc-clip", "negclip", "clip"]
    expected = [100 * found["unseen_pairs", model].value for model in ("oc-clip", "negclip", "clip")]
    assert frame["value"].tolist() == pytest.approx(expected)
    assert frame["liked"].tolist() == [False, False, True]
    assert "pale bar" in drawn.note
    assert "pale bar" in write_page_part(Bars("models", unseen), tmp_path)["says"]
    waiting = draw_bars(Bars("models", swaps.where(subset="unseen_pairs"), ("model", "pairs"))).chart.data
    assert waiting["text"].tolist().count(WAITING) == 1


def test_dots_have_their_seeds_and_differences_stand_around_nought(swaps):
    unseen = swaps.where(subset="unseen_pairs", pairs=0.2)
    frame = draw_bars(Bars("dots", unseen, dots=True, beside=unseen.where(model="clip"))).chart.data
    assert sorted(frame[frame["kind"] == "seed"]["value"]) == pytest.approx(sorted(100 * unseen.scores.accuracy))
    assert (frame["kind"] == "beside").sum() == 1
    both = swaps.where(pairs=0.2)
    frame = draw_bars(Bars("pooled", both, rows=("model",), panels=(), dots=True)).chart.data
    of_seeds = (
        both.scores.dropna(subset="accuracy")
        .groupby(["model", "seed"])
        .apply(lambda its: np.average(its["accuracy"], weights=its["n"]))
    )
    own = sorted(frame[frame["kind"] == "seed"]["value"])
    assert own == pytest.approx(sorted(100 * of_seeds)), "a dot of each seed, over all tests"
    frame = draw_bars(Bars("gain", unseen, against={"model": "clip"})).chart.data
    found = unseen.estimates(("subset", "model"), {"model": "clip"})
    expected = [[100 * its.value, 100 * its.low, 100 * its.high] for _, its in found.items()]
    assert np.allclose(sorted(frame[["value", "from", "to"]].to_numpy().tolist()), sorted(expected))
    assert frame["row"].tolist() == ["oc-clip", "negclip"]


def test_a_front_goes_through_what_no_other_beats_and_is_judged_elsewhere(records):
    validation, test = (records.where(subset=name, task="swap") for name in ("seen_pairs", "unseen_pairs"))
    frame = draw_front(Front("front", validation, x="cost", points=("pairs",), judged=test)).chart.data
    clip = {0.2: 300.0, 0.8: 900.0}
    found = {cost: validation.estimates(("model", "pairs"))["clip", pairs].value for pairs, cost in clip.items()}
    kept = [cost for cost in found if cost == 300 or found[cost] > found[300]]
    best = frame[(frame["colour"] == "clip") & frame["best"]]
    assert best["x"].tolist() == kept
    on_test = test.estimates(("model", "pairs"))
    judged = [100 * on_test["clip", pairs].value for pairs, cost in clip.items() if cost in kept]
    assert best["judged"].tolist() == pytest.approx(judged)


def test_a_page_begins_with_its_sentences_and_one_figure(swaps):
    first, second, late = (HeatMap(name, swaps, x="kind", y="pairs") for name in "abc")
    table, said = Table("t", swaps, ("model",)), Sentence("It binds.")
    parts = [table, said, first, Paragraph("So."), second, Heading("More"), late, Sentence("And.")]
    answer, rest = answer_first(parts)
    assert answer == [said, first]
    assert rest == [part for part in parts if part not in answer]
    assert answer_first([Heading("More"), late]) == ([], [Heading("More"), late])
    assert mark_up("a < b: `x<y>`") == "a &lt; b: <code>x&lt;y&gt;</code>"


@dataclass(frozen=True)
class Binding(SplitStudy):
    """Which models bind

    Nothing else.
    """

    def plan(self, known):
        return ()

    def page(self, records):
        swaps = records.where(task="swap")
        yield Table("summary", swaps, ROWS, says="Said `here`.")
        yield HeatMap("accuracy", swaps, x="kind", y="pairs", says="All.")
        yield Sentence("One of them binds.")


def test_a_page_names_its_parts_failures_and_words_in_order(records, tmp_path):
    out = tmp_path / "study"
    shutil.copytree(records.out, out)
    gone = Arm(StoredCell("gone", "clip", 3, TESTS), {"pairs": 0.2, "kind": "plain", "cost": 1})
    (out / "cells" / "gone").mkdir()
    (out / "cells" / "gone" / DIVERGED).write_text("its loss at step 7 is nan")
    text = write_report(Binding(), Records((*records.arms, gone), out)).read_text()
    order = [
        "<h1>Which models bind<",
        "One of them binds.",
        "<figcaption>All.<",
        "15 of 19 runs",
        "Said <code>here</code>.",
    ]
    assert [text.index(its) for its in order] == sorted(text.index(its) for its in order)
    for said in ("its loss at step 7 is nan", "seed 3", "OC-CLIP", "unseen pairs", "text score"):
        assert said in text
    assert "Said here." in (out / "results.tex").read_text()


@dataclass(frozen=True)
class Fewer(Binding):
    """Which models bind"""

    def page(self, records):
        yield Table("summary", records.where(task="swap"), ROWS)


def test_a_page_leaves_no_files_of_parts_that_it_no_longer_has(records, tmp_path):
    def pages():
        return {file.relative_to(out).as_posix() for file in out.rglob("*") if "cells" not in file.parts}

    out = tmp_path / "study"
    shutil.copytree(records.out, out)
    write_report(Binding(), Records(records.arms, out))
    whole = pages()
    own = [out / "mine.csv", out / "figures/mine.png", tmp_path / "beside.csv"]
    for file in own:
        file.write_text("a reader's own")
    with (out / LISTED).open("a") as file:
        file.write("../beside.csv\ncells\n")
    write_report(Fewer(), Records(records.arms, out))
    assert whole - pages() == {f"figures/accuracy.{kind}" for kind in ("png", "svg", "csv")}
    assert all(file.exists() for file in own)
    write_report(Binding(), Records(records.arms, out))
    assert whole <= pages()


@pytest.mark.parametrize("name", ["a", "results", "../x", ""])
def test_parts_that_would_overwrite_files_are_refused(swaps, name):
    with pytest.raises(UserError, match="a name of its own"):
        check_page_parts([Table("a", swaps, ("model",)), Rows(name, (), ())])
