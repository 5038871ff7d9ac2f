"""From synthetic scenes to photographs: training on captioned photographs, then real benchmarks.

Training is on photographs alone, after rendered scenes, or mixed with them; one command does all.

    python studies/real_data.py --preset smoke             # rendered files replace those of COCO
    python studies/real_data.py --check --data-root DATA   # which data are complete, and what to get
    python studies/real_data.py --preset oc-clip --data-root DATA --device cuda

A cell is a model on sources with a parser, a share of rendered scenes, starting weights and a seed. Photographs of
tests are left out of training and counted. Ends with `report.html`, `results.csv`, `cells.jsonl` and, in `benchmarks/`,
the scores of every record. Run again, it skips what is finished and continues an interrupted run from its last state.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from menagerie.generators.splits.binding import BindingRecipe
from menagerie.models.carry_over import Carried
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.cells import PAPER_RECIPES, title_of
from menagerie.studies.frame.command import main
from menagerie.studies.frame.parts import Curves, Facts, Heading, Paragraph, Part, Sentence
from menagerie.studies.frame.study import AnyStudy
from menagerie.studies.runs.command_line import scorer_options
from menagerie.studies.sources.photograph_options import NONE, PhotographStudy, TrainedOn

if TYPE_CHECKING:
    import pandas as pd

    from menagerie.studies.frame.records import Records
    from menagerie.studies.scoring.levels import Levels
    from menagerie.studies.sources.photograph_reading import PreparedPhotographs

AXES = ("model", *TrainedOn._fields)
HELD_OUT, HEADLINE = "held-out captions", "headline"
SCORES = "official scores in percent, mean and deviation over seeds"
NOT_ALL = (
    "So these numbers are no results of the benchmark: images are missing, or texts have words that a model can't read "
    "(summed over cells)."
)
HEADLINES = (
    "Measured here, except in rows marked theirs, which papers report: by the official rule of each benchmark, in "
    "percent; the mean over seeds and, if there are several, the standard deviation. `mix` is the share of rendered "
    "scenes in a batch, `start` the weights that a run began with, `parser` what made its scene graphs, in training "
    "and of benchmarks. `held-out captions`: which of up to five captions belongs to a photograph that was not "
    "trained on; nothing is selected by it."
)
LEFT_OUT = (
    "Photographs that a test shows are left out; a twentieth of the others is held out, by a hash of their names."
)
TRAINED = (
    "A line for each finished cell. Loss, learning rate and speed are means over neighbouring steps; losses of "
    "different models have different scales. Validation: accuracy on the captions of held-out photographs; the dotted "
    "line is chance. All numbers: `cells/*/training.csv`."
)


@dataclass(frozen=True)
class RealTraining(PhotographStudy):
    """Training on photographs"""

    prepared: Annotated[Any, tyro.conf.Fixed, tyro.conf.Suppress] = field(default=None, repr=False, compare=False)
    """The photographs, the cells and the benchmarks (`PreparedPhotographs`), once they are read."""

    @property
    def title(self) -> str:
        """The heading, with the models."""
        return f"Training on photographs: {', '.join(map(title_of, self.models))}"

    @property
    def ready(self) -> "PreparedPhotographs":
        """What was read; raises before `prepare`."""
        assert self.prepared
        return self.prepared

    def check_given(self, preset: AnyStudy) -> None:
        from menagerie.studies.sources.photograph_checks import check

        check(self, preset)

    def instead(self) -> int | None:
        """With --check, print which data are complete and return the exit status, 1 if some aren't. Else return
        None."""
        from menagerie.studies.sources.photograph_checks import report_states

        return report_states(self) if self.check_only else None

    def check(self) -> None:
        """Raise for pretrained weights that aren't here and can't be fetched."""
        from menagerie.envs.core.processes import call_in_child
        from menagerie.studies.sources.photograph_checks import check_pretrained

        if self.pretrained:
            call_in_child(check_pretrained, self.architecture, self.pretrained)

    def prepare(self, out: Path) -> "RealTraining":
        """Read the photographs (with `rehearse`, render them first) and the benchmarks."""
        from menagerie.studies.sources.photograph_reading import prepare_photographs

        return replace(self, prepared=prepare_photographs(self, out))

    def as_recorded(self) -> "RealTraining":
        return replace(self, prepared=None)

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        """Plan all cells, and the benchmarks of each finished cell. Before `prepare` has read the photographs, plan
        only the models on rendered scenes."""
        from menagerie.studies.sources.photograph_cells import benchmark_arms

        yield from self.prepared.arms if self.prepared else self.plain_grid().plan(known)
        for arm in self.prepared.arms if self.prepared else ():
            yield from benchmark_arms(self, self.prepared.subjects.get(arm.labels["parser"], ()), arm, known)

    def notes(self) -> dict[str, str]:
        """Return each model's recipe, for each set of sources if their numbers of steps differ."""
        from menagerie.studies.sources.photograph_cells import recipe_lines

        return recipe_lines(self, self.ready.photos)

    def tables(self, records: "Records") -> None:
        """Write `cells.jsonl` and `results.csv` from what is finished."""
        from menagerie.studies.analysis.tables import to_csv
        from menagerie.studies.frame.records import write_cells

        write_cells(of_cells(records))
        to_csv(records.out / "results.csv", score_table(records))

    def export(self, records: "Records") -> None:
        """Write the headlines as `results.tex`, and tables and page of all benchmarks into a folder of their own."""
        from menagerie.envs.core.files import write_text
        from menagerie.studies.analysis.tables import to_latex
        from menagerie.studies.frame.page import write_report
        from menagerie.studies.frame.records import Records
        from menagerie.studies.scoring import benchmark_page
        from menagerie.studies.scoring.benchmark_piece import PIECES
        from menagerie.studies.sources.photograph_cells import BENCHMARKS

        table = self.headlines(score_table(records))
        write_text(records.out / "results.tex", to_latex(table, f"{SCORES[0].upper()}{SCORES[1:]}."))
        arms = tuple(arm._replace(cell=replace(arm.cell, below=PIECES)) for arm in records.arms if not arm.trains)
        if arms:
            inner = Records(arms, records.out / BENCHMARKS)
            benchmark_page.write_tables(inner)
            write_report(OfCells(out=inner.out), inner)
            benchmark_page.write_latex(inner)

    def conclude(self, records: "Records") -> None:
        """Print what was taken over from starting weights, and a row for each headline."""
        from menagerie.studies.analysis.tables import print_table

        for name, text in carried_over(records).items():
            print(f"{name}: {text}")
        table = self.headlines(score_table(records))
        where = [name for name in table if name in AXES]
        labels = [", ".join(map(str, row)) for row in table[where].to_numpy().tolist()]
        print_table(["benchmark", *labels], [(name, *table[name]) for name in table.columns.drop(where)], SCORES)

    def headlines(self, table: "pd.DataFrame") -> "pd.DataFrame":
        """Return a row for each model and place, a column for each headline: means over seeds and deviations, in
        percent. Rows of papers are marked as theirs. A setting that all cells share has no column."""
        import pandas as pd

        from menagerie.studies.analysis.tables import pivot, pivot_texts

        shown = table[table.kind == HEADLINE]
        shown = shown.assign(column=shown.benchmark + (": " + shown.name.astype(str)).where(shown.name != "", ""))
        found = pivot_texts(pivot(shown, list(AXES), ["column"], "official"), deviations=True).reset_index()
        theirs = pd.DataFrame(self.their_rows([name for name in found if name not in AXES]), columns=found.columns)
        found = pd.concat([found, theirs], ignore_index=True)
        return found.drop(columns=[name for name in AXES[1:] if shown[name].nunique() < 2])

    def their_rows(self, columns: Sequence[str]) -> list[dict[str, str]]:
        """Return a row for each model with published results among the columns of headlines; none in a rehearsal."""
        from menagerie.studies.analysis.tables import DASH
        from menagerie.studies.scoring.benchmark_tables import THEIRS

        subjects = () if self.rehearse else self.ready.subjects.values()
        published = {subject.label: subject.published for some in subjects for subject in some}
        rows = []
        for model in dict.fromkeys(model for numbers in published.values() for model in numbers):
            row = {"model": model + THEIRS, **dict.fromkeys((*AXES[1:], *columns), DASH)}
            for column in columns:
                bench, _, name = column.partition(": ")
                if (number := published.get(bench, {}).get(model, {}).get(name)) is not None:
                    row[column] = f"{number:.1f}"
            rows += [row] if {row[column] for column in columns} != {DASH} else []
        return rows

    def page(self, records: "Records") -> Iterator[Part]:
        """Yield the page: the best models, headlines, training data, carried over weights, and training curves."""
        from menagerie.studies.scoring.benchmark_page import frame_rows
        from menagerie.studies.scoring.benchmark_tables import count_unscored
        from menagerie.studies.scoring.levels import level_parts
        from menagerie.studies.scoring.study import left_out_pieces
        from menagerie.studies.sources.photograph_cells import BENCHMARKS

        if self.rehearse:
            text = "A rehearsal: rendered scenes in the files of COCO's format take the place of photographs."
            yield Sentence(text)
        table = score_table(records)
        varying = [name for name in AXES[1:] if table[name].nunique() > 1]
        yield from level_parts(self.levels(records, table, varying))
        for title, says, facts in (
            ("Left out", "", left_out_pieces(records)),
            ("Not all records were scored", NOT_ALL, count_unscored(table)),
        ):
            if facts:
                yield Heading(title, says)
                yield Facts(facts)
        yield Heading("Benchmarks")
        same = [f"{name} {table[name].iloc[0]}" for name in AXES[1:] if table[name].nunique() == 1]
        all_rows = f" In all rows: {', '.join(same)}." if same else ""
        yield frame_rows("headlines", self.headlines(table), HEADLINES + all_rows)
        if not all(arm.trains for arm in records.arms):
            text = f"Every group of records, ties, and what is most surely wrong: `{BENCHMARKS}/report.html`."
            yield Paragraph(text)
        yield Heading("What was trained on")
        yield frame_rows("data", self.data_table(), LEFT_OUT)
        if carried := carried_over(records):
            yield Heading("What was carried over")
            yield Facts(carried)
        yield Heading("How they trained")
        yield Curves("training", of_cells(records), varying, chance=self.chance, says=TRAINED)

    def levels(self, records: "Records", table: "pd.DataFrame", varying: Sequence[str]) -> "Levels":
        """Return the first headline of each benchmark, by model and the varying fields, in the mean over seeds."""
        from menagerie.studies.report.figures import model_label
        from menagerie.studies.scoring.benchmark_tables import BenchmarkScores
        from menagerie.studies.scoring.levels import level_figure, level_of, name_headline, seed_mean

        shown = table[(table.kind == HEADLINE) & table.official.notna()]
        scored = BenchmarkScores(records.where(lambda arm: not arm.trains))
        known = {(label, name): its for (label, _, name), its in scored.chances.items()}
        found, chances = {}, {}
        for label, rows in shown.groupby("benchmark", sort=False):
            name = rows.name.iloc[0]
            for (model, *where), seeds in rows[rows.name == name].groupby(["model", *varying], sort=False):
                row = ", ".join([model_label(model), *map(" ".join, zip(varying, map(str, where), strict=True))])
                found[name_headline(label, name), row] = seed_mean([level_of(its) for its in seeds.to_dict("records")])
            chances[name_headline(label, name)] = self.chance if label == HELD_OUT else known.get((label, name))
        return level_figure(found, {panel: its for panel, its in chances.items() if its is not None})

    @property
    def chance(self) -> float:
        """Chance on held-out captions."""
        from menagerie.studies.sources.photographs import OTHERS

        fewest = min(there.numbers.held_out for there in self.ready.photos.values())
        return 1 / (1 + min(OTHERS, fewest - 1))

    def data_table(self) -> "pd.DataFrame":
        """Return a table of the numbers of photographs and captions, for each set of sources and parser."""
        import pandas as pd

        rows = []
        for (sources, parser), there in self.ready.photos.items():
            its = there.numbers
            left = ", ".join(f"{count} {reason}" for reason, count in (*its.left_out, *its.refused))
            numbers = map(str, (its.images, its.held_out, its.captions))
            rows.append([sources, parser, *numbers, left or "none", its.parsed or "–"])
        columns = ["sources", "parser", "photographs", "held out", "captions", "left out", "parsed"]
        return pd.DataFrame(rows, columns=columns)


def of_cells(records: "Records") -> "Records":
    """Return the records of training runs, without those on benchmarks."""
    return records.where(lambda arm: arm.trains)


def carried_over(records: "Records") -> dict[str, str]:
    """Return, for each cell that started from trained weights, a line on how many of them were carried over."""
    results = of_cells(records).results
    return {arm.cell.name: Carried.from_record(its["carried"]).text for arm, its in results if "carried" in its}


def score_table(records: "Records") -> "pd.DataFrame":
    """Return a row for each number of each finished cell, as fractions: on held-out photographs and on its
    benchmarks."""
    import pandas as pd

    from menagerie.studies.scoring.benchmark_tables import NUMBERS

    scores: dict[str, list[Mapping[str, Any]]] = {}
    for arm, result in records.results:
        if not arm.trains:
            scores.setdefault(arm.labels["cell"], []).append(result | {"benchmark": arm.cell.label})
    rows = [row for arm, result in of_cells(records).results for row in cell_rows(arm, result, scores.get(arm.id, ()))]
    columns = [*AXES, "seed", "benchmark", "kind", "name", *NUMBERS, "cell"]
    return pd.DataFrame(rows, columns=columns).astype(dict.fromkeys(NUMBERS[:3], float))


def cell_rows(arm: Arm, result: Mapping[str, Any], scores: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a cell; `scores` are its results on benchmarks."""
    from menagerie.studies.scoring.benchmark_tables import result_numbers
    from menagerie.studies.scoring.levels import binomial
    from menagerie.studies.sources.photographs import GROUP

    place = {name: arm.place.get(name, NONE) for name in AXES} | {"seed": arm.cell.seed, "cell": arm.id}
    test = result["subsets"]["validation"][GROUP]
    held = {"official": test["official"], "neutral": test["accuracy"], "tie_rate": test["tie_rate"], "n": test["n"]}
    held |= binomial(test["official"], test["n"])
    yield place | {"benchmark": HELD_OUT, "kind": HEADLINE, "name": ""} | held
    for one in scores:
        for kind, name, values in result_numbers(one):
            yield place | {"benchmark": one["benchmark"], "kind": kind, "name": name} | values


@dataclass(frozen=True)
class OfCells(AnyStudy):
    """Transfer to photographs"""

    called = "pieces"

    def plan(self, known: KnownResults) -> Iterable[Arm]:
        """No arms: the page shows those of the study that trained the cells."""
        return ()

    def page(self, records: "Records") -> Iterator[Part]:
        from menagerie.studies.scoring import benchmark_page

        return benchmark_page.parts(records)


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
