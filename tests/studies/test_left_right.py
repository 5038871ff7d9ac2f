"""The study of left and right: what each rung changes, how often a batch asks for the order, and what the page says."""

from collections import Counter
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.render.row import object_columns
from menagerie.envs.world import WORLDS
from menagerie.generators.captions.templates import caption
from menagerie.generators.storage.pictures import SplitPictures
from menagerie.generators.storage.split_file import read_split
from menagerie.models.recipe import Recipe
from menagerie.models.registry import spec_of
from menagerie.studies.analysis.papers import RUNGS
from menagerie.studies.frame.cells import read_tuned
from menagerie.studies.frame.parts import Rows
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.rows import parse_line
from menagerie.studies.frame.run import Running
from menagerie.studies.left_right import (
    BESIDE,
    FIRST,
    LINES,
    MORE,
    OTHER,
    OUR_RATES,
    PATH,
    PRESETS,
    REMEDIES,
    SEEN_ORDER,
    SHOWN,
    TESTS,
    UNSEEN_PAIRS,
    by_layout,
    doublings,
    opposite_share,
)
from tests.command import read_rows
from tests.studies.stored import stored_run

STUDY = replace(PRESETS["laptop"], seeds=3)
GRID = PRESETS["diversity"]
CLIP = spec_of("clip")
BEFORE = dict(pairwise(reversed(PATH))) | dict.fromkeys(BESIDE, FIRST) | dict.fromkeys(REMEDIES, OUR_RATES)
CHANGES = {rung: parse_line(CLIP, line) for rungs in RUNGS.values() for rung, (line, _) in rungs.items()}


def test_a_rung_changes_what_it_names_and_nothing_else(tmp_path):
    cells = {arm.labels["rung"]: arm.cell for arm in replace(STUDY, seeds=1).plan(Records((), tmp_path))}
    assert list(cells) == [*PATH, *BESIDE, *REMEDIES]
    for name, cell in cells.items():
        if name == FIRST:
            continue
        before = cells[BEFORE[name]]
        parts = [(cell.data.recipe, before.data.recipe), (cell.recipe, before.recipe), (cell.towers, before.towers)]
        pairs = [(a, b, item.name) for a, b in parts for item in fields(a)]
        changed = {key: getattr(a, key) for a, b, key in pairs if getattr(a, key) != getattr(b, key)}
        assert changed == CHANGES[name]
    assert len({cell.id for cell in cells.values()}) == len(cells)


def test_the_path_ends_with_the_recipe_of_the_spatial_grid():
    chosen = read_tuned("laptop", ["clip"])["clip"]
    ours = {name: parse_line(CLIP, LINES[PATH[-1]])[name] for name in chosen.fields}
    assert ours == pytest.approx(chosen.fields, rel=1e-5)
    assert parse_line(CLIP, LINES[PATH[-1]])["architecture"] == chosen.architecture


def split_at(rung):
    return STUDY.arm("clip", rung, 0).cell.data.recipe


@pytest.mark.parametrize("rung", [FIRST, "half in both orders", "none in both orders"])
def test_opposites_in_a_batch_are_as_many_as_expected(rung):
    """Against batches that are drawn from the split."""
    split, training = split_at(rung), Recipe(batch=64)
    scenes = split.subsets()["train"]
    texts = [caption(scene, split.seed, split.wording).graph for scene in scenes]
    swaps = [caption(split.swap(s), split.seed, split.wording).graph if len(s.objects) == 2 else None for s in scenes]
    random, shares = np.random.default_rng(0), Counter()
    for _ in range(150):
        batch = random.choice(len(scenes), training.batch, replace=False)
        shown = {texts[i] for i in batch}
        pairs = [i for i in batch if swaps[i] is not None]
        shares += Counter(pairs=len(pairs), met=sum(swaps[i] in shown for i in pairs))
    assert shares["met"] / shares["pairs"] == pytest.approx(opposite_share(split, training), abs=0.025)
    ours = split_at("our rates")
    assert opposite_share(ours, Recipe()) < 0.01
    assert opposite_share(ours, Recipe(text_negatives=("swap",))) == 1
    assert opposite_share(ours, Recipe(image_negatives=True)) == 1


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """The page of runs that are right up to the third rung of the path, and nowhere with five names."""
    out, rungs = tmp_path_factory.mktemp("left-right"), (*PATH[:5], "5 names")
    skill = {rung: 1.0 if rung in PATH[:3] else 0.5 for rung in rungs}
    arms = [
        stored_run(out, "clip", seed, {"rung": rung}, skill[rung], pairs=12, tests=tuple(TESTS))
        for seed in range(3) for rung in rungs
    ]  # fmt: skip
    return list(replace(STUDY, rungs=rungs).page(Records(tuple(arms), out)))


def test_claims_follow_from_the_records(parts):
    (table,) = (part for part in parts if isinstance(part, Rows))
    outcomes = {row[0]: row[3] for row in table.rows}
    assert outcomes["more with fifteen labels than with five"] == "confirmed"
    assert outcomes["more with both orders than with one"] == "not tested"
    assert outcomes["at least 90% of unseen pairs right"] in ("confirmed", "undecided")


def test_a_split_at_two_resolutions_has_a_file_of_each(tmp_path):
    """The recipe is the same: only the images differ."""
    study = replace(PRESETS["smoke"], rungs=(FIRST,), store=tmp_path / "store", out=tmp_path / "run")
    arms = [study.at("clip", 0, **parse_line(CLIP, LINES[FIRST]), test_scenes=8, resolution=side) for side in (40, 80)]
    running = Running(study, tmp_path / "run")
    running.render(arms)
    files = [running.files[arm.cell.data] for arm in arms]
    assert [SplitPictures(read_split(file)).images("train", [0]).shape[1:] for file in files] == [
        (40, 40, 3),
        (80, 80, 3),
    ]


def test_training_shows_as_many_names_and_layouts_as_said():
    for arm in replace(GRID, names=(6, 10), layouts=(2, 8), seeds=1).plan(Records((), GRID.store)):
        split = arm.cell.data.recipe
        subsets, row = split.subsets(), WORLDS[split.world].row
        pairs = [scene for scene in subsets["train"] if len(scene.objects) == 2]
        assert len({obj.animal for scene in subsets["train"] for obj in scene.objects}) == arm.labels["names"]
        shown = {object_columns(scene, row) for scene in pairs}
        assert len(shown) == arm.labels["layouts"]
        tested = {scene.view % 45: object_columns(scene, row) for scene in subsets[UNSEEN_PAIRS]}
        assert len({*tested.values()}) == 45
        assert {view for view, columns in tested.items() if columns in shown} == {*range(arm.labels["layouts"])}


def grid_records(out, rise):
    """Runs of three seeds: accuracy rises by `rise` a doubling of names."""
    labels = [{"names": names, "layouts": layouts} for names in (5, 20) for layouts in (2, 30)]
    view = "|desert|{}".format
    arms = [
        stored_run(
            *(out, "clip", seed, its, 0.5 + rise * np.log2(its["names"] / 5)),
            **{"pairs": 25, "tests": (SEEN_ORDER, UNSEEN_PAIRS), "ending": lambda scene: view(45 + 20 * scene)},
        )
        for seed in range(3) for its in labels
    ]  # fmt: skip
    return Records(tuple(arms), out)


def test_slopes_are_of_doublings(tmp_path):
    places = [(names, layouts) for names in (5, 10, 20) for layouts in (2, 8, 32)]
    plane = 0.3 + np.log2(places) @ [0.1, 0.02]
    found = {name: slope(plane[None])[0] for name, slope in doublings(places).items()}
    assert found == pytest.approx({"names": 0.1, "layouts": 0.02, MORE: 0.08})

    study, records = replace(GRID, names=(5, 20), layouts=(2, 30)), grid_records(tmp_path, 0.2)
    study.export(records)
    rows = {(row["test"], row["number"]): row for row in read_rows(tmp_path / "slopes.csv")}
    for layouts in (SHOWN, OTHER):
        more, lowest = rows[f"unseen pairs, {layouts}", MORE], rows[f"trained pairs, {layouts}", "lowest cell"]
        assert float(more["value"]) == pytest.approx(0.2, abs=0.06)
        assert 0 < float(more["low"]) < float(more["value"]) < float(more["high"])
        assert float(lowest["value"]) == pytest.approx(0.5, abs=0.1)
    points = by_layout(records, UNSEEN_PAIRS).points
    views = points["scene"].str.rpartition("|")[2].astype(int) % 45
    assert ((views < points["layouts"]) == (points["subset"] == SHOWN)).all()
    assert list(study.page(records))


def test_a_slope_needs_two_numbers_of_each():
    for wrong in ({"layouts": ()}, {"names": (6,)}, {"names": (), "layouts": ()}, {"names": (6, 7)}):
        with pytest.raises(UserError):
            replace(GRID, **wrong).check()
