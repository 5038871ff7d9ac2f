"""One training run from Python: the same cell as a command's, in this process."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.progress import PlainLines
from menagerie.envs.core.validation import validate
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.recipe_file import read_recipe
from menagerie.models.recipe import Recipe
from menagerie.models.registry import check_scorer, spec_of
from menagerie.studies.frame.arm import Arm, Known
from menagerie.studies.frame.parts import Part
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.run import Running
from menagerie.studies.frame.study import SplitStudy
from menagerie.studies.runs.command_line import scorer_options
from menagerie.studies.runs.shared import first_come

if TYPE_CHECKING:
    from menagerie.models.scorer import Scorer


class Trained(NamedTuple):
    """A finished run."""

    records: Records
    """Accuracies and records of all its tests."""
    scorer: "Scorer"
    """The trained model, on its device, in evaluation mode."""


@dataclass(frozen=True)
class OneRun(SplitStudy):
    """One run of one model."""

    def plan(self, known: Known) -> Iterator[Arm]:
        model, seed = self.models[0], self.seeds - 1
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
    """Train a model on a split, or read it back where `out` has the finished run.

    `model`: a scorer by name, or FILE.py:Class. `split`: a split file (.h5), a recipe by name or as an object, or a
    TOML file.
    `options`: the model's options (`menagerie scorers`). `settings`: fields of the training recipe (`steps=500`), and
    options of studies (`architecture="nano"`, `resolution=32`, `device="cuda"`, `store="store"`). Runs in this process;
    interrupted, it goes on from its last state when it is called again.

    Raises `UserError` for input that can't work, and where the loss becomes no number.
    """
    import torch

    from menagerie.models.checkpoint import load_checkpoint
    from menagerie.studies.runs.cell import CHECKPOINT

    lines = PlainLines()

    def report(step: int, text: str) -> None:
        if lines.due():
            print(f"{job.name}: step {step} of {job.steps}, {text}", flush=True)

    study = described(check_scorer(model), split, seed, dict(options or {}), settings)
    validate(study)
    running, threads = Running(study.settled(), Path(out)), torch.get_num_threads()
    running.render(running.arms())
    (arm,) = running.arms()
    job = running.job(arm)
    try:
        with first_come(job.shared / f"{job.id}.lock", lambda step: None):
            if not job.ended:
                job.run(report, lambda: None)
    finally:
        torch.set_num_threads(threads)
    if job.problem:
        raise UserError(f"{job.name}: {job.problem}")
    scorer = load_checkpoint(job.folder / CHECKPOINT, model).to(arm.cell.device)
    return Trained(Records((arm,), Path(out)), scorer.eval())


def described(
    model: str, split: str | Path | SplitRecipe, seed: int, options: dict[str, Any], settings: dict[str, Any]
) -> OneRun:
    known = {item.name for item in fields(OneRun)} - {"models", "seeds", "split", "base", "recipe", "scorers", "out"}
    training = {item.name for item in fields(Recipe)}
    for name in settings:
        choose("setting", name, sorted(known | training))
    study = OneRun(models=(model,), seeds=seed + 1, scorers=scorer_options("small", [model]))
    if not isinstance(split, SplitRecipe) and Path(split).suffix == ".h5":
        study = replace(study, split=(Path(split),))
    else:
        study = study.with_recipe(split if isinstance(split, SplitRecipe) else read_recipe(str(split)))
    for name in options:
        choose(f"option of {model}", name, sorted(item.name for item in fields(spec_of(model).config)))
    given = {name: Path(value) if name == "store" else value for name, value in settings.items() if name in known}
    recipe = replace(study.recipe, **{name: value for name, value in settings.items() if name in training})
    return replace(study, recipe=recipe, scorers=study.scorers.replaced(model, options), **given)
