"""`--dry-run`: what a study would render, how long its training steps would take here (one of each model is taken and
discarded), and the page of a user's study from invented results, to find mistakes in it before anything is trained."""

import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import scratch_folder, write_csv
from menagerie.envs.scene import Scene
from menagerie.envs.worlds import load_world
from menagerie.generators.captioned import Captioned, Indices, all_texts
from menagerie.generators.captions.hard_negatives.tasks import PAIR_TASKS
from menagerie.generators.captions.templates import Caption
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.storage.false_captions import TEXT_NEGATIVES
from menagerie.generators.storage.folder import SplitFolder
from menagerie.models.checkpoint import build_scorer
from menagerie.models.scorer import to_device
from menagerie.models.towers.tokenizers import text_space
from menagerie.models.training.feed import Feed, single_steps
from menagerie.models.training.loop import build_optimizer, train_step
from menagerie.studies.frame.arm import Arm, InventedResults
from menagerie.studies.frame.layout import UNKNOWN, decided_from
from menagerie.studies.frame.parts import RecordsPart, Table, check_page_parts, part_labels
from menagerie.studies.frame.records import SCORES, Records, check_labels
from menagerie.studies.frame.run import splits_by_store
from menagerie.studies.frame.study import AnyStudy, Study, all_arms
from menagerie.studies.runs.cell import Cell
from menagerie.studies.runs.data import naming_errors
from menagerie.studies.runs.evaluation import FILE, PREDICTIONS
from menagerie.studies.runs.folder import provenance
from menagerie.studies.runs.results import write_result

WARM_UP = 8  # images of the step before the timed one, in which libraries load and compile
OURS = Path(__file__).resolve().parents[1]
MOST = 300  # runs; with more, inventing results takes too long
MARGINS = (0.5, 0.5, 0.5, 0.0, -0.5, 0.5)  # between the scores of a true and a false caption, by animal pair
LEVEL = {"accuracy": 0.75, "official": 4 / 6, "tie_rate": 1 / 6, "n": len(MARGINS)}


def dry_run(study: Study, out: Path) -> None:
    """Print what is to be rendered and trained, about how long it takes (of an adaptive study, the longest case), and
    how small a difference the study would decide, by the spread of the runs that `out` has."""
    torch.set_num_threads(study.threads)
    with scratch_folder() as folder:
        study = study.prepare(folder)
        for name, text in study.notes().items():
            print(f"{name}: {text}")
        arms = all_arms(study)
        for (world, side), recipes in splits_by_store(arm for arm in arms if arm.trains and not arm.file).items():
            recipe, name = next(iter(recipes.items()))
            with naming_errors(name):
                scenes = sorted(set(recipe.with_counterfactuals(planned(recipe))))
            needed = SplitFolder(study.store, load_world(world), side).describe_needed(scenes)
            several = f"{len(recipes)} splits, of which the first has " * (len(recipes) > 1)
            print(f"{Path(world).stem}, {side} px: {several}{needed}")
        at_once = min(study.at_once, len(arms))
        seconds = print_training_time(arms) / at_once
        adaptive = len({arm.id for arm in study.plan(InventedResults())}) < len(arms)
    most = ", with the most runs that results may ask for" * adaptive
    long = f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"
    took = f"{seconds:.0f} s" if seconds < 120 else long
    busy = f"{at_once} runs at once, as busy as this machine is now"
    print_decided(study, Records(tuple(arms), out))
    print(f"the steps take at most about {took} in all{most}, {busy}; runs may share some of them")


def print_decided(study: Study, records: Records) -> None:
    """Print, for each table of differences, how small a one as many seeds as are planned would decide."""
    compared = [
        (part.name, decided_from(part.records.estimates(part_labels(part), part.against, seeds=study.seeds).values()))
        for part in (check_page_parts(study.page(records)) if records.results else ())
        if isinstance(part, Table) and part.against
    ]
    for name, says in compared or [("differences", f"{UNKNOWN}: {records.out} has no finished runs to take it from")]:
        print(f"{name}: {says}")


@lru_cache(maxsize=1)
def planned(recipe: SplitRecipe) -> dict[str, list[Scene]]:
    """Return the scenes of a recipe's subsets, which take longer to plan than steps take."""
    return recipe.subsets()


def print_training_time(arms: Sequence[Arm]) -> float:
    """Print the steps and their time of runs whose steps cost about the same; returns the seconds of all runs."""
    alike: dict[tuple[Any, ...], list[Arm]] = {}
    for arm in arms:
        cell = arm.cell.trained_as
        negatives = " with false captions" * bool(cell.recipe.text_negatives)
        text = f"{cell.model}{negatives}, {cell.towers.architecture}, batch {cell.recipe.batch}"
        given = (arm.file, cell.data.name) if arm.file else cell.data.kind
        alike.setdefault((text, cell.towers, str(cell.options), given), []).append(arm)
    total, samples = 0.0, {}
    for (text, towers, _, given), same in alike.items():
        cells = list({cell.id: cell for cell in (arm.cell.trained_as for arm in same)}.values())
        if (key := (given, towers.resolution)) not in samples:
            data, file = cells[0].data, same[0].file
            samples[key] = data.open(file).train if file else Noise(data.splits[0].recipe, towers.resolution)
        steps, seconds = sum(cell.recipe.steps for cell in cells), time_step(cells[0], samples[key])
        total += steps * seconds
        if bases := [cell.base for cell in cells if cell.base]:
            total += sum(base.recipe.steps for base in bases) * time_step(bases[0], samples[key])
        borrowed = f" ({len(same) - len(cells)} of which only score another's weights)" * (len(same) > len(cells))
        print(f"{text}: {len(same)} runs{borrowed}, {steps} steps, {1000 * seconds:.0f} ms each", flush=True)
    return total


class Noise(Captioned):
    """A sample of training captions with images of noise; the cost of a step doesn't depend on the images."""

    complete_captions = True
    text_negatives = TEXT_NEGATIVES

    def __init__(self, recipe: SplitRecipe, resolution: int) -> None:
        self.name, self.side = "a sample", resolution
        scenes = planned(recipe)["train"]
        chosen = scenes[:: max(1, len(scenes) // 500)]
        self.rows = [recipe.texts("train", scene) for scene in chosen]
        self.strata = {"single_object": np.array([len(scene.objects) == 1 for scene in chosen])}

    def __len__(self) -> int:
        return len(self.rows)

    def images(self, indices: Indices) -> UInt8[Tensor, "n 3 h w"]:
        return torch.randint(256, (len(indices), 3, self.side, self.side), dtype=torch.uint8)

    counterfactual_images = images

    def captions(self, indices: Indices, draws: Indices) -> list[Caption]:
        return [self.rows[i][0] for i in indices]

    def negatives(self, indices: Indices, draws: Indices, kind: str = "swap") -> list[Caption | None]:
        """Return the hard negatives of the scenes; for kinds that are drawn at random, captions of other scenes."""
        return [self.rows[i][1] if kind == "swap" else self.rows[i - 1][0] for i in indices]

    def counterfactual_items(self, indices: Indices) -> Int64[np.ndarray, " n"]:
        """Return each item as its own counterfactual; a step with other images would take as long."""
        return np.asarray(indices, np.int64)

    def texts(self) -> Iterator[str]:
        yield from all_texts(text for row in self.rows for text in row if text)


noise = lru_cache(maxsize=4)(Noise)  # making one takes longer than a step


def time_step(cell: Cell, data: Captioned) -> float:
    """Return the seconds of a step of a cell's scorer, which has random weights: others would take as long."""
    towers = replace(cell.towers, pretrained="", load=True)
    scorer = build_scorer(cell.model, towers, text_space(towers, data.texts()), cell.options).to(cell.device)
    scorer.train()
    step = single_steps(cell.recipe)
    for recipe in (replace(cell.recipe, batch=min(WARM_UP, cell.recipe.batch), accumulate=1), cell.recipe):
        optimizer = build_optimizer(scorer, recipe)
        batch = to_device(Feed(data, scorer.reader, recipe, 0, cell.negatives)[step], scorer.device)
        start = time.perf_counter()
        train_step(scorer, optimizer, batch, recipe, 0, step).item()
    return time.perf_counter() - start


def check_page(study: AnyStudy, arms: tuple[Arm, ...]) -> None:
    """Make a user's page once from invented results of all arms; an error passes through.

    Does nothing for shipped studies, for more than `MOST` arms, for arms that aren't training runs, and for studies
    with a `prepare`, measures or costs.
    """
    kind, plain = type(study), (AnyStudy.prepare, AnyStudy.measurements, AnyStudy.measures)
    file = getattr(getattr(kind.page, "__code__", None), "co_filename", "")
    ships = not file or Path(file).resolve().is_relative_to(OURS)
    other = (kind.prepare, kind.measurements, kind.measures) != plain or not all(arm.trains for arm in arms)
    if ships or other or len(arms) > MOST:
        return
    with scratch_folder() as out, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of arithmetic: all invented runs are equal
        records = Records(arms, out)
        for arm in arms:
            write_invented(records.folder(arm), arm)
        place = ""
        try:
            for part in check_page_parts(study.page(records)):
                if isinstance(part, RecordsPart):
                    place = f"the part {part.name!r} of the page"
                    check_labels({*part_labels(part)} - {*SCORES}, part.records.arms)
                    if against := getattr(part, "against", None):
                        part.records.estimates(part_labels(part), against)
        except UserError as error:
            if error.what and place:
                raise error.at(place) from error
            if error.what:  # a value that isn't among those allowed; else a file that only real runs leave is missing
                raise


def write_invented(folder: Path, arm: Arm) -> None:
    """Write the files that a finished run leaves, with the same scores of every task for all runs."""
    folder.mkdir(parents=True)
    cell, tests = arm.cell, ("validation", *arm.cell.tests)
    rows = [
        {"subset": test, "task": task, "scene": f"{test} {pair}", "animals": f"pair {pair}"}
        | {"caption": "true", "negative": "false", "score_caption": margin, "score_negative": 0.0}
        for test in tests
        for task in PAIR_TASKS
        for pair, margin in enumerate(MARGINS)
    ]
    write_csv(folder / FILE, PREDICTIONS, ([row.get(name, "") for name in PREDICTIONS] for row in rows))
    four_way = {f"{part} score": LEVEL | {"tie_rate": None} for part in ("text", "image", "group")}
    result = {
        **{"id": cell.id, "model": cell.model, "seed": cell.seed, **cell.axes, "settings": cell.settings},
        **{"axes": list(cell.axes), "images_seen": cell.images_seen, "train_images": 1, **cell.data.counts()},
        **{"parameters": 1, "subsets": {test: dict.fromkeys(PAIR_TASKS, LEVEL) | four_way for test in tests}},
        **{"loss_negatives": [], "parsed": "", "carried": {}, "seconds": 1.0},
        "provenance": {**provenance(), "step_cpu_seconds": 1.0},
    }
    write_result(folder, result, (FILE,))
