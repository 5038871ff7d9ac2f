"""The study of left and right: what each rung changes, how often a batch asks for the order, and what the page says."""

from collections import Counter
from dataclasses import fields, replace
from itertools import pairwise

import numpy as np
import pytest

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
    OUR_RATES,
    PATH,
    PRESETS,
    REMEDIES,
    TESTS,
    opposite_share,
)
from tests.studies.stored import stored_run

STUDY = replace(PRESETS["laptop"], seeds=3)
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
