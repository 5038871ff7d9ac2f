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

Before training, SHA-256 of the files proves that no photograph of a test is in a training set.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from menagerie.models.recipe import Recipe
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import SMOKE
from menagerie.studies.frame.parts import Chart, Facts, Heading, Paragraph, Part, Rows, Sentence
from menagerie.studies.frame.study import grid
from menagerie.studies.sources.transfer_data import SYNTHETIC
from menagerie.studies.sources.transfer_plan import FACTORS, FINE_TUNING, WORTH, ZERO_SHOT, TransferPlan, TransferRun

if TYPE_CHECKING:
    from menagerie.studies.frame.records import Records

# What a question varies, the two sides that it compares, and what its page says.
SCRATCH = ("from scratch", "after synthetic")
QUESTIONS = {
    ZERO_SHOT: (
        ("split", "rendered", "photographed"),
        "Models that were trained on rendered animals only, on rendered ones and on photographs in the same places, "
        "orders and relations. Photographs in their own colours have captions without textures, as have the rendered "
        "animals that they are compared with.",
    ),
    FINE_TUNING: (
        ("photographs in training", *SCRATCH),
        "Accuracy on photographs that no training shows. None: the synthetic run itself. Other animals don't teach the "
        "tested animals' names, so no such run starts from scratch. Each photograph is in many composed images.",
    ),
    WORTH: (
        ("images of photographs", *SCRATCH),
        "Each point is a model of its own, trained on so many distinct images, which show as many photographs of each "
        "animal as fine-tuning uses at most. 0: the synthetic run itself. The table has the fewest images, of those "
        "tried, whose mean over seeds reaches a target, and how many times more it takes from scratch. `>`: not "
        "reached with the most images, so that the ratio is a bound. `–`: reached in neither way. A model that needs "
        "no image counts as needing one. The interval is over draws of seeds and animal pairs; draws without a ratio "
        "are left out, and above 5 % of them it is unbounded.",
    ),
    FACTORS: (
        ("changed", "as it is", "changed world"),
        "The model trained in the changed synthetic world and in the unchanged one, on the same records. views: a "
        "quarter of them. textures: four plain colours more. augmentation: none, or some if the recipe has none. "
        "backgrounds: photographs beside the world's own. vocabulary: all animals of the world, also without "
        "photographs.",
    ),
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
    "run of a comparison shows, rendered or photographed. No photograph of a test is trained on: the files of both "
    "were compared by SHA-256."
)
WORTH_HEADER = ("model", "measure", "target (%)", *(f"images {way}" for way in SCRATCH), "ratio", "95 % interval")


@dataclass(frozen=True)
class PhotoTransfer(TransferPlan):
    """Synthetic first, then real: what training in a rendered world buys on photographs"""

    def prepare(self, out: Path) -> TransferPlan:
        """Write the worlds, print what can't be answered, and return the study with the worlds."""
        study = self.with_worlds(out)
        for line in study.unanswerable():
            print(line, flush=True)
        return study

    def as_recorded(self) -> "PhotoTransfer":
        return replace(self, prepared=None)

    def plan(self, known: KnownResults) -> Iterable[Arm]:
        """Plan the runs of all questions; before `prepare` only the plain runs of each model."""
        return self.runs(known).values() if self.prepared else grid(self)

    def runs(self, known: KnownResults) -> dict[TransferRun, Arm]:
        """Map each run to its arm. Runs whose starting weights don't exist yet are left out."""
        arms: dict[TransferRun, Arm] = {}
        for run in self.runs_of(*self.parts):
            start = known.weights(arms[run.start], SYNTHETIC) if run.start else None
            if start or not run.start:
                cell = self.cell_in(run, start)
                arms[run] = Arm(cell, cell.axes)
        return arms

    def page(self, records: "Records") -> Iterator[Part]:
        from menagerie.models.registry import short_name
        from menagerie.studies.frame.estimate import estimate_or_dash
        from menagerie.studies.sources.transfer_answers import Answers, side_chart

        if self.rehearsed:
            yield Sentence("A rehearsal: cut-outs of rendered animals replace photographs; the numbers mean nothing.")
        finished = {arm.id for arm, _ in records.results}
        answers = Answers(self, {run: arm for run, arm in self.runs(records).items() if arm.id in finished}, records)
        yield Paragraph(NUMBERS)
        yield Facts(MEASURES)
        yield from map(Sentence, self.unanswerable())
        for question in self.parts:
            if not (rows := answers.rows(question)):
                continue
            (setting, first, second), says = QUESTIONS[question]
            yield Heading(question.capitalize(), says)
            yield Chart(question, side_chart(rows, setting, (first, second)))
            header = ("model", setting, "tested on", "measure", f"{first} (%)", f"{second} (%)", f"{second} − {first}")
            table = [[short_name(row[0]), *map(str, row[1:4]), *map(estimate_or_dash, row[4:])] for row in rows]
            if question == WORTH:
                header, table = WORTH_HEADER, list(answers.worth(self.targets))
            yield Rows(question, header, table)


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
