"""How do models perform on splits that they weren't trained on? Scores any models on any splits, without training.

    python studies/evaluate.py runs/binding_grid-laptop ViT-B-16/openai --splits binding spatial
    python studies/evaluate.py ViT-B-16/weights.safetensors path/to/siglip --splits mine.toml split.h5
    python studies/evaluate.py ViT-B-16/openai --splits binding-2      # a frozen benchmark: writes a card
    python studies/evaluate.py mine.py:Mine runs/mine --code mine.py:Mine --splits store/pug-64px-…/binding-….h5

A model is a run (all its cells), a cell, a checkpoint, an open_clip model (without weights: random), a folder of
Hugging Face's CLIP, SigLIP or image-text-to-text (or hf:NAME), a chat model with images (chat:URL#MODEL;
docs/judges.md), or a class of your own. A split is a file, also a packed one, a recipe of `menagerie recipes`, a TOML
file, or a frozen benchmark (docs/benchmarks.md), of which a card is written. Records that a model's training had are
counted, and left out of numbers that are called unseen.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import DATA, FIRST, PLACE, WHAT
from menagerie.envs.core.records import write_records
from menagerie.envs.core.validation import SIDE
from menagerie.studies.frame.command import main
from menagerie.studies.runs.results import CELLS
from menagerie.studies.scoring.study import ScoringStudy

if TYPE_CHECKING:
    from menagerie.generators.splits.recipe import SplitRecipe
    from menagerie.studies.frame.records import Records
    from menagerie.studies.scoring.splits import SplitPiece


@dataclass(frozen=True)
class Evaluate(ScoringStudy):
    """Evaluation of given models"""

    on: ClassVar[str] = "split"
    written_by: ClassVar[str] = "splits"

    splits: Annotated[tuple[str, ...], WHAT, FIRST] = ()
    """Split files, recipes by name, TOML files."""
    out: Annotated[Path, PLACE, FIRST] = Path("runs/evaluate")
    """Folder of the results; an earlier one is continued, also with other models and splits."""
    world: Annotated[str, DATA] = ""
    """World of recipes, a name or a TOML file; empty takes each recipe's own."""
    resolution: Annotated[int, DATA, SIDE] = 64
    """Side of the images that recipes are rendered at, in pixels; each model reads them in its own size."""

    @cached_property
    def recipes(self) -> "dict[str, SplitRecipe]":
        from menagerie.studies.scoring.splits import recipes_of

        return recipes_of(self.splits, self.world)

    @cached_property
    def files(self) -> dict[str, Path]:
        """Map the name of each split to its file. Splits of recipes are added once they are rendered."""
        return {name: Path(name) for name in self.splits if name not in self.recipes}

    def check(self) -> None:
        """Raise for unknown names and for models that can't be loaded, before anything is rendered."""
        from menagerie.generators.frozen.benchmark import load_frozen
        from menagerie.generators.splits.recipe_file import FROZEN

        if not self.models or not self.splits:
            raise UserError("give one or more models, and after --splits one or more splits")
        super().check()
        for name, recipe in self.recipes.items():
            if name not in FROZEN:
                continue
            ours = {"world": recipe.world, "resolution": load_frozen(name).resolution}
            for option, its in ours.items():
                if (wanted := getattr(self, option)) not in (its, getattr(type(self), option)):
                    raise UserError(
                        f"--{option} {wanted} contradicts {name}, a frozen benchmark of {option} {its}; leave out "
                        f"--{option} or the benchmark"
                    )

    def prepare(self, out: Path) -> "Evaluate":
        """Render missing atlas entries of the recipes' scenes, and write the split files."""
        from menagerie.envs.worlds import load_world
        from menagerie.generators.frozen.benchmark import load_frozen
        from menagerie.generators.frozen.digests import make_frozen
        from menagerie.generators.splits.recipe_file import FROZEN
        from menagerie.generators.storage.folder import SplitFolder
        from menagerie.studies.runs.data import make_splits

        super().prepare(out)
        for name, recipe in self.recipes.items():
            if name in FROZEN:
                self.files[name] = make_frozen(load_frozen(name), self.store, self.cores)
            else:
                store = SplitFolder(self.store, load_world(recipe.world), self.resolution)
                self.files[name] = make_splits(store, [recipe], self.cores)[recipe]
        return self

    def pieces(self) -> "Iterator[SplitPiece]":
        """Yield a piece for each model and each split that is there; those of recipes are once they are rendered."""
        from menagerie.generators.splits.recipe_file import FROZEN
        from menagerie.studies.scoring.splits import split_labels, split_piece

        labels = split_labels(self.splits)
        splits = [(labels[name], self.files[name], name in FROZEN) for name in self.splits if name in self.files]
        return (split_piece(model, *split, **self.how) for model in self.tested for split in splits)

    def forecast(self) -> bool:
        """Print what would be scored, and which splits would be rendered first."""
        super().forecast()
        for name, recipe in self.recipes.items():
            print(f"and {name} of {recipe.world}, which is rendered first, by each model")
        return True

    def tables(self, records: "Records") -> None:
        """Write results.csv and, for notebooks, cells.jsonl."""
        super().tables(records)
        found = self.pages.named_results(records)
        lines = [its | {"seed": 0, "labels": {"split": piece.label}} for piece, its in found]
        write_records(records.out / CELLS, lines)

    def export(self, records: "Records") -> None:
        from menagerie.studies.scoring.cards import write_cards

        for card in write_cards(records):
            print(card)


PRESETS = {"all": Evaluate()}

if __name__ == "__main__":
    main(PRESETS)
