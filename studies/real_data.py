"""From synthetic scenes to photographs: training on captioned photographs, then real benchmarks.

Training is on photographs alone, after rendered scenes, or mixed with them; one command does all.

    python studies/real_data.py --preset smoke             # rendered files replace those of COCO
    python studies/real_data.py --check --data-root DATA   # which data are complete, and what to get
    python studies/real_data.py --preset oc-clip --data-root DATA --device cuda

A cell is a model on sources with a parser, a share of rendered scenes, starting weights and a seed. Photographs of
tests are left out of training and counted. Ends with `report.html`, `results.csv`, `cells.jsonl` and, in `benchmarks/`,
the scores of every record. Run again, it skips what is finished and continues an interrupted run from its last state.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import tyro

from menagerie.envs.core.options import DATA, FIRST, PLACE, TRAINING, WHAT
from menagerie.envs.core.validation import SHARE, SIDE, Range, Several
from menagerie.generators.parsers.registry import DEFAULT
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import PAPER_RECIPES, title_of
from menagerie.studies.frame.command import main
from menagerie.studies.frame.options import GROWS, Axis
from menagerie.studies.frame.study import Study
from menagerie.studies.runs.command_line import ModelOptions, scorer_options

if TYPE_CHECKING:
    from menagerie.generators.sources.folders import Given
    from menagerie.studies.frame.parts import Part
    from menagerie.studies.frame.records import Records
    from menagerie.studies.pages.real_data import RealPage


@dataclass(frozen=True)
class RealTraining(ModelOptions, Study):
    """Training on photographs"""

    sources: Axis[str] = ("coco",)
    """Training sources: a+b trains on both, a b on each."""
    parser: Axis[str] = (DEFAULT,)
    """Parsers of captions, for models that read graphs. NAME or NAME:OPTION=VALUE,… (docs/parsing.md)."""
    mix: Annotated[Axis[float], SHARE] = (0.0,)
    """Shares of rendered scenes in each batch, from 0 to 1."""
    starts: Annotated[tuple[str, ...], tyro.conf.arg(name="from"), WHAT, FIRST, GROWS, Several()] = ()
    """Weights to start with: a run, a cell, a checkpoint, or none. They must be of the same models and towers."""
    benchmarks: Annotated[tuple[str, ...], WHAT, FIRST, GROWS] = ()
    """Benchmarks on which models are scored in the end. Without any, all that are complete in --data-root."""
    check_only: Annotated[bool, tyro.conf.arg(name="check"), WHAT, FIRST, GROWS] = False
    """Only report which data are complete, and what to get for others. Says from where and under which licence."""
    data_root: Annotated[Path, DATA, FIRST, GROWS] = Path("data")
    """Folder of sources and benchmarks (docs/transfer.md)."""
    images: Annotated[tuple[str, ...], DATA, GROWS] = ()
    """Folders of images that lie elsewhere, such as coco/train2017=/data/coco/train2017."""
    caption: Annotated[str, DATA] = ""
    """Kind of captions, for sources with several kinds; empty takes the first kind of each."""
    rehearse: Annotated[bool, DATA] = False
    """Render scenes of --world into --out as files of COCO, and train on these instead of photographs."""
    split: Annotated[tuple[Path, ...], DATA] = ()
    """A split file for --mix."""
    world: Annotated[str, DATA] = "pug"
    """World of the scenes for --mix, without --split and --recipe."""
    base: Annotated[SplitRecipe | None, tyro.conf.Fixed, tyro.conf.Suppress] = None
    """The recipe that `--recipe` names."""
    resolution: Annotated[int, DATA, FIRST, SIDE] = 64
    """Side of the square images, in pixels."""
    allow_missing: Annotated[bool, DATA, GROWS] = False
    """Score the other records of a benchmark where images are missing."""
    allow_unknown: Annotated[bool, DATA] = False
    """Train even if files are missing that list the photographs of tests; the counts say so."""
    allow_unanswered: Annotated[bool, DATA, GROWS] = False
    """Take a graph of one node for captions without an answer of the parser's server."""
    unknown_words: Annotated[Literal["refuse", "skip"], DATA, GROWS] = "refuse"
    """What to do if a model's own vocabulary lacks words of a benchmark: refuse the benchmark, or skip the words."""
    epochs: Annotated[float, TRAINING, FIRST, Range(0.0, 1_000_000.0)] = 20.0
    """Passes over the photographs at --mix 0. They decide the steps, the same with any --mix; 0 takes --steps."""
    parses: Annotated[Path, PLACE, GROWS] = Path("parses")
    """Folder of the graphs that are kept, also by menagerie parse."""
    prepared: Annotated[Any, tyro.conf.Fixed, tyro.conf.Suppress] = field(default=None, repr=False, compare=False)
    """The photographs, the cells and the benchmarks, once they are read."""

    @property
    def title(self) -> str:
        """The heading, with the models."""
        return f"Training on photographs: {', '.join(map(title_of, self.models))}"

    @property
    def folders(self) -> "Given":
        """Map each folder that `--images` replaces to the folders that are searched instead."""
        from menagerie.studies.real_training.check import folders_of

        return folders_of(self)

    def with_recipe(self, recipe: SplitRecipe) -> "RealTraining":
        """Return the study with rendered scenes of the user's recipe."""
        return replace(self, base=recipe, world=recipe.world)

    def check_given(self, preset: "RealTraining") -> None:
        from menagerie.studies.real_training.check import check

        check(self, preset)

    def instead(self) -> int | None:
        """With --check, print which data are complete and return the exit status, 1 if some aren't. Else return
        None."""
        from menagerie.studies.real_training.check import report_states

        return report_states(self) if self.check_only else None

    def check(self) -> None:
        """Raise for pretrained weights that aren't here and can't be fetched."""
        from menagerie.envs.core.processes import call_in_child
        from menagerie.studies.real_training.check import check_pretrained

        if self.pretrained:
            call_in_child(check_pretrained, self.architecture, self.pretrained)

    def prepare(self, out: Path) -> "RealTraining":
        """Read the photographs (with `rehearse`, render them first) and the benchmarks."""
        from menagerie.studies.real_training.describe import prepare_photographs

        return replace(self, prepared=prepare_photographs(self, out))

    def as_recorded(self) -> "RealTraining":
        return replace(self, prepared=None)

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        """Plan all cells, and the benchmarks of each finished cell. Before `prepare` has read the photographs, plan
        only the models on rendered scenes."""
        from menagerie.studies.real_training.cells import benchmark_arms, plain_grid

        yield from self.prepared.arms if self.prepared else plain_grid(self).plan(known)
        for arm in self.prepared.arms if self.prepared else ():
            yield from benchmark_arms(self, arm, known)

    def notes(self) -> dict[str, str]:
        """Return each model's recipe, for each set of sources if their numbers of steps differ."""
        from menagerie.studies.real_training.cells import recipe_lines

        return recipe_lines(self, self.prepared.photos)

    def tables(self, records: "Records") -> None:
        self.page_of(records).write_tables()

    def page(self, records: "Records") -> "Iterator[Part]":
        return self.page_of(records).parts()

    def export(self, records: "Records") -> None:
        """Write `results.tex`, and the page and tables of all benchmarks into a folder of their own."""
        self.page_of(records).export()

    def conclude(self, records: "Records") -> None:
        """Print what was taken over from starting weights, and the main results."""
        self.page_of(records).print_results()

    def page_of(self, records: "Records") -> "RealPage":
        """Return the page and tables of the finished runs."""
        from menagerie.studies.pages.real_data import RealPage

        return RealPage(self, records)


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
}

if __name__ == "__main__":
    main(PRESETS)
