"""From synthetic scenes to photographs: training on captioned photographs, then real benchmarks.

Training is on photographs alone, after rendered scenes, or mixed with them; one command does all.

    python studies/real_data.py --preset smoke             # rendered files replace those of COCO
    python studies/real_data.py --check --data-root DATA   # which data are complete, and what to get

A cell is a model on sources with a parser, a share of rendered scenes, starting weights and a seed. Photographs of
tests are left out of training and counted.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from menagerie.generators.splits.binding import BindingRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import PAPER_RECIPES, recipe_line, title_of
from menagerie.studies.frame.command import main
from menagerie.studies.frame.parts import Curves, Facts, Heading, Part, Rows, Sentence
from menagerie.studies.frame.study import AnyStudy
from menagerie.studies.runs.command_line import scorer_options
from menagerie.studies.sources.photograph_options import NONE, PhotographStudy, TrainedOn

if TYPE_CHECKING:
    from menagerie.studies.frame.records import Records
    from menagerie.studies.scoring.page import Score

AXES = ("model", *TrainedOn._fields)
HELD_OUT, HEADLINE = "held-out captions", "headline"
LEFT_OUT = (
    "Photographs that a test shows are left out; a twentieth of the others is held out, by a hash of their names. "
    "Held-out captions: which of up to five captions belongs to a photograph that was not trained on; nothing is "
    "selected by it."
)
TRAINED = (
    "A line for each finished cell; all numbers are in `cells/*/training.csv`. Losses of models differ in "
    "scale. Validation: accuracy on the captions of held-out photographs, and chance as a dotted line."
)


@dataclass(frozen=True)
class RealTraining(PhotographStudy):
    """Training on photographs"""

    prepared: Annotated[Any, tyro.conf.Fixed, tyro.conf.Suppress] = field(default=None, repr=False, compare=False)
    """The photographs, the cells and the benchmarks (`PreparedPhotographs`), once `prepare` has read them."""

    @property
    def title(self) -> str:
        return f"Training on photographs: {', '.join(map(title_of, self.models))}"

    @property
    def work(self) -> ModuleType:
        """What reads photographs; it loads torch."""
        from menagerie.studies.sources import photograph_study

        return photograph_study

    @property
    def pages(self) -> ModuleType:
        """What writes pages of scored models; it loads pandas."""
        from menagerie.studies.scoring import page

        return page

    def check_given(self, preset: AnyStudy) -> None:
        self.work.check(self, preset)

    def idle_options(self, preset: AnyStudy) -> Iterator[str]:
        if self.epochs and self.recipe.steps != preset.recipe.steps:
            yield "--steps changes nothing beside --epochs, the passes over the photographs; add --epochs 0"
        given = {"--split": self.split, "--recipe": self.base != preset.base, "--world": self.world != preset.world}
        if given["--recipe"] and self.split:
            yield "--recipe changes nothing beside --split, whose file decides it"
        for flag in [flag for flag, its in given.items() if its and not any(self.mix)]:
            if flag == "--split" or not self.rehearse:
                yield f"{flag} names the scenes for --mix, which is 0; give a share such as --mix 0.5"

    def instead(self) -> int | None:
        """With --check, print which data are complete and return the exit status, 1 if some aren't."""
        return self.work.report_states(self) if self.check_only else None

    def check(self) -> None:
        """Raise for pretrained weights that aren't here and can't be fetched."""
        from menagerie.envs.core.processes import call_in_child

        if self.pretrained:
            call_in_child(self.work.check_pretrained, self.architecture, self.pretrained)

    def prepare(self, out: Path) -> "RealTraining":
        """Read the photographs (with `rehearse`, render them first) and the benchmarks."""
        return replace(self, prepared=self.work.prepare_photographs(self, out))

    def as_recorded(self) -> "RealTraining":
        return replace(self, prepared=None)

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        """Plan all cells, and the benchmarks of each finished cell; before `prepare` only cells on rendered scenes."""
        yield from self.prepared.arms if self.prepared else self.plain_grid().plan(known)
        for arm in self.prepared.arms if self.prepared else ():
            subjects = self.prepared.subjects.get(arm.labels["parser"], ())
            yield from self.work.benchmark_arms(self, subjects, arm, known)

    def notes(self) -> dict[str, str]:
        """Return each model's recipe on each set of sources, whose numbers of photographs decide the steps."""
        images = {sources: there.numbers.images for (sources, _), there in self.prepared.photos.items()}
        return {
            f"recipe of {model} on {sources}": recipe_line(self.plain_grid(count), model)
            for model in self.models
            for sources, count in images.items()
        }

    def tables(self, records: "Records") -> None:
        """Write `cells.jsonl`, and `results.csv` with the numbers on held-out photographs and on benchmarks."""
        import pandas as pd

        from menagerie.studies.analysis.tables import to_csv
        from menagerie.studies.frame.records import write_cells
        from menagerie.studies.scoring.benchmarks import NUMBERS

        write_cells(records.where(lambda arm: arm.trains))
        columns = (*AXES, "seed", "benchmark", "kind", "name", *NUMBERS, "cell")
        frame = pd.DataFrame(score_rows(records), columns=list(columns))
        to_csv(records.out / "results.csv", frame.astype(dict.fromkeys(NUMBERS[:3], float)))

    def page(self, records: "Records") -> "Iterator[Part]":
        """Yield the best models, what they were trained on and how, and all numbers."""
        if self.rehearse:
            yield Sentence("A rehearsal: rendered scenes in the files of COCO's format replace photographs.")
        pieces = records.where(lambda arm: not arm.trains)
        yield from self.pages.score_page(pieces, self.scores(records), self.training_parts(records))

    def training_parts(self, records: "Records") -> "Iterator[Part]":
        """Yield what cells were trained on, what they took over from starting weights, and how they trained."""
        from menagerie.models.carry_over import Carried
        from menagerie.studies.scoring import benchmarks

        rows = []
        for (sources, parser), there in self.prepared.photos.items():
            its = there.numbers
            left = ", ".join(f"{count} {reason}" for reason, count in (*its.left_out, *its.refused))
            numbers = map(str, (its.images, its.held_out, its.captions))
            false = ", ".join(f"{count} {kind}" for kind, count in its.false)
            rows.append(
                [
                    sources,
                    parser,
                    *numbers,
                    left or "none",
                    its.parsed or "–",
                    *([false or "none"] if self.false_captions else ()),
                ]
            )
        header = ("sources", "parser", "photographs", "held out", "captions", "left out", "parsed")
        header = (*header, "with false ones") if self.false_captions else header
        yield Heading("What was trained on")
        yield Rows("data", header, rows, says=LEFT_OUT)
        carried = {arm.cell.name: its["carried"] for arm, its in records.results if "carried" in its}
        if carried:
            yield Heading("What was carried over")
            yield Facts({name: Carried.from_record(its).text for name, its in carried.items()})
        cells = records.where(lambda arm: arm.trains)
        yield Heading("How they trained")
        yield Curves("training", cells, varying_axes(records), chance=self.chance, says=TRAINED)
        yield from benchmarks.parts(records, self.scores(records))

    @property
    def chance(self) -> float:
        from menagerie.studies.sources.photographs import OTHERS

        fewest = min(there.numbers.held_out for there in self.prepared.photos.values())
        return 1 / (1 + min(OTHERS, fewest - 1))

    def scores(self, records: "Records") -> "list[Score]":
        """Return the numbers by model and place, in the mean over seeds, and those that papers report."""
        from menagerie.models.registry import short_name
        from menagerie.studies.scoring.benchmarks import benchmark_scores

        subjects = {arm.cell.label: arm.cell.subject for arm in records.arms if not arm.trains}
        varying = varying_axes(records)
        rows = []
        for row in score_rows(records):
            model = ", ".join([short_name(row["model"]), *(f"{name} {row[name]}" for name in varying)])
            rows.append(row | {"model": model, "tie_rate": None})
        return benchmark_scores(rows, subjects, not self.rehearse, self.chance)

    def conclude(self, records: "Records") -> None:
        self.pages.print_headlines(self.scores(records))


def score_rows(records: "Records") -> "Iterator[dict[str, Any]]":
    """Yield the rows of results.csv: of each finished cell, its results on held-out photographs and on benchmarks."""
    from menagerie.studies.scoring.page import binomial
    from menagerie.studies.sources.photographs import GROUP

    scored: dict[str, list[tuple[Any, Any]]] = {}
    for arm, result in records.results:
        if not arm.trains:
            scored.setdefault(arm.labels["cell"], []).append((arm.cell, result))
    for arm, result in records.results:
        if arm.trains:
            place = {name: arm.place.get(name, NONE) for name in AXES} | {"seed": arm.cell.seed, "cell": arm.id}
            test = result["subsets"]["validation"][GROUP]
            numbers = {name: test[name] for name in ("official", "tie_rate", "n")} | {"neutral": test["accuracy"]}
            held_out = {"benchmark": HELD_OUT, "kind": HEADLINE, "name": ""}
            yield place | held_out | numbers | binomial(test["official"], test["n"])
            yield from (row | place for piece, its in scored.get(arm.id, ()) for row in piece.rows(its))


def varying_axes(records: "Records") -> list[str]:
    """Return the fields that differ between cells, apart from model and seed."""
    places = [arm.place for arm, _ in records.results if arm.trains]
    return [name for name in AXES[1:] if len({place.get(name, NONE) for place in places}) > 1]


# Section 4.2 of OC-CLIP's paper and its appendix A.8. Rates are those of each model's paper (`ScorerSpec.pretrained`):
# of OpenCLIP-FT 4e-6; of OC-CLIP 2e-4, 2e-5 for its text tower and 1e-6 for its image tower.
FINE_TUNED = {
    "sources": ("coco+visual_genome+gqa",),
    "seeds": 3,
    "resolution": 224,
    "architecture": "ViT-B-16",
    "pretrained": "laion2b_s34b_b88k",
    "scorers": scorer_options("paper"),
    "loaders": 8,
}
PARSED_BY_LLAMA = "llm:model=meta-llama/Meta-Llama-3-8B-Instruct"
OC_CLIP = FINE_TUNED | {
    "models": ("oc-clip",),
    "parser": (PARSED_BY_LLAMA,),
    "epochs": 100.0,
    "recipe": Recipe(batch=128),
}
# Models that train with false captions: OpenAI's ViT-B/32 on COCO, with the rates of `ScorerSpec.pretrained` and the
# batches and epochs of each one's code. Where its rows are captions, an epoch is five passes over photographs here.
FALSELY = FINE_TUNED | {"sources": ("coco",), "seeds": 1, "architecture": "ViT-B-32", "pretrained": "openai"}
PRESETS: dict[str, RealTraining] = {
    "smoke": RealTraining(
        rehearse=True,
        benchmarks=("retrieval-coco-val2017",),
        unknown_words="skip",
        mix=(0.0, 0.5),
        world="tiny",
        base=BindingRecipe(world="tiny", pairs=0.5, hard_negatives=1.0, views=2, test_views=1, test_scenes=24),
        resolution=32,
        architecture="nano",
        epochs=0.0,
        recipe=Recipe(steps=60, batch=32, warmup=5),
        scorers=scorer_options("smoke"),
    ),
    "laptop": RealTraining(),
    "openclip-ft": RealTraining(**FINE_TUNED, models=("clip",), epochs=20.0, recipe=Recipe(batch=256)),
    "oc-clip": RealTraining(**OC_CLIP),
    "oc-clip-b14": RealTraining(**OC_CLIP | {"architecture": "ViT-B-14-DINOv2", "pretrained": "laion2b_s34b_b88k"}),
    # Figure 5: one model, COCO alone, three parsers.
    "figure5": RealTraining(**OC_CLIP | {"sources": ("coco",), "parser": ("spacy-rules", "t5", PARSED_BY_LLAMA)}),
    # Section 4.3.1 and appendix A.2; the rates are `ScorerSpec.scratch`.
    "cc12m": RealTraining(
        **FINE_TUNED | {"sources": ("tar_shards",), "seeds": 1, "pretrained": ""},
        tuned=PAPER_RECIPES,
        parser=(PARSED_BY_LLAMA,),
        epochs=20.0,
        recipe=Recipe(batch=4096),
    ),
    # Tables 1, 2, 3 and 5. vinid/neg_clip; how many rows its table has for a photograph isn't known to us.
    "negclip": RealTraining(
        **FALSELY, models=("negclip",), false_captions=("negclip",), epochs=5.0, recipe=Recipe(batch=256)
    ),
    # Tables 1 and 5. run_multiple_nodes.sh: 10 epochs of captions, 378 on each of four GPUs. Of its four false captions
    # of each caption a step has two: exchanged nouns, and one of those with a word replaced.
    "ce-clip": RealTraining(
        **FALSELY,
        models=("ce-clip",),
        false_captions=("ce-clip",),
        epochs=50.0,
        recipe=Recipe(batch=1512, text_negatives=("swap", "replace")),
    ),
    # README of ytaek-oh/fsc-clip. Its replaced words are WordNet's; ours are listed values.
    "fsc-clip": RealTraining(
        **FALSELY,
        models=("fsc-clip",),
        false_captions=("made:exchange words,replace attribute,shuffle pairs",),
        epochs=5.0,
        recipe=Recipe(batch=256, text_negatives=("swap", "replace", "shuffle")),
    ),
    # configs/coco_ft.yaml: 5 epochs of captions.
    "cs-clip": RealTraining(
        **FALSELY, models=("cs-clip",), false_captions=("cs-clip",), epochs=25.0, recipe=Recipe(batch=128)
    ),
    # config/train_read_clip.yaml: 5 epochs of photographs. It has three exchanges of each caption in a step, we one.
    "read-clip": RealTraining(
        **FALSELY, models=("read-clip",), false_captions=("made:exchange words",), epochs=5.0, recipe=Recipe(batch=256)
    ),
    # kdariina/CLIP-not-BoW-unimodally: 10 epochs, with CLIP as released; here that is fine-tuned first. Its rate on
    # COCO is 1e-3; `ScorerSpec.pretrained` has that on synthetic images, 1e-2.
    "labclip": RealTraining(
        **FALSELY, models=("labclip",), false_captions=("made:reorder words",), epochs=10.0, recipe=Recipe(batch=1024)
    ),
    # Raphoo/DCSM_Ideal_CLIP: ViT-B/16, batches of 8. Its captions with negations and its epochs are unknown to us.
    "dcsm": RealTraining(
        **FALSELY | {"architecture": "ViT-B-16"}, models=("dcsm",), false_captions=("made",), recipe=Recipe(batch=8)
    ),
}

if __name__ == "__main__":
    main(PRESETS)
