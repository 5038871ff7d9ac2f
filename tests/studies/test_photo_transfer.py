"""Training on rendered animals and photographs: the runs, disjoint photographs, measures, and a whole study."""

import re
import sys
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import pandas as pd
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.custom.photos import Config as PhotosConfig
from menagerie.envs.custom.photos import run as write_photos
from menagerie.envs.worlds import load_world
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.generators.storage.folder import SplitFolder
from menagerie.studies.frame.page import samples_of
from menagerie.studies.frame.records import Records, read
from menagerie.studies.frame.study import all_arms
from menagerie.studies.photo_transfer import PRESETS
from menagerie.studies.published.draw import draw_page
from menagerie.studies.published.pack import add_run, read_packed
from menagerie.studies.published.restore import restore_run
from menagerie.studies.runs.data import make_splits
from menagerie.studies.sources import transfer_answers as answers
from menagerie.studies.sources import transfer_data
from menagerie.studies.sources.transfer_answers import KNOWN, RECOGNITION, SWAPS
from menagerie.studies.sources.transfer_data import SYNTHETIC, AnimalPhotographs
from menagerie.studies.sources.transfer_plan import (
    HELD_OUT,
    OTHERS,
    OWN,
    PHOTOGRAPHS,
    SPATIAL,
    Prepared,
    TransferRun,
)
from tests.command import ROOT, no_figures, read_rows, run_here
from tests.helpers.cutout_files import GREY, ORANGE, PALE, draw

COMMAND = [sys.executable, str(ROOT / "studies" / "photo_transfer.py")]
SMOKE = PRESETS["smoke"]
TESTED = ("crocodile", "elephant", "penguin", "rabbit")


def draw_all(folder, each=2, others=("camel", "lion", "pig", "zebra")):
    """Drawn cut-outs of the tested animals, all different, and one of each other animal."""
    names = [f"{name}-{k}" for name in TESTED for k in range(1, each + 1)] + list(others)
    for number, name in enumerate(names):
        draw(folder / f"{name}.png", (ORANGE, PALE, GREY)[number % 3], width=120 + 3 * number, height=90 + number)
    return folder


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A folder as `menagerie photos` writes it."""
    folder = tmp_path_factory.mktemp("photos")
    write_photos(PhotosConfig(folder / "photos", cutouts=draw_all(folder / "pictures", 3), resolution=32))
    return folder / "photos"


def with_photographs(config, each, others):
    """A study with photographs of three tested animals, and one of each of some others."""
    tested = {name: tuple(Path(f"{k}.png") for k in range(each)) for name in TESTED[:3]}
    return replace(config, prepared=Prepared(AnimalPhotographs(tested, dict.fromkeys(map(str, range(others)))), {}))


def runs_of(config, question):
    return [run._replace(model="", seed=0) for run in replace(config, models=("clip",)).runs_of(question)]


def test_each_question_has_its_runs_once():
    config = replace(SMOKE, photographs=(2, 1, 5), other_animals=(8, 24), images=(16, 64), factor_models=("clip",))
    study = with_photographs(config, 3, 10)
    base = TransferRun("", 0)
    assert runs_of(study, "zero-shot") == [base, base._replace(kind=SPATIAL)]
    own, others = base._replace(world=OWN), base._replace(world=OTHERS, tuned=True)
    assert runs_of(study, "fine-tuning") == [
        *(base, own._replace(count=1), own._replace(count=1, tuned=True)),
        *(own._replace(count=2), own._replace(count=2, tuned=True)),  # there are no five, and two are two
        *(others._replace(count=8), others._replace(count=10)),
    ]
    ladder = [own._replace(count=2, images=n, tuned=tuned) for n in (16, 64) for tuned in (False, True)]
    assert runs_of(study, "worth") == [base, *ladder]
    chosen = replace(study, factors=("views", "backgrounds"))
    assert [its.factor for its in runs_of(chosen, "factors")] == ["", "views"], "there are no --backgrounds"
    assert not runs_of(replace(study, factors=("backgrounds",)), "factors")
    assert not runs_of(with_photographs(config, 1, 0), "worth")
    every = replace(study, seeds=2).runs_of(*study.parts)
    assert max(Counter(every).values()) == 1
    assert {its.start for its in every if its.tuned} <= set(every)


def test_runs_after_synthetic_training_have_fewer_steps_and_lower_rates():
    recipe = replace(SMOKE.recipe, warmup=50, single_object_phase=0.5, text_learning_rate=1e-3)
    plain = SMOKE.training_of(TransferRun("clip", 0), recipe)
    tuned = SMOKE.training_of(TransferRun("clip", 0, world=OWN, count=1, tuned=True), recipe)
    assert plain == recipe
    assert (tuned.steps, tuned.warmup, tuned.single_object_phase) == (20, 4, 0)
    assert tuned.learning_rate == pytest.approx(0.3 * recipe.learning_rate)
    assert tuned.text_learning_rate == pytest.approx(3e-4)
    assert tuned.vision_learning_rate is None
    assert SMOKE.training_of(TransferRun("clip", 0, factor="augmentation"), recipe) == replace(recipe, augment=False)


@pytest.mark.parametrize(("count", "seed"), list(product((1, 2, 3, 7), range(4))))
def test_a_held_out_photograph_is_never_trained_on(count, seed):
    files = [Path(f"{k}.png") for k in range(count)]
    (tested,) = transfer_data.held_out_file(files, seed)
    assert {tested, *transfer_data.training_files(files, seed, count)} == set(files)
    assert tested not in transfer_data.training_files(files, seed, count)
    assert set(transfer_data.training_files(files, seed, 1)) <= set(transfer_data.training_files(files, seed, 2))
    assert {transfer_data.held_out_file(files, its)[0] for its in range(count)} == set(files)


def test_training_worlds_and_test_worlds_share_no_photograph(photos, tmp_path):
    config = replace(SMOKE, photos=photos, photographs=(1, 2), seeds=2)
    study = config.with_worlds(tmp_path)
    photographs, files = study.prepared
    assert set(photographs.tested) == set(photographs.several) == set(TESTED)
    assert set(photographs.others) == {"camel", "lion", "pig", "zebra"}
    for seed in range(2):
        test = transfer_data.cutouts_in(files[f"{HELD_OUT}-{seed}"])
        numbers = {f"own-{n}-{seed}": 4 * n for n in (1, 2)} | {f"others-4-{seed}": 4}
        worlds = {name: transfer_data.cutouts_in(files[name]) for name in numbers}
        assert {name: len(its) for name, its in worlds.items()} == numbers
        assert not test.keys() & set().union(*worlds.values())
        assert not transfer_data.cutouts_in(files[PHOTOGRAPHS]).keys() & worlds[f"others-4-{seed}"].keys()
    sources = {path.read_bytes() for path in photos.glob("cutouts/*")}
    assert {path.read_bytes() for path in (tmp_path / "worlds/cutouts").iterdir()} == sources
    assert load_world(str(files[SYNTHETIC])).animals == TESTED
    assert load_world(str(files["synthetic-vocabulary"])).animals == load_world("tiny").animals
    textures = load_world(str(files["synthetic-textures"])).textures
    assert set(load_world("tiny").textures) < set(textures)


@pytest.mark.parametrize(("one", "other"), [("penguin-1", "penguin-3"), ("zebra", "rabbit-2")])
def test_a_photograph_under_two_names_is_refused(tmp_path, one, other):
    pictures = draw_all(tmp_path / "pictures", 3)
    (pictures / f"{other}.png").write_bytes((pictures / f"{one}.png").read_bytes())
    write_photos(PhotosConfig(tmp_path / "photos", cutouts=pictures, resolution=32))
    config = replace(SMOKE, photos=tmp_path / "photos", photographs=(1, 2), seeds=2)
    with pytest.raises(UserError, match="are the same photograph") as error:
        config.with_worlds(tmp_path)
    assert {one, other} <= set(re.findall(r"[a-z]+-?\d?(?=-[0-9a-f]{12}\.png)", str(error.value)))


def test_captions_of_photographs_in_their_own_colours_mention_no_texture(photos, tmp_path):
    world = load_world(str(photos / "photos-natural.toml"))
    counts = {"views": 1, "test_views": 1, "pairs": 0.0, "test_pairs": 0.4, "test_scenes": 8}
    recipe = SpatialRecipe(world=str(photos / "photos-natural.toml"), **counts)
    split = make_splits(SplitFolder(tmp_path / "store", world, 32), [recipe], 1)[recipe]
    data = SplitDataset(split, "left_right_unseen_pairs")
    bare = transfer_data.without_textures(full := SplitTests(data))
    assert bare.tasks == ["swap", "replace animal", "replace relation", "four-way"]
    texts = [caption for item in bare.items for caption in item.texts]
    assert not any("natural" in text for caption in texts for text in (caption.text, *caption.graph.nodes))
    assert all("natural" in caption.text for item in full.items for caption in item.texts)
    for item in bare.items:
        true, false = (Counter(re.sub(r"\ban\b", "a", caption.text).split()) for caption in item.texts[:2])
        assert (true == false) == (item.task in ("swap", "four-way")), item
    scene = data.records.scenes[0]
    assert scene.objects[0].animal in bare.items[0].texts[0].text


def points_of(values, seed=0, task="swap"):
    """Records, three for each animal pair."""
    rows = [
        {"seed": seed, "subset": "unseen", "task": task, "scene": k, "animals": f"pair {k // 3}", "value": float(value)}
        for k, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


def of_seeds(values):
    return pd.concat([points_of(values[seed:] + values[:seed], seed) for seed in range(3)])


def test_measures_take_their_records():
    tasks = {"swap": [1, 1, 0, 0, 1, 0], "replace animal": [1, 0, 1, 1, 1, 1], "replace texture": [1, 1, 1, 1, 1, 0.5]}
    mine = pd.concat([points_of(its, task=task) for task, its in tasks.items()])
    values = {measure: answers.measured_records(mine, measure).value for measure in answers.MEASURES}
    assert {measure: (found.sum(), len(found)) for measure, found in values.items()} == {
        SWAPS: (3, 6),
        RECOGNITION: (10.5, 12),
        KNOWN: (2, 4),  # scenes 0, 2, 3, 4
    }


@pytest.mark.parametrize(
    ("scratch", "tuned", "synthetic", "images", "ratio"),
    [
        ((0.5, 1.0), (1.0, 1.0), 0.5, ["64", "16"], "4.00"),
        ((0.5, 0.5), (1.0, 1.0), 0.5, ["> 64", "16"], "> 4.00"),
        ((1.0, 1.0), (0.5, 0.5), 0.5, ["16", "> 64"], "< 0.25"),
        ((0.5, 1.0), (0.5, 0.5), 1.0, ["64", "0"], "64.00"),
        ((0.5, 0.5), (0.5, 0.5), 0.5, ["> 64", "> 64"], "–"),
    ],
)
def test_worth_is_a_ratio_of_images_or_a_bound(scratch, tuned, synthetic, images, ratio):
    def of(share):
        return of_seeds([1] * round(9 * share) + [0] * (9 - round(9 * share)))

    found = {0: (answers.NO_POINTS, of(synthetic))}
    found |= {n: (of(scratch[k]), of(tuned[k])) for k, n in enumerate((16, 64))}
    assert answers.worth_cells(found, 0.8)[:3] == [*images, ratio]


def test_runs_are_planned_once_the_runs_they_start_from_have_ended(photos, tmp_path):
    study = replace(SMOKE, photos=photos, factors=("views", "textures", "vocabulary"), store=tmp_path / "store")
    study = study.with_worlds(tmp_path)
    every = study.runs_of(*study.parts)
    first = study.runs(Records((), tmp_path))
    assert list(first) == [run for run in every if not run.tuned]
    arms = all_arms(study)
    assert len(arms) == len(every)
    starts = {arm.cell.start.weights for arm in arms if arm.cell.start}
    assert starts == {first[run.start].id for run in every if run.tuned}
    for run, arm in first.items():
        tests = {test.label for test in arm.cell.data.tested}
        assert (HELD_OUT in tests) == (run.kind != SPATIAL)
        assert (PHOTOGRAPHS in tests) == (run.world != OWN)
        assert {split.recipe.world for split in arm.cell.data.splits} <= {*map(str, study.prepared.worlds.values())}
    views = {run.factor: arm.cell.data.train.recipe.views for run, arm in first.items() if run.kind != SPATIAL}
    assert views["views"] == 1 < views[""] == 2


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """The smoke preset of one model: first one question with few images, then all of it in the same folder."""
    folder = tmp_path_factory.mktemp("study")
    command = [*COMMAND, "--preset", "smoke", "--models", "clip", "--steps", "6", "--tuning-steps", "3"]
    command += ["--test-scenes", "16"]
    out = folder / "runs/photo_transfer-smoke"
    made = []
    for given in (["--parts", "worth", "--images", "16"], []):
        done = run_here([*command, *given], folder, page=not given, figures=False)
        assert done.returncode == 0, done.stderr
        made.append({path: path.stat().st_mtime_ns for path in out.glob("cells/*/result.json")})
    assert made[0].items() < made[1].items()  # what is finished is skipped
    assert (len(made[0]), len(made[1])) == (3, 10)
    return out


def test_published_records_give_the_same_tables(study, tmp_path):
    add_run(study, "photographs", tmp_path / "records")
    about = restore_run("photographs", tmp_path / "back", tmp_path / "records", study.parents[1] / "store")
    with no_figures():
        draw_page(about["command"], tmp_path / "back", study.parents[1] / "store")
    tables = [path.relative_to(study) for pattern in ("*.csv", "figures/*.csv") for path in study.glob(pattern)]
    assert {"results.csv", "words-alone.csv", "zero-shot.csv", "worth.csv"} <= set(map(str, tables))
    assert [(tmp_path / "back" / its).read_bytes() for its in tables] == [(study / its).read_bytes() for its in tables]
    assert str(study.parent) not in read_packed(tmp_path / "records/photographs.json.xz")


def test_a_whole_study_has_every_cell_test_and_table(study):
    rows = read_rows(study / "results.csv")
    assert len({(row["kind"], row["trained_on"], row["images"], row["factor"], row["start"]) for row in rows}) == 10
    tuned = {row["trained_on"] for row in rows if row["start"]}
    assert tuned == {"1 photographs each", "4 other animals"}
    subsets = {row["subset"] for row in rows if row["trained_on"] == SYNTHETIC and not row["factor"]}
    assert {its.partition("/")[0] for its in subsets} == {
        *("validation", "synthetic", "photographs", "held-out", "natural", "synthetic, bare")
    }
    gaps = read_rows(study / "zero-shot.csv")
    assert len(gaps) == 9
    assert all(re.match(r"\d", row["photographed (%)"]) for row in gaps if row["measure"] != KNOWN)
    steps = read_rows(study / "fine-tuning.csv")
    assert {row["photographs in training"] for row in steps} == {"none", "1 of each animal", "of 4 other animals"}
    assert {row["target (%)"] for row in read_rows(study / "worth.csv")} == {"55", "70"}
    assert {row["changed"] for row in read_rows(study / "factors.csv")} == {"augmentation"}
    assert samples_of(read(study)) == {}, "its tests are of other splits than the one it trains on"
