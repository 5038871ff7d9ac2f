"""The loop of all studies: plan, render, train unfinished runs, publish, and again; and `train`, one run in Python."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from menagerie.envs.core.errors import Incomplete, Stopped, UserError, choose
from menagerie.envs.core.progress import PlainLines, Sparing
from menagerie.envs.core.validation import validate
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.recipe_file import read_recipe
from menagerie.generators.storage.folder import SplitFolder
from menagerie.models.cell_results import RESULT
from menagerie.models.recipe import Recipe
from menagerie.models.registry import check_scorer, spec_of
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.measure import Measuring
from menagerie.studies.frame.parts import Part
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import AnyStudy, SplitStudy
from menagerie.studies.runs import executor
from menagerie.studies.runs.cell import CHECKPOINT, Execution, Job
from menagerie.studies.runs.command_line import only_models, scorer_options
from menagerie.studies.runs.data import make_splits
from menagerie.studies.runs.folder import command_line, folder_lock
from menagerie.studies.runs.shared import clear_shared
from menagerie.studies.runs.torchrun import check_joined

if TYPE_CHECKING:
    from menagerie.models.library.loaded import LoadedScorer


DRAWING = ("altair", "vl_convert")  # libraries without which a study still runs, but has no page


@dataclass
class Running:
    """A running study and its folder."""

    study: AnyStudy
    out: Path
    files: dict[Any, Path] = field(default_factory=dict)
    sparing: Sparing = field(default_factory=Sparing)
    planned: list[Arm] | None = None
    ended: set[str] = field(default_factory=set)
    """The arms that had ended before the last plan."""
    stale: bool = False
    """Whether the page lacks a run that has ended since it was written."""
    grows: bool = False
    """Whether the last plan depends on arms that haven't ended, so that more may follow."""

    def arms(self) -> tuple[Arm, ...]:
        """Return the arms of the plan for the results so far, with their split files; plan again when one has ended."""
        ended = {arm.id for arm in self.planned or () if Records((), self.out).over(arm)}
        if self.planned is None or ended - self.ended:
            known = Records((), self.out)
            self.planned, self.ended = list(self.study.plan(known)), self.ended | ended
            self.grows = bool(known.missing)
        files = self.files
        return tuple(
            arm if arm.file or not arm.trains else arm._replace(file=files.get(arm.cell.data)) for arm in self.planned
        )

    def waiting(self) -> list[Arm]:
        records = Records((), self.out)
        return list({arm.id: arm for arm in self.arms() if not records.over(arm)}.values())

    def job(self, arm: Arm) -> Any:
        if not arm.trains:
            return arm.cell.job(self.out)
        what = ", ".join(f"{name} {value}" for name, value in arm.labels.items() if name not in arm.cell.axes)
        return Job(arm.cell, arm.file or self.files[arm.cell.data], self.out, what, Execution.of(self.study))

    def render(self, arms: Iterable[Arm]) -> None:
        """Render the missing atlas entries of the arms, and write the missing split files."""
        missing = [arm for arm in arms if arm.trains and not arm.file and arm.cell.data not in self.files]
        made: dict[tuple[Any, int], Path] = {}
        for (world, side), recipes in splits_by_store(missing).items():
            store = SplitFolder(self.study.store, load_world(world), side)
            files = make_splits(store, recipes, self.study.cores, names=recipes)
            made |= {(recipe, side): file for recipe, file in files.items()}
        for arm in missing:
            self.files[arm.cell.data] = made[arm.cell.data.splits[0].recipe, arm.cell.towers.resolution]

    def complete(self) -> tuple[Path | None, Records]:
        """Train, measure and publish until no arm is left; returns the path of the page, and the records."""
        while True:
            while waiting := self.waiting():
                self.sparing(self.publish)
                self.train(waiting)
            self.measure()
            if not any(arm.trains and arm.cell.recipe.decay for arm in self.arms()):
                clear_shared(self.out)  # with decay, a longer budget would continue from them
            page, records = self.publish(), self.records()
            self.planned = None  # plan once more: another machine may have abandoned a trial of a search
            if not self.waiting():
                return page, records

    def train(self, arms: Sequence[Arm]) -> None:
        """Run arms, and the arms that the plan adds whenever one has ended."""
        begun = {arm.id for arm in arms}

        def follow(job: Any) -> list[Any]:
            self.publish_results(job)
            new = [arm for arm in self.waiting() if arm.id not in begun]
            begun.update(arm.id for arm in new)
            self.render(new)
            return list(map(self.job, new))

        self.render(arms)
        cluster, jobs = self.study.cluster, list(map(self.job, arms))
        executor.run_jobs(jobs, cluster, self.study.at_once, self.out, follow, grows=self.grows)

    def measure(self) -> None:
        """Take the study's measures of finished arms, as far as they are missing."""
        records = Records(self.arms(), self.out)
        wanted = [(arm, measures) for arm, _ in records.results if (measures := self.study.measurements(arm))]
        if not wanted:
            return
        self.render([arm for arm, _ in wanted])
        at = (None, *self.study.keep_states)
        jobs = [Measuring(self.job(arm), tuple(measures), at) for arm, measures in wanted]
        executor.run_jobs(jobs, self.study.cluster, self.study.at_once, self.out, self.publish_results)

    def publish_results(self, job: Any) -> None:
        """Write the tables, and the page too if writing pages has taken a small share of the time so far."""
        if not self.sparing(self.publish):
            with folder_lock(self.out):
                self.study.tables(self.records())
            self.stale = True

    def records(self) -> Records:
        """Return the records of all arms so far, with the columns that the study adds."""
        return Records(self.arms(), self.out).with_labels(self.study.measures)

    def publish(self) -> Path | None:
        """Write tables and page from what is finished; returns the path of the page, None where no library can draw."""
        with folder_lock(self.out):  # another command may publish more results at the same time
            records, self.stale = self.records(), False
            self.study.tables(records)
            try:
                from menagerie.studies.frame.page import write_report

                report = write_report(self.study, records)
            except ModuleNotFoundError as error:
                if error.name not in DRAWING:
                    raise
                report = None
            self.study.export(records)  # may raise for the results, after the report has said why
        return report


def splits_by_store(arms: Iterable[Arm]) -> dict[tuple[str, int], dict[SplitRecipe, str]]:
    """Map each world and image side to the split recipes of these arms, each with the name of its first arm."""
    stores: dict[tuple[str, int], dict[SplitRecipe, str]] = {}
    for arm in arms:
        for split in arm.cell.data.splits:
            recipes = stores.setdefault((split.recipe.world, arm.cell.towers.resolution), {})
            recipes.setdefault(split.recipe, arm.name)
    return stores


def run_study(study: AnyStudy, out: Path) -> None:
    """Run a study in its folder until its plan has no further arms."""
    study = study.prepare(out)
    running = Running(study, out)
    for name, text in study.notes().items():
        print(f"{name}: {text}")
    arms = {arm.id: arm for arm in running.arms()}
    running.render(arms.values())  # of finished runs too, whose images the page shows
    known = Records((), out)
    finished = sum(map(known.over, arms.values()))
    print(f"{len(arms)} {study.called}, {finished} of them finished before", flush=True)
    bases = {arm.cell.base.id for arm in arms.values() if getattr(arm.cell, "base", None)}
    bases |= {arm.cell.trained_as.id for arm in arms.values() if arm.trains}
    if others := len({file.parent.name for file in out.glob(f"cells/*/{RESULT}")} - {*arms, *bases}):
        print(f"{others} finished runs in this folder have other options; tables and the page leave them out")
    done = (arm for arm in arms.values() if arm.trains and study.keep_states and known.result(arm))
    if lack := [f"cells/{arm.id}" for arm in done if running.job(arm).lacking]:
        print(f"{len(lack)} finished runs lack states of --keep-states; to train them again delete {' '.join(lack)}")
    try:
        page, records = running.complete()
    except (KeyboardInterrupt, Stopped, UserError):
        if running.stale:
            running.publish()
        raise
    study.conclude(records)
    how = f"no page, because altair isn't installed here; where it is, this draws it: {command_line()}"
    print(f"report: {page}" if page else how, flush=True)
    if lost := {arm.cell.name: why for arm in records.arms if (why := records.left_out(arm))}:
        name, why = next(iter(lost.items()))
        more = f"; and {len(lost) - 1} more, see above" if len(lost) > 1 else ""
        raise Incomplete(f"{len(lost)} of {len(records.arms)} {study.called} left out, first {name}: {why}{more}")


class Trained(NamedTuple):
    """A finished run."""

    records: Records
    """Accuracies and records of all tests of the run."""
    scorer: "LoadedScorer"
    """The trained model on its device, as `load_scorer` gives it."""
    split: Path
    """The split file that it was trained on."""


@dataclass(frozen=True)
class OneRun(SplitStudy):
    """One run of one model."""

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        model, seed = self.models[0], self.first_seed
        yield self.of_file(model, seed, next(iter(self.files))) if self.split else self.at(model, seed)

    def page(self, records: Records) -> Iterator[Part]:
        return iter(())


def train(
    model: str,
    split: str | Path | SplitRecipe,
    out: str | Path = "runs/train",
    seed: int = 0,
    options: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Trained:
    """Train a model on a split, or load it if `out` has the finished run.

    Runs in this process. After an interruption the same call continues from the last state.

    Args:
        model: A scorer by name, or FILE.py:Class.
        split: A split file (.h5), a recipe by name or as an object, or a TOML file.
        out: The folder of the run.
        seed: The seed of split and training.
        options: The model's options (`menagerie scorers`).
        settings: Fields of the training recipe (`steps=500`), and options of studies (`architecture="nano"`,
            `resolution=32`, `device="cuda"`, `store="store"`).

    Raises:
        UserError: For input that can't work, for a loss, weights or scores that aren't finite, and under torchrun.
    """
    import torch

    from menagerie.models.library.cells import find_training
    from menagerie.models.library.sources import Checkpoint
    from menagerie.studies.runs.train import run_with_needs

    check_joined()
    lines = PlainLines()

    def report(step: int, text: str) -> None:
        if lines.due():
            print(f"{job.name}: step {step} of {job.steps}, {text}", flush=True)

    study = one_run_study(check_scorer(model), split, seed, dict(options or {}), settings)
    validate(study)
    running, threads = Running(study.fill_in(), Path(out)), torch.get_num_threads()
    running.render(running.arms())
    (arm,) = running.arms()
    job = running.job(arm)
    try:
        run_with_needs(job, report)
    finally:
        torch.set_num_threads(threads)
    if job.problem:
        raise UserError(f"{job.name}: {job.problem}")
    source = Checkpoint(str(job.folder), job.folder / CHECKPOINT, model)
    scorer = source.load(arm.cell.device, running.study.world)
    scorer.training = lambda: find_training(source)
    return Trained(Records((arm,), Path(out)), scorer, job.data_file)


def one_run_study(
    model: str, split: str | Path | SplitRecipe, seed: int, options: dict[str, Any], settings: dict[str, Any]
) -> OneRun:
    decided = {"models", "seeds", "first_seed", "split", "base", "recipe", "scorers", "out"}
    known = {item.name for item in fields(OneRun)} - decided
    training = {item.name for item in fields(Recipe)}
    for name in settings:
        choose("setting", name, sorted(known | training))
    study = OneRun(models=(model,), first_seed=seed, scorers=only_models(scorer_options("small"), (model,)))
    if not isinstance(split, SplitRecipe) and Path(split).suffix == ".h5":
        study = replace(study, split=(Path(split),))
    else:
        study = study.with_recipe(split if isinstance(split, SplitRecipe) else read_recipe(str(split)))
    for name in options:
        choose(f"option of {model}", name, sorted(item.name for item in fields(spec_of(model).config)))
    given = {name: Path(value) if name == "store" else value for name, value in settings.items() if name in known}
    recipe = replace(study.recipe, **{name: value for name, value in settings.items() if name in training})
    return replace(study, recipe=recipe, scorers=study.scorers.replace_options(model, options), **given)
