"""Where models err: breakdowns and surest records of predictions whose right answers are planted."""

import base64
import csv
import io
import re

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from menagerie.envs.core.records import write_record
from menagerie.envs.slots import place_of
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.captions.hard_negatives.tasks import TASKS
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.pictures import SplitPictures
from menagerie.models.cell_results import RESULT
from menagerie.studies.analysis.errors import (
    COLUMNS,
    FACTORS,
    SHOWN,
    TestedCell,
    breakdown_rows,
    error_table,
    scene_factors,
    surest_records,
)
from menagerie.studies.analysis.intervals import FEWEST
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.draw import write_page_part
from menagerie.studies.frame.parts import Cases
from menagerie.studies.frame.records import Records, StoredCell
from menagerie.studies.runs.evaluation import PREDICTIONS, predictions
from tests.helpers.splits import make_split

RECIPE = SpatialRecipe(world="tiny", pairs=0.5, views=1, test_views=1, test_scenes=30)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A split and its tests; all of two relations."""
    path = make_split(tmp_path_factory.mktemp("store"), RECIPE)
    return path, {name: SplitTests(SplitDataset(path, name)) for name in RECIPE.tests}


def cell(folder, tests, score):
    """A cell's predictions, in which `score(item)` gives a true and a false caption their scores."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "predictions.csv").open("w", newline="") as file:
        rows = csv.DictWriter(file, PREDICTIONS, lineterminator="\n", restval="")
        rows.writeheader()
        for name, test in tests.items():
            items = [item for item in test.items if item.task != "four-way"]
            rows.writerows(predictions(name, items, [np.array([score(item)]) for item in items]))
    return folder


def without_penguins(item):
    """Wrong wherever a penguin is, and surer the longer the key."""
    return (0.0, float(len(item.record))) if "penguin" in item.record else (1.0, 0.0)


def test_errors_are_counted_by_each_fact_of_a_scene(made):
    for test in made[1].values():
        r = test.data.records
        for scene, graph in zip(r.scenes, r.graphs, strict=True):
            found = scene_factors(scene, graph)
            assert {value for factor, value in found if factor == "animal"} == {t.animal for t in scene.objects}
            assert {value for factor, value in found if factor == "texture"} == {t.texture for t in scene.objects}
            assert ("background", scene.background) in found
            assert ("relation", scene.relation) in found
            (first,) = (value for factor, value in found if factor == "mentioned first")
            assert graph.nodes[0] == phrase(next(t for t in scene.objects if place_of(t.slot) == first))
            assert len(found) == len(set(found))
            assert {factor for factor, _ in found} <= set(FACTORS)


def test_a_place_where_answers_are_always_wrong_is_named(made, tmp_path):
    path, tests = made
    found = breakdown_rows((TestedCell(0, cell(tmp_path / "a", tests, without_penguins), path),))
    assert list(found.columns) == list(COLUMNS)
    mine = found[found.task == "swap"].set_index(["subset", "factor", "value"])
    for name, test in tests.items():
        items = [item for item in test.items if item.task == "swap"]
        wrong = sum("penguin" in item.record for item in items)
        every = mine.loc[(name, "all", "")]
        assert (every.n, every.accuracy) == (len(items), pytest.approx(1 - wrong / len(items)))
        if wrong:
            assert mine.loc[(name, "animal", "penguin")].accuracy == 0
            assert mine.loc[(name, "animal", "penguin")].n == wrong
        for texture in {t.texture for scene in test.data.records.scenes for t in scene.objects}:
            shown = [item for item in items if f"{texture} " in item.record]
            row = mine.loc[(name, "texture", texture)]
            right = sum("penguin" not in item.record for item in shown)
            assert (row.n, row.accuracy) == (len(shown), pytest.approx(right / len(shown)))
            assert row.clusters == len({item.cluster for item in shown})
            assert np.isnan(row.low) if row.clusters < FEWEST else row.low <= row.accuracy <= row.high


def test_ties_count_half_and_cells_are_pooled(made, tmp_path):
    path, tests = made
    right, tied = (cell(tmp_path / name, tests, lambda item, s=s: s) for name, s in (("r", (1.0, 0.0)), ("t", (2, 2))))
    found = breakdown_rows((TestedCell(0, right, path), TestedCell(1, tied, path)))
    alone = breakdown_rows((TestedCell(0, right, path),))
    assert np.allclose(found.accuracy.astype(float), 0.75)
    assert (found.n == 2 * alone.n).all()
    assert (found.clusters == alone.clusters).all(), "the same pairs"
    rows = error_table(alone, list(tests))
    assert rows.iloc[0, 0] == "all"
    texts = [text.split(" n ")[0] for text in rows[list(tests)].to_numpy().ravel()]
    cells = {re.sub("one animal pair|only [234] pairs|no spread", "none", text) for text in texts}
    assert cells <= {"100.0 [none: no interval]", "–"}


def test_the_surest_records_are_shown_with_their_images(made, tmp_path):
    path, tests = made
    found = surest_records(TestedCell(0, cell(tmp_path / "a", tests, without_penguins), path), tuple(tests))
    keys = {name: {scene.key: i for i, scene in enumerate(t.data.records.scenes)} for name, t in tests.items()}
    penguins = [key for own in keys.values() for key in own if "penguin" in key]
    assert len(found["wrong"]) == min(SHOWN, len(penguins))
    assert len(found["right"]) == SHOWN
    negatives = found["wrong"]["score_negative"].tolist()
    assert negatives == sorted(negatives, reverse=True)
    assert negatives[0] == max(map(len, penguins))
    for r in pd.concat(found).itertuples():
        records = tests[r.subset].data.records
        i = records.captions.index(r.caption)
        assert (r.negative, "penguin" in r.caption) == (records.negatives[i], r.margin < 0)
        content = base64.b64decode(r.uri.removeprefix("data:image/png;base64,"))
        rows = [row for row, caption in enumerate(records.captions) if caption == r.caption]
        shown, reader = np.asarray(Image.open(io.BytesIO(content))), SplitPictures(tests[r.subset].data.split)
        assert (shown == reader.images(r.subset, rows)).all((1, 2, 3)).any()


def test_a_page_has_every_place_and_a_section_for_each_model(made, tmp_path):
    path, tests = made
    place, arms = ["model", "pairs", "relations"], []
    for model, pairs, seed in (("clip", 0.2, 0), ("clip", 0.2, 1), ("clip", 0.8, 0), ("own.py:Own", 0.2, 0)):
        result = {"id": f"{model}-{pairs}-{seed}", "model": model, "seed": seed}
        folder = cell(tmp_path / "cells" / result["id"], tests, without_penguins)
        write_record(folder / RESULT, result | {"subsets": {name: {"swap": {"accuracy": 1.0}} for name in tests}})
        labels = {"pairs": pairs, "relations": ("left/right", "above/under")}
        arms.append(Arm(StoredCell(result["id"], model, seed, tuple(tests)), labels, path))
    part = Cases("cases", Records(tuple(arms), tmp_path), place, words={"subset": {"unseen_pairs": "the test"}})
    sections = write_page_part(part, tmp_path)["sections"]
    assert [its["model"] for its in sections] == ["clip", "own.py:Own"]
    assert sections[0]["place"] == "pairs 20%, relations left/right+above/under, seed 0"
    names = ["the test" if name == "unseen_pairs" else name.replace("_", " ") for name in tests]
    assert all(f">{name}<" in sections[0]["html"] for name in ["shown", "value", *names])
    found = surest_records(TestedCell(0, part.records.folder(arms[0]), path), tuple(tests))
    for name, images in found.items():
        assert [its["uri"] for its in sections[0][name]] == images["uri"].tolist()
    table = pd.read_csv(tmp_path / "errors.csv", keep_default_na=False)
    assert list(table.columns) == [*place, *COLUMNS]
    assert set(table.task) <= set(TASKS)
    assert len(table.task.unique()) > 1
    assert len(table[(table.factor == "all") & (table.task == "swap")]) == 3 * len(tests)
    assert write_page_part(Cases("none", Records((), tmp_path)), tmp_path)["sections"] == []
