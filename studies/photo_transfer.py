"""Synthetic first, then real: how much does training on rendered scenes help on photographs?

Animals cut out of photographs are composed into scenes of the synthetic world, so that the content of an image is known
exactly. Four questions, each with a figure: (zero-shot) how well do models that were trained on rendered animals work
on photographed ones, and is the gap one of recognition or of binding? (fine-tuning) how much do a few photographs help,
from scratch and after synthetic training? (worth) how many real images reach an accuracy, with and without synthetic
training? (factors) what in the synthetic world helps?

    python studies/photo_transfer.py --preset smoke      # rendered cut-outs, under 90 seconds
    python studies/photo_transfer.py                     # Debian's tuxpaint-stamps-default
    python studies/photo_transfer.py --package stamps    # unpacked: dpkg-deb -x FILE.deb stamps
    python studies/photo_transfer.py --photos mine       # menagerie photos mine --cutouts ...

Before training, SHA-256 of the files proves that no photograph of a test is in a training set. Ends with `report.html`,
`results.csv`, a table for each question and per-record predictions in `--out`. Run again, also with further parts,
models, numbers of photographs or of images, it skips what is finished.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from menagerie.models.recipe import Recipe
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import SMOKE
from menagerie.studies.frame.parts import Chart, Facts, Heading, Paragraph, Part, Picture, Pictures, Rows, Sentence
from menagerie.studies.frame.study import grid
from menagerie.studies.sources.cut_outs import SYNTHETIC
from menagerie.studies.sources.transfer_options import FACTORS_PART, FINE_TUNING, WORTH, ZERO_SHOT
from menagerie.studies.sources.transfer_runs import BINDING, SPATIAL, TransferPlan, TransferRun

if TYPE_CHECKING:
    from menagerie.studies.frame.records import Records

SAYS = {
    ZERO_SHOT: "Models that were trained on rendered animals only, on rendered ones and on photographs in the same "
    "places, orders and relations. Photographs in their own colours have captions without textures, as have the "
    "rendered animals that they are compared with.",
    FINE_TUNING: "Accuracy on photographs that no training shows. None: the synthetic run itself. Other animals don't "
    "teach the tested animals' names, so no such run starts from scratch. Each photograph is in many composed images.",
    WORTH: "Each point is a model of its own, trained on so many distinct images, which show as many photographs of "
    "each animal as fine-tuning uses at most. 0: the synthetic run itself.",
    FACTORS_PART: "The model trained in the changed synthetic world and in the unchanged one, on the same records. "
    "views: a quarter of them. textures: four plain colours more. augmentation: none, or some if the recipe has none. "
    "backgrounds: photographs beside the world's own. vocabulary: all animals of the world, also without photographs.",
}
MEASURES = {
    "recognition": "an animal or a texture that the image doesn't show in place of one (tasks replace animal, replace "
    "texture)",
    "swaps": "two textures or two places exchanged, in the same words (task swap): binding",
    "swaps where recognised": "the same on images on which a model got all tasks of recognition right: errors there "
    "aren't due to animals or textures that it doesn't know",
}
NUMBERS = (
    "Accuracy in percent, in brackets the interval; dotted: chance. Only records count whose animal pairs no training "
    "run of a comparison shows, rendered or photographed."
)
WORTHS = (
    "The fewest images, of the numbers tried, whose mean over seeds reaches a target; and how many times more it takes "
    "from scratch than after synthetic training. `>`: not reached with the most images, so that the ratio is a bound. "
    "`–`: reached in neither way. A model that needs no image after synthetic training counts as needing one. The "
    "interval is over draws of seeds and animal pairs; draws in which neither way reaches the target have no ratio; "
    "above 5 % of them it is unbounded."
)
WORTH_HEADER = (
    *("model", "measure", "target (%)", "images from scratch", "images after synthetic", "ratio", "95 % interval"),
)
TRAINED_ON_SAYS = (
    "How much of each test its training had, by name: a photographed and a rendered cat are the same animal, but not "
    "the same image. The numbers above leave out all records of animal pairs that a training had."
)
DISJOINT = "No photograph of a test is trained on: the files of both worlds were compared by SHA-256, not by name."
SAMPLES = 5  # images of a test on the page


@dataclass(frozen=True)
class PhotoTransfer(TransferPlan):
    """Synthetic first, then real: what training in a rendered world buys on photographs"""

    def prepare(self, out: Path) -> TransferPlan:
        """Write the worlds into the study's folder, print the questions that can't be answered, and return the study
        with the worlds."""
        study = self.with_worlds(out)
        for line in study.unanswerable():
            print(line, flush=True)
        return study

    def as_recorded(self) -> "PhotoTransfer":
        return replace(self, prepared=None)

    def plan(self, known: KnownResults) -> Iterable[Arm]:
        """Plan the runs of all questions. Before `prepare` has read the photographs, plan only the plain runs of each
        model."""
        return self.runs(known).values() if self.prepared else grid(self)

    def runs(self, known: KnownResults) -> dict[TransferRun, Arm]:
        """Map each training to its run. Trainings whose starting weights don't exist yet are left out."""
        arms: dict[TransferRun, Arm] = {}
        for run in self.every_run:
            start = known.weights(arms[run.start], SYNTHETIC) if run.start else None
            if start or not run.start:
                cell = self.cell_in(run, start)
                arms[run] = Arm(cell, cell.axes)
        return arms

    def page(self, records: "Records") -> Iterator[Part]:
        """Yield a figure and a table for each question, what training had of the tests, and the photographs."""
        from menagerie.generators.trained_on import COUNTED
        from menagerie.studies.frame.estimate import estimate_or_dash
        from menagerie.studies.report.figures import model_label
        from menagerie.studies.sources.transfer_answers import SIDES, Answers, side_chart

        if self.rehearsed:
            yield Sentence("A rehearsal: cut-outs of rendered animals replace photographs; the numbers mean nothing.")
        finished = {arm.id for arm, _ in records.results}
        done = {run: arm for run, arm in self.runs(records).items() if arm.id in finished}
        answers = Answers(self, done, records)
        yield Paragraph(NUMBERS)
        yield Facts(MEASURES)
        yield from map(Sentence, self.unanswerable())
        for question in self.parts:
            rows = answers.rows(question)
            if not rows:
                continue
            setting, first, second = SIDES[question]
            header = ("model", setting, "tested on", "measure", f"{first} (%)", f"{second} (%)", f"{second} − {first}")
            yield Heading(question[0].upper() + question[1:], SAYS[question])
            yield Chart(question, side_chart(question, rows))
            table = [[model_label(r[0]), *map(str, r[1:4]), *map(estimate_or_dash, r[4:])] for r in rows]
            yield Rows(f"{question}-images" if question == WORTH else question, header, table)
            if question == WORTH:
                yield Rows(WORTH, WORTH_HEADER, list(answers.worth(self.targets)), says=WORTHS)
        yield Heading("What training had of the tests")
        place = ("split", "trained on", "images drawn", "changed", "seed", "test")
        header = (*place, *COUNTED, "records of what it calls unseen")
        trained = list(answers.trained_on())
        yield Rows("trained-on", header, trained, says=TRAINED_ON_SAYS, folded="All trainings and tests")
        yield from self.photograph_parts()

    def photograph_parts(self) -> Iterator[Part]:
        """Yield the numbers of photographs, the check that none is both trained on and tested, and images of tests."""
        there = self.ready.photographs
        text = f"Photographs of each tested animal; {len(there.several)} animals have several."
        yield Heading("The photographs", f"{text} There are {len(there.others)} other animals.")
        yield Facts({name: f"{len(files)}" for name, files in there.tested.items()})
        if self.ready.audit:
            header = ["photographs in training", "number", "photographs tested", "their number", "in both"]
            yield Rows("audit", header, [list(map(str, row)) for row in self.ready.audit], says=DISJOINT)
        for kind in (BINDING, SPATIAL) if ZERO_SHOT in self.parts else (BINDING,):
            for test in self.tests_of(TransferRun(self.models[0], 0, kind)):
                pictures = [Picture(*swap) for swap in test.sample_swaps(SAMPLES)]
                name = f"samples-{kind}-{test.label.replace(', ', '-')}"
                yield Pictures(name, pictures, says=f"{kind}, {test.label}.")


PRESETS: dict[str, PhotoTransfer] = {
    "smoke": PhotoTransfer(
        **SMOKE | {"recipe": Recipe(steps=60, batch=32, warmup=5), "pairs": 0.5},
        **{"views": 2, "spatial_views": 1, "seeds": 1, "rehearsal": True, "tuning_steps": 20},
        **{"photographs": (1,), "other_animals": (4,), "images": (16, 64), "targets": (0.55, 0.7)},
        **{"factors": ("augmentation",)},
    ),
    "laptop": PhotoTransfer(
        tuned="laptop", resolution=32, recipe=Recipe(steps=800), views=8, test_views=2, test_scenes=200
    ),
    # For a GPU.
    "large": PhotoTransfer(
        **{"tuned": "laptop", "resolution": 128, "recipe": Recipe(steps=4000), "tuning_steps": 1000, "seeds": 5},
        **{"models": ("clip", "negclip", "oc-clip"), "factor_models": ("clip", "oc-clip"), "loaders": 4},
    ),
}

if __name__ == "__main__":
    main(PRESETS)
