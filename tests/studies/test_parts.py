"""The parts of a page: what they draw are the estimates of written predictions, and gaps are said."""

import csv
import io
import math
import shutil
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.records import write_record
from menagerie.models.cell_results import RESULT
from menagerie.studies.analysis.tables import DASH, FLAG, WAITING, separate_numbers
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.bars import draw_bars, draw_heat_map
from menagerie.studies.frame.draw import LISTED, mark_up, write_page_part
from menagerie.studies.frame.figures import draw_lines, draw_scatter
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
    Scatter,
    Sentence,
    Table,
)
from menagerie.studies.frame.records import Records, StoredCell
from menagerie.studies.frame.study import SplitStudy
from menagerie.studies.report.figures import line_style
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


def rows_of(shown):
    """The rows of a table on a page: by their first two cells."""
    return {tuple(row[:2]): row[2:] for row in shown["rows"][1:]}


def test_a_table_has_the_estimates_and_marks_what_is_missing(swaps, tmp_path):
    shown = write_page_part(Table("summary", swaps, ROWS, says="All of it."), tmp_path)
    found = swaps.estimates(("model", "pairs", "subset"))
    assert shown["rows"][0] == ["model", "pairs", "seen pairs", "unseen pairs", "train pairs"]
    rows = rows_of(shown)
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
    assert [row[0] for row in shown["rows"][1:]] == ["oc-clip", "negclip", "clip"] * 2, "the best first, at each place"
    assert shown["says"] == "All of it. In all rows: kind plain."
    assert "same caption" in shown["flags"]
    assert shown["numbers"] == "seen pairs 24 (6), unseen pairs 24 (6), train pairs 24 (6)"
    assert shown["shaded"] == 2
    table = pd.read_csv(tmp_path / "summary.csv")
    assert table.columns[:5].tolist() == ["model", "pairs", "seen pairs", "seen pairs deviation", "seen pairs note"]
    assert table["seen pairs"].tolist() == [number_in(row[2]) for row in shown["rows"][1:]]
    assert table["unseen pairs"].dtype == table["unseen pairs deviation"].dtype == float
    assert {*table.loc[table["model"] == "clip", "seen pairs note"]} == {"same caption"}
    assert "All of it." in (tmp_path / "summary.tex").read_text()


def number_in(text):
    return pytest.approx(float(text.split()[0].rstrip(",")) if text not in (DASH, WAITING) else math.nan, nan_ok=True)


def test_numbers_in_texts_are_apart_in_csv():
    texts = pd.DataFrame(
        [
            ["captions", "25%", "27.0 [only 4 pairs: no interval]", "3 of 4", "+3.2 [-1.0, +7.5]"],
            ["objects", "50%", "40.0 [30.1, 50.2]", DASH, "undecided"],
        ],
        columns=["supervision", "coverage", "seen", "parts", "gain"],
    )
    found = pd.read_csv(io.StringIO(separate_numbers(texts).to_csv(index=False)))
    assert found[["supervision", "coverage", "parts"]].equals(texts[["supervision", "coverage", "parts"]])
    assert found[["seen", "seen low", "seen high"]].to_numpy() == pytest.approx(
        np.array([[27.0, np.nan, np.nan], [40.0, 30.1, 50.2]]), nan_ok=True
    )
    assert found["seen note"].fillna("").tolist() == ["only 4 pairs: no interval", ""]
    assert found[["gain", "gain low", "gain high"]].iloc[0].tolist() == [3.2, -1.0, 7.5]
    assert found["gain note"].fillna("").tolist() == ["", "undecided"]


def test_a_table_of_differences_leaves_the_first_model_out(swaps, tmp_path):
    part = Table("differences", swaps, ("model", "pairs"), against={"model": "clip"})
    found, rows = (
        swaps.estimates(("model", "pairs", "subset"), {"model": "clip"}),
        rows_of(write_page_part(part, tmp_path)),
    )
    assert {name for name, _ in rows} == {"oc-clip − clip", "negclip − clip"}
    assert rows["oc-clip − clip", "80%"] == [str(found["oc-clip", 0.8, test]) for test in TESTS]
    assert rows["negclip − clip", "80%"] == [WAITING] * 3
    assert rows["oc-clip − clip", "20%"][2] == DASH


def test_tasks_have_their_own_chance_and_empty_columns_are_left_out(records, tmp_path):
    part = Table("tasks", records.where(subset="train_pairs", pairs=0.8), ("model",), ("task",))
    shown = write_page_part(part, tmp_path)
    assert shown["rows"][0] == ["model", "swap", "one animal", "text score"]
    assert shown["chances"] == {"text score": 25.0}
    empty = Sheet(Table("empty", records.where(pairs=0.2, task="swap"), ("model",)))
    assert empty.empty == "train pairs"
    assert list(empty.frame.columns) == ["model", "seen pairs", "unseen pairs"]
    started = Records(records.arms, tmp_path)
    assert list(Sheet(Table("empty", started, ("model",))).frame.columns) == ["model"], "a plan without results"


def texts_of(figure):
    return [text.get_text() for axis in figure.axes for text in axis.texts]


def test_a_heat_map_has_its_numbers_in_the_squares(swaps, tmp_path):
    part = HeatMap("accuracy", swaps, x="kind", y="pairs", says="All.")
    drawn = draw_heat_map(part)
    found = swaps.estimates(("subset", "model", "pairs", "kind"))
    assert drawn.found == found
    texts = texts_of(drawn.figure)
    assert sorted(text for text in texts if text not in (DASH, WAITING)) == sorted(
        f"{100 * its.value:.1f}\n±{100 * its.deviation:.1f}" for its in found.values()
    )
    assert (texts.count(DASH), texts.count(WAITING)) == (3, 3)
    titles = [axis.get_title() for axis in drawn.figure.axes if axis.get_title()]
    assert titles == list(MODELS)
    assert write_page_part(part, tmp_path)["kind"] == "figure"
    files = {file.name for file in (tmp_path / "figures").iterdir()}
    assert files == {f"accuracy.{kind}" for kind in ("png", "svg", "csv")}
    table = pd.read_csv(tmp_path / "figures" / "accuracy.csv")
    values = {key: its.value for key, its in found.items()}
    assert {tuple(row[:4]): row[4] for row in table.itertuples(index=False)} == pytest.approx(values)


def test_lines_stand_at_their_values_or_at_what_was_measured(swaps):
    unseen = swaps.where(subset="unseen_pairs")
    drawn = draw_lines(Lines("curve", unseen, x="pairs", level=0.75, beside=unseen.where(model="clip", pairs=0.2)))
    (axis,) = drawn.figure.axes
    found = unseen.estimates(("model", "pairs"))
    curve = next(line.get_xydata() for line in axis.get_lines() if line.get_color() == line_style(1)["color"])
    assert np.allclose(curve, [[pairs, 100 * found["oc-clip", pairs].value] for pairs in PAIRS])
    levels = [line.get_ydata()[0] for line in axis.get_lines() if line.get_linestyle() == "--"]
    assert sorted(levels) == pytest.approx(sorted([75, 100 * found["clip", 0.2].value, 50])), "and chance"
    measured = draw_lines(Lines("curve", unseen, x="pairs", at="cost", log=True)).figure.axes[0]
    assert {x for line in measured.get_lines() for x in line.get_xdata() if x > 1} == {300, 400, 500, 900, 1000}


def test_bars_are_pale_where_one_caption_is_liked_whatever_the_image(swaps, tmp_path):
    unseen = swaps.where(subset="unseen_pairs", pairs=0.2)
    drawn, found = draw_bars(Bars("models", unseen)), unseen.estimates(("subset", "model"))
    (axis,) = drawn.figure.axes
    order = [label.get_text() for label in axis.get_yticklabels()]
    assert order == ["oc-clip", "negclip", "clip"]
    widths = [100 * found["unseen_pairs", model].value for model in order]
    assert [patch.get_width() for patch in axis.patches] == pytest.approx(widths)
    assert [patch.get_alpha() for patch in axis.patches] == [1, 1, 0.35]
    assert "pale bar" in drawn.note
    assert "pale bar" in write_page_part(Bars("models", unseen), tmp_path)["says"]
    waiting = texts_of(draw_bars(Bars("models", swaps.where(subset="unseen_pairs"), ("model", "pairs"))).figure)
    assert waiting.count(WAITING) == 1


def test_dots_have_their_seeds_and_differences_stand_around_nought(swaps):
    unseen = swaps.where(subset="unseen_pairs", pairs=0.2)
    (axis,) = draw_bars(Bars("dots", unseen, dots=True, beside=unseen.where(model="clip"))).figure.axes
    own = sorted(x for line in axis.get_lines() if line.get_alpha() == 0.35 for x in line.get_xdata())
    assert own == pytest.approx(sorted(100 * unseen.scores.accuracy))
    both = swaps.where(pairs=0.2)
    (axis,) = draw_bars(Bars("pooled", both, rows=("model",), panels=(), dots=True)).figure.axes
    own = sorted(x for line in axis.get_lines() if line.get_alpha() == 0.35 for x in line.get_xdata())
    of_seeds = (
        both.scores.dropna(subset="accuracy")
        .groupby(["model", "seed"])
        .apply(lambda its: np.average(its["accuracy"], weights=its["n"]))
    )
    assert own == pytest.approx(sorted(100 * of_seeds)), "a dot of each seed, over all tests"
    (axis,) = draw_bars(Bars("gain", unseen, against={"model": "clip"})).figure.axes
    found = unseen.estimates(("subset", "model"), {"model": "clip"})
    dots = [line.get_xdata()[0] for line in axis.get_lines() if line.get_marker() == "o"]
    assert sorted(dots) == pytest.approx(sorted(100 * its.value for its in found.values()))
    ends = [
        x
        for line in axis.get_lines()
        if line.get_linewidth() == 1.5 and line.get_marker() != "o"
        for x in line.get_xdata()
    ]
    intervals = [100 * end for its in found.values() for end in (its.low, its.high)]
    assert len(ends) == 2 * len(dots)
    assert all(end == pytest.approx(min(intervals, key=lambda other: abs(other - end))) for end in ends)
    assert [label.get_text() for label in axis.get_yticklabels()] == ["oc-clip", "negclip"]


def test_a_front_goes_through_what_no_other_beats_and_is_judged_elsewhere(records):
    validation, test = (records.where(subset=name, task="swap") for name in ("seen_pairs", "unseen_pairs"))
    part = Front("front", validation, x="cost", points=("pairs",), judged=test)
    drawn = draw_scatter(part)
    (axis,) = drawn.figure.axes
    clip = {0.2: 300.0, 0.8: 900.0}
    found = {cost: validation.estimates(("model", "pairs"))["clip", pairs].value for pairs, cost in clip.items()}
    kept = [cost for cost in found if cost == 300 or found[cost] > found[300]]
    steps = [line for line in axis.get_lines() if line.get_drawstyle() == "steps-post"]
    assert list(steps[0].get_xdata()) == kept
    points = [line for line in axis.get_lines() if line.get_markersize() == 5]
    on_test = test.estimates(("model", "pairs"))
    judged = [100 * on_test["clip", pairs].value for pairs, cost in clip.items() if cost in kept]
    assert list(points[0].get_ydata()) == pytest.approx(judged)
    plain = draw_scatter(Scatter("all", test, x="cost", points=("pairs",))).figure.axes[0]
    assert sum(len(line.get_xdata()) for line in plain.get_lines() if line.get_marker() in "osD") == 5


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
    order = ["<h1>Which models bind<", "One of them binds.", 'alt="All."', "15 of 19 runs", "Said <code>here</code>."]
    assert [text.index(its) for its in order] == sorted(text.index(its) for its in order)
    for said in ("its loss at step 7 is nan", "seed 3", "OC-CLIP", "unseen pairs", "text score"):
        assert said in text
    assert (out / "results.tex").read_text() == (out / "summary.tex").read_text()


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
