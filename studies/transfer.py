"""How do models perform on benchmarks of photographs? Scores any models on any of them, without training.

    python studies/transfer.py --check --data-root DATA
    python studies/transfer.py ViT-B-16/openai runs/mine --benchmarks sugarcrepe whatsup --data-root DATA
    python studies/transfer.py ViT-B-32 --benchmarks sugarcrepe --data-root DATA --images coco/val2017=PHOTOGRAPHS

Models are named as for evaluate.py. docs/transfer.md lists the files of benchmarks. Texts and image files of a
benchmark that a model's training had are counted.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import tyro

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.machine import usable_cores
from menagerie.envs.core.options import DATA, FIRST, PLACE, WHAT
from menagerie.envs.core.validation import POSITIVE
from menagerie.generators.benchmarks.registry import (
    BenchmarkSpec,
    check_benchmark_name,
    load_benchmark,
    load_benchmarks,
    names,
)
from menagerie.generators.parsers.registry import DEFAULT, read_parser
from menagerie.generators.sources.place import Place
from menagerie.studies.frame.command import main
from menagerie.studies.runs.machine import check_device
from menagerie.studies.scoring.study import ScoringStudy

if TYPE_CHECKING:
    from menagerie.studies.scoring.benchmarks import BenchmarkPiece, FirstPass, Subject


@dataclass(frozen=True)
class Transfer(ScoringStudy):
    """Transfer to photographs"""

    on: ClassVar[str] = "benchmark"
    written_by: ClassVar[str] = "benchmarks"

    benchmarks: Annotated[tuple[str, ...], WHAT, FIRST] = ()
    """Names of benchmarks, or file.py:NAME of your own; none takes all with --check, else all that are complete."""
    check_only: Annotated[bool, tyro.conf.arg(name="check"), WHAT, FIRST] = False
    """Only report which benchmarks are complete, and what to get for the others."""
    store: Annotated[Path, tyro.conf.Fixed, tyro.conf.Suppress] = Path("store")
    """Folder of atlases and split files; unused here."""
    out: Annotated[Path, PLACE, FIRST] = Path("runs/transfer")
    """Folder of the results; an earlier one is continued, also with other models and benchmarks."""
    data_root: Annotated[Path, DATA, FIRST] = Path("data")
    """Folder of the benchmarks' files (docs/transfer.md)."""
    images: Annotated[tuple[str, ...], DATA] = ()
    """Folders of images that lie elsewhere, such as coco/val2017=/data/coco/val2017; one place may have several."""
    allow_missing: Annotated[bool, DATA] = False
    """If images are missing, score the other records; the result has the number of missing ones."""
    prompts: Annotated[Literal["ensemble", "single"], DATA] = "ensemble"
    """Templates of zero-shot classification: a set's own, averaged, or only "a photo of a {c}." in its place."""
    unknown_words: Annotated[Literal["refuse", "skip"], DATA] = "refuse"
    """What to do if a model's own vocabulary lacks words of a benchmark: refuse the benchmark, or skip the words."""
    parser: Annotated[str, DATA] = DEFAULT
    """Parser of texts, for models that read scene graphs: NAME or NAME:OPTION=VALUE,… (docs/parsing.md)."""
    parses: Annotated[Path, PLACE] = Path("parses")
    """Folder of the graphs that are kept, also by menagerie parse."""
    rerank: Annotated[str, WHAT] = ""
    """A model with vectors that chooses candidates: in pools of more than a million pairs, models that read image and
    text together score only its best candidates for each query. Without it they leave out such pools."""
    rerank_top: Annotated[int, WHAT, POSITIVE] = 16
    """Number of these candidates for each query."""

    @property
    def how(self) -> dict[str, Any]:
        return super().how | {"first": self.first_pass}

    @cached_property
    def first_pass(self) -> "FirstPass | None":
        """The model that chooses candidates; None without `--rerank`. Raises if the name stands for several models."""
        from menagerie.studies.scoring.benchmarks import FirstPass

        if not self.rerank:
            return None
        if len(found := self.models_named(self.rerank)) > 1:
            raise UserError(f"--rerank takes one model, and {self.rerank} has {len(found)}; name the folder of a cell")
        return FirstPass(found[0], self.rerank_top)

    @property
    def place(self) -> "Place":
        from menagerie.studies.scoring.check import folders_given

        folders = folders_given(self.images, map(load_benchmark, (*names(), *self.benchmarks)))
        threads = max(1, usable_cores() // self.at_once)
        how = {"allow_missing": self.allow_missing, "ensemble": self.prompts == "ensemble"}
        return Place(self.data_root, workers=threads, folders=folders, **how)

    @cached_property
    def subjects(self) -> "Sequence[Subject]":
        """The benchmarks as they were read: those that are named, else all that are complete."""
        from menagerie.generators.benchmarks.zero_shot import ENSEMBLED
        from menagerie.studies.scoring.benchmarks import subjects_of
        from menagerie.studies.scoring.check import read_benchmarks

        read = read_benchmarks(load_benchmarks(self.benchmarks), bool(self.benchmarks), self.place)
        if not read:
            raise UserError(f"no benchmark is complete in {self.data_root}; --check reports what to get")
        if self.prompts == "single":
            read = [(single_prompt(spec) if spec.name in ENSEMBLED else spec, bench) for spec, bench in read]
        return subjects_of(read, self.parser, self.parses)

    def instead(self) -> int | None:
        """With --check, print which benchmarks are complete and return the exit status, 1 if one isn't."""
        if not self.models and not self.check_only:
            raise UserError("give one or more models, or --check")
        for name in self.benchmarks:
            check_benchmark_name(name)
        read_parser(self.parser)
        check_device(self.device)
        place = self.place  # raises for wrong --images
        if not self.check_only:
            return None
        from menagerie.studies.scoring.check import print_benchmark_states

        complete = print_benchmark_states(load_benchmarks(self.benchmarks), place)
        print(f"{sum(complete)} of {len(complete)} benchmarks are complete in {self.data_root}")
        return int(not all(complete))

    def check(self) -> None:
        super().check()
        tuple(self.subjects)  # raises for benchmarks that can't be read

    def pieces(self) -> "Iterator[BenchmarkPiece]":
        from menagerie.studies.scoring.benchmarks import benchmark_piece
        from menagerie.studies.sources.photographs import training_had

        for model, one in ((model, one) for model in self.tested for one in self.subjects):
            had = training_had(model.training, one.bench)
            yield benchmark_piece(model, one, self.unknown_words == "skip", **self.how, had=had)


def single_prompt(spec: BenchmarkSpec) -> BenchmarkSpec:
    """The spec under a name that says what its texts are; what papers published is of ensembles."""
    return replace(spec, name=f"{spec.name}, single prompt", published={})


PRESETS = {"all": Transfer()}

if __name__ == "__main__":
    main(PRESETS)
