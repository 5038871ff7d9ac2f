"""The geometry of embeddings: does it predict which cells bind unseen pairs, and which conditions on an ideal CLIP
hold?

A measure that depends on no image and no accuracy was chosen beforehand: the binding share of text embeddings, the part
of the variance between captions that encodes which attribute belongs to which object. Models are trained at many places
of a binding grid. On cells that weren't used to choose the measure, its rank correlation with accuracy on unseen pairs
is tested, besides those of three others. Also tested are the conditions of Kang et al. 2025 (Is CLIP ideal?) on a space
of embeddings: in which share of scenes do they hold, one by one and together, for scorers with one vector and others?

    python studies/geometry.py --preset smoke      # tiny, under 90 seconds on 2 cores
    python studies/geometry.py                     # laptop: 8 animals, 32 px, three seeds
    python studies/geometry.py --preset spatial    # captions with relations: the condition on places

Ends with `report.html`, `geometry.csv`, `conditions.csv`, `results.csv`, `cells.jsonl` and per-record predictions in
`--out`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import DATA, WHAT
from menagerie.envs.core.validation import SHARE, Several
from menagerie.generators.captions.templates import template_of
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.probe import ProbeRecipe, choose_names
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.generators.splits.spatial import SpatialRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import APART, BREADTH, SMOKE
from menagerie.studies.frame.options import GROWS, Axis
from menagerie.studies.frame.parts import Heading, Paragraph, Part
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import SplitStudy

if TYPE_CHECKING:
    from menagerie.studies.measures.conditions import Conditions
    from menagerie.studies.measures.embedding_geometry import EmbeddingGeometry
    from menagerie.studies.measures.probe_set import ProbeMeasure

FEWEST = 4  # animals of a probe set: two of each scene, and two that are absent


@dataclass(frozen=True)
class Geometry(SplitStudy):
    """The geometry of embeddings: what it predicts, and which conditions hold"""

    plain_recipe: ClassVar[SplitRecipe] = BindingRecipe()
    decides: ClassVar[tuple[str, ...]] = ("split",)

    pairs: Annotated[Axis[float], SHARE] = (0.2, 0.8)
    """Fractions of the trainable animal pairs."""
    hard_negatives: Annotated[Axis[float], SHARE] = (0.0, 1.0)
    """Fractions of these pairs that have hard negatives too."""
    once: Annotated[tuple[str, ...], WHAT, GROWS, Several()] = ()
    """Models among --models that are trained only at the first place, to test the conditions."""
    negated: Annotated[float, DATA, SHARE] = 0.0
    """Probability that a training caption also negates an absent object. All models get such runs at the first place,
    beside the grid; 0: no such runs, and no results on negation."""
    probe_animals: Annotated[tuple[str, ...], WHAT, Several()] = ()
    """Animals of the probe set, at least 4; empty: all of the world."""
    probe_textures: Annotated[tuple[str, ...], WHAT, Several()] = ()
    """Textures of the probe set; empty: all of the world."""

    def check(self) -> None:
        """Raise for a probe set with too few animals or textures, and for `negated` if captions can't have negation."""
        from menagerie.envs.worlds import load_world

        super().check()
        if len(found := choose_names(self.probe_set, load_world(self.world))[0]) < FEWEST:
            raise UserError(
                f"a probe set needs {FEWEST} animals, because conditions compare two animals with two absent ones; it "
                f"has "
                f"{len(found)}: {', '.join(found)}"
            )
        if self.negated and not self.negates:
            raise UserError(f"--negated: captions of {self.kind} splits have no negation; leave it out")

    @property
    def probe_set(self) -> ProbeRecipe:
        """The scenes on which embeddings are measured. Their captions have the template of training, unless that states
        a relation, which captions of probe sets can't."""
        template = self.template or self.recipe_given.template
        given = {} if template_of({"template": template}).relation else {"template": template}
        return ProbeRecipe(world=self.world, animals=self.probe_animals, textures=self.probe_textures, **given)

    @property
    def geometry(self) -> "EmbeddingGeometry":
        from menagerie.studies.measures.embedding_geometry import EmbeddingGeometry

        return EmbeddingGeometry(self.probe_set, self.store, self.resolution)

    @property
    def conditions(self) -> "Conditions":
        from menagerie.studies.measures.conditions import Conditions

        return Conditions(self.probe_set, self.store, self.resolution)

    @cached_property
    def probed(self) -> "tuple[ProbeMeasure, ...]":
        """Both measures, after rendering their probe set."""
        self.geometry.make(self.cores)
        return self.geometry, self.conditions

    @property
    def negates(self) -> bool:
        return any(item.name == "negated" for item in fields(self.recipe_given))

    @property
    def first_place(self) -> dict[str, Any]:
        """The place at which all scorers are compared: the first one of the grid, with negation if there is any."""
        place = {"pairs": self.pairs[0], "hard_negatives": self.hard_negatives[0]}
        return place | ({"negated": self.negated} if self.negated else {})

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        """Plan every model at every place, except models in `once`. Then plan at the first place all models with
        negation or, without negation, the models in `once`."""
        plain = {"negated": 0.0} if self.negated else {}
        everywhere = [model for model in self.models if model not in self.once]
        for seed in range(self.seeds):
            for pairs, hard in product(self.pairs, self.hard_negatives):
                for model in everywhere:
                    yield self.at(model, seed, pairs=pairs, hard_negatives=hard, **plain)
        for seed in range(self.seeds):
            for model in self.models if self.negated else self.once:
                if model in self.models:
                    yield self.at(model, seed, **self.first_place)

    def measurements(self, arm: Arm) -> "Sequence[ProbeMeasure]":
        return self.probed

    def page(self, records: Records) -> Iterator[Part]:
        from menagerie.studies.analysis.words import one_line
        from menagerie.studies.measures.condition_tables import condition_parts, trade_off_parts
        from menagerie.studies.measures.embedding_geometry import alignment_table
        from menagerie.studies.measures.predictors import prediction_parts

        geometry, conditions = map(records.rows_of, (self.geometry, self.conditions))
        if not len(conditions):
            yield Paragraph("Nothing is measured yet.")
            return
        yield from prediction_parts(records, geometry, self.world, self.resolution)
        yield from condition_parts(conditions, self.first_place)
        yield from trade_off_parts(conditions, self.first_place)
        yield Heading("Alignment and edits", one_line(EDITS))
        yield alignment_table(geometry)

    def export(self, records: Records) -> None:
        """Write all rows of the measures into `geometry.csv` and `conditions.csv`."""
        from menagerie.studies.measures.measured import write_rows

        for name, measure in (("geometry", self.geometry), ("conditions", self.conditions)):
            write_rows(records.out / f"{name}.csv", records.rows_of(measure))


EDITS = """Means over seeds, all settings of the grid together, with 95 % intervals. After one matrix: swaps that are
right with a matrix between image and text, fitted on other pairs; this is what LABCLIP could repair. Edits: of the
scenes whose own caption is preferred, the share in which the swapped one is preferred once the image's embedding is
moved by the mean embeddings of its compositions, of compositions of other animals, or of textures in places. Chance:
after a move as far in a random direction."""
VECTORS = ("clip", "negclip", "siglip", "sparo", "fdt")
OTHERS = ("labclip", "oc-clip", "filip-phrases", "flair", "dcsm")
PRESETS = {
    "smoke": Geometry(
        **SMOKE | {"recipe": Recipe(steps=30, batch=32, warmup=5), "test_scenes": 24, "views": 4},
        **{"pairs": (0.5,), "hard_negatives": (0.0,), "once": ("oc-clip",), "negated": 0.5},
    ),
    "laptop": Geometry(
        **BREADTH | {"models": VECTORS + OTHERS, "hard_negatives": (0.0, 1.0)},
        **{"tuned": "breadth", "pairs": (0.25, 0.5, 1.0), "once": OTHERS, "negated": 0.5},
        base=BindingRecipe(**APART),
    ),
    "spatial": Geometry(
        **BREADTH | {"models": VECTORS + OTHERS},
        **{"tuned": "breadth-spatial", "pairs": (0.5,), "views": 2},
        base=SpatialRecipe(**APART),
    ),
}

if __name__ == "__main__":
    main(PRESETS)
