"""What is a better text embedding worth? Changes of CLIP's text, as shares of OC-CLIP's lead over CLIP.

Text vectors encode less binding than image vectors. Remedies are a deeper or wider text tower, phrases that are read
alone or have a vector each, more or less complete captions, false captions in the loss. Each row is CLIP with one
change, or OC-CLIP, which is the upper row. All have the same steps and images, on both grids.

    python studies/text_embeddings.py --preset smoke      # tiny, under 90 seconds on 2 cores
    python studies/text_embeddings.py                     # laptop: 12 animals, 32 px, three seeds, about an hour
    python studies/text_embeddings.py --rows "wider text tower" "model=sparo" OC-CLIP
    python studies/text_embeddings.py --preset linear     # does a linear map of CLIP's text recover binding?

Rows by name are in studies/analysis/ablations.toml; a row of your own is a line of configuration. Measured are swaps on
unseen pairs, and the bits of image embedding, text embedding and score (studies/measures/bits.py).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import tyro
from jaxtyping import Float64

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import write_csv
from menagerie.envs.core.options import DATA, FIRST, MODEL
from menagerie.envs.core.validation import SHARE, Range
from menagerie.envs.worlds import load_world
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.splits.probe import ProbeRecipe
from menagerie.generators.splits.recipe_file import KINDS
from menagerie.models.recipe import Recipe
from menagerie.studies.ablations import AblationStudy
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.command import flag_of, main
from menagerie.studies.frame.parts import Bars, Chart, Facts, Heading, Paragraph, Part, Rows, Sentence, Table
from menagerie.studies.frame.rows import base_row, explain_rows, table_columns
from menagerie.studies.frame.study import AnyStudy, SplitStudy

if TYPE_CHECKING:
    import pandas as pd

    from menagerie.studies.analysis.intervals import Estimate
    from menagerie.studies.frame.records import Records
    from menagerie.studies.measures.bits import Bits

# Between the tuned recipes of CLIP and of OC-CLIP on twelve animals (studies/recipes/twelve.json).
RECIPE = Recipe(steps=1000, learning_rate=8e-4, weight_decay=0.3, singles_share=0.5)
UNDECIDED = "undecided"
READ = ("tokens", "embedding")  # layers that are probed: all patches, and the embeddings


@dataclass(frozen=True)
class TextEmbeddings(AblationStudy):
    """What is a better text embedding worth?"""

    model: str = "clip"
    """The model whose text embedding is changed."""
    cell: str = "breadth"
    """Preset of binding_grid.py and spatial_grid.py: resolution, steps, numbers of scenes."""
    upper: Annotated[str, MODEL, FIRST] = "OC-CLIP"
    """The row whose lead counts as 100 %."""
    world: Annotated[str, DATA, FIRST] = "twelve"
    """Vocabulary of the scenes: a name, or a TOML file."""
    pairs: Annotated[float, DATA, FIRST, SHARE] = 0.6
    """Fraction of the trainable animal pairs, large enough that CLIP is above chance."""
    hard_negatives: Annotated[float, DATA, FIRST, SHARE] = 0.0
    """Fraction of these pairs that have hard negatives too."""
    architecture: Annotated[str, MODEL, FIRST] = "mini"
    """Towers of all rows that name no others."""
    most_animals: Annotated[int, DATA, Range(4, 1000)] = 12
    """Largest number of animals of the probe set, which takes the world's first."""
    training: Annotated[Recipe | None, tyro.conf.Fixed, tyro.conf.Suppress] = None
    """Training of all rows on a recipe or a file; None takes the grid's."""

    title = "What is a better text embedding worth?"

    def idle_options(self, preset: AnyStudy) -> Iterator[str]:
        for name in ("world", "pairs", "hard_negatives") if self.base or self.split else ():
            if getattr(self, name) != getattr(preset, name):
                yield f"{flag_of(name)} changes nothing beside --recipe or --split"

    def narrow(self, grid: SplitStudy) -> SplitStudy:
        if self.base or self.split:
            recipe = self.training or grid.recipe
            return replace(super().narrow(grid), architecture=self.architecture, tuned="", recipe=recipe)
        given: dict[str, Any] = {"pairs": (self.pairs,), "hard_negatives": (self.hard_negatives,), "tuned": ""}
        recipe = replace(RECIPE, steps=grid.recipe.steps) if self.cell != "smoke" else grid.recipe
        given |= {"world": self.world, "architecture": self.architecture, "recipe": recipe, "hold_out": self.hold_out}
        return replace(grid, **given)

    def check(self) -> None:
        """Raise if the row whose lead counts as 100 % is missing, or if a row can't be built."""
        first, *others = self.lines
        if self.upper not in others:
            rows = f"the rows that are compared with {first}; these are: {', '.join(others) or 'none'}"
            raise UserError(f"--upper {self.upper!r} is not among {rows}")
        super().check()

    @cached_property
    def bits(self) -> "dict[str, Bits]":
        """The measure of each split: bits on which animal has which texture, or on which of two objects is left."""
        from menagerie.studies.measures.bits import Bits

        found = {}
        for split, grid in self.grids.items():
            animals = load_world(grid.world).animals
            some = animals[: self.most_animals] if len(animals) > self.most_animals else ()
            probe_set = ProbeRecipe(world=grid.world, animals=some)
            found[split] = Bits(probe_set, self.store, grid.resolution, READ, KINDS[grid.kind].relational)
        return found

    @cached_property
    def probed(self) -> "Mapping[str, Bits]":
        for bits in self.bits.values():
            bits.make(self.cores)
        return self.bits

    def measurements(self, arm: Arm) -> "Sequence[Bits]":
        return [self.probed[arm.labels["split"]]]

    def tests(self, split: str, records: "Records") -> "Records":
        """Return the swaps of unseen pairs, or compositions, of a split; all swaps if it has none of these."""
        data = next(arm.cell.data for arm in self.arms if arm.labels["split"] == split)
        swaps = [test for test in table_columns(data) if test[1] == "swap"]
        unseen = [test for test in swaps if test[0].endswith("unseen_pairs") or test[0].startswith("unseen_")]
        return records.where(split=split, test=tuple(unseen or swaps))

    def page(self, records: "Records") -> "Iterator[Part]":
        base = base_row(self.spec)
        splits = [split for split in self.bits if records.where(split=split).results]
        found = {split: remedies(self.tests(split, records), base, self.upper) for split in splits}
        for split, (lead, its) in found.items():
            sure = "; ".join(f"{one.row} {one.share} %" for one in its if one.outcome != UNDECIDED)
            yield Sentence(
                f"On swaps that training never showed ({split} split, chance 50 %) {self.upper} is {lead or '…'} "
                f"points above {base}. Rows whose share of this lead is decided: {sure or 'none'}."
            )
        if shares := [(split, one) for split, (_, its) in found.items() for one in its if one.share]:
            yield Chart("recovered", shares_chart(shares), says=SHARES.format(base=base, upper=self.upper))
        yield Paragraph(ALIKE)
        yield Heading("What embeddings hold")
        for split, (_, its) in found.items():
            yield self.held(split, records, {one.row: one for one in its})
        if explained := explain_rows(self.spec, self.lines):
            yield Heading("What is changed")
            yield Facts(explained)
        for split in splits:
            yield Heading(f"The {split} split")
            yield Bars(split, self.tests(split, records), ("row",), panels=("subset",), dots=True)
            yield Table(f"accuracy-{split}", records.where(split=split), ("row",), ("subset", "task"))

    def held(self, split: str, records: "Records", found: "Mapping[str, Remedy]") -> Rows:
        """Return a table with a line for each row of a split: accuracy, share of the lead, and the bits of each
        stage."""
        from menagerie.studies.measures.bits import LOOSE, OF, STAGES, mean_bits, rows_at_steps

        rows = rows_at_steps(records.where(split=split), self.bits[split])
        held = mean_bits(rows[rows["measure"] == "bits"], ("row", *OF)) if len(rows) else {}
        lines = []
        for (row,), its in self.tests(split, records).estimates(("row",)).items():
            share = (found[row].share or UNDECIDED) if row in found else "–"
            lines.append((row, str(its), str(share), *(str(held.get((row, *stage), "–")) for stage in STAGES)))
        header = ("row", "swaps that training never showed (%)", "share of the lead (%)", *STAGES.values())
        return Rows(f"held-{split}", header, lines, says=f"The {split} split. {HELD} {LOOSE}")

    def export(self, records: "Records") -> None:
        """Write all shares of leads into `remedies.csv`, all rows of the measures into `bits.csv`, and the numbers of
        rows into `rows.csv`."""
        import pandas as pd

        from menagerie.studies.analysis.tables import to_csv
        from menagerie.studies.measures.bits import rows_at_steps

        rows, measured, numbers = [], [], []
        for split in (split for split in self.bits if records.where(split=split).results):
            measured.append(rows_at_steps(records.where(split=split), self.bits[split]))
            numbers += self.numbers(split, records, measured[-1])
            for its in remedies(self.tests(split, records), base_row(self.spec), self.upper)[1]:
                rows.append([split, its.row, its.accuracy.value, *(its.share or [None] * 3)[:3], its.outcome])
        write_csv(records.out / "remedies.csv", ("split", "row", "accuracy", "share", "low", "high", "outcome"), rows)
        if any(map(len, measured)):
            to_csv(records.out / "bits.csv", pd.concat(measured, ignore_index=True))
        write_csv(records.out / "rows.csv", ("split", "row", "number", "value", "low", "high", "seeds"), numbers)

    def numbers(self, split: str, records: "Records", measured: "pd.DataFrame") -> Iterator[list[Any]]:
        """Yield lines of (split, row, number, value, low, high, seeds): each row's accuracy on the swaps of each test,
        how far that is above the base row, and the bits of each stage."""
        from menagerie.studies.measures.bits import OF, STAGES, mean_bits

        base, swaps = base_row(self.spec), records.where(split=split, task="swap")
        for against, words in ((None, "swaps"), ({"row": base}, f"swaps above {base}")):
            for (row, test), its in swaps.estimates(("row", "subset"), against).items():
                yield [split, row, f"{test}: {words}", *its[:3], its.seeds]
        held = mean_bits(measured[measured["measure"] == "bits"], ("row", *OF)) if len(measured) else {}
        for (row, *stage), its in held.items():
            if name := STAGES.get(tuple(stage)):
                yield [split, row, f"bits: {name}", *its[:3], its.seeds]


class Remedy(NamedTuple):
    """A row's accuracy on one split, and the share that it recovers of the upper row's lead over the base row."""

    row: str
    accuracy: "Estimate"
    share: "Estimate | None"
    """Share of the lead that the row recovers; None unless the lead's interval is above 0 and a seed is common."""

    @property
    def outcome(self) -> str:
        if self.share is None or not self.share.known or self.share.low <= 0 <= self.share.high:
            return UNDECIDED
        return "recovers" if self.share.low > 0 else "loses"


def remedies(tests: "Records", base: str, upper: str) -> tuple["Estimate | None", list[Remedy]]:
    """Return the lead of the row `upper` over `base`, over all records, and how much of it each other row recovers."""
    levels = {row: its for (row,), its in tests.estimates(("row",)).items()}
    lead = tests.estimates(("row",), {"row": base}).get((upper,))
    sure = lead is not None and lead.known and lead.low > 0
    others = [row for row in levels if row not in (base, upper)]
    return lead, [Remedy(row, levels[row], share_of_lead(tests, base, row, upper) if sure else None) for row in others]


def share_of_lead(tests: "Records", base: str, row: str, upper: str) -> "Estimate | None":
    """Return the share of the lead that a row recovers, over the seeds of all three rows; None without any."""
    three = tests.where(row=(base, row, upper))
    order = list(dict.fromkeys(arm.labels["row"] for arm, _ in three.results))
    of = {name: order.index(its) for name, its in (("base", base), ("row", row), ("upper", upper))}
    found = three.estimates(("row",), statistic=("row", partial(recovered_share, **of))).get(())
    return found and found._replace(digits=0)


def recovered_share(
    means: Float64[np.ndarray, "rows points"], base: int, row: int, upper: int
) -> Float64[np.ndarray, " rows"]:
    """Return, for each row of means, how far `row` is on the way from `base` to `upper`; NaN if these are equal."""
    lead = means[:, upper] - means[:, base]
    return np.divide(means[:, row] - means[:, base], lead, out=np.full(len(means), np.nan), where=lead != 0)


SHARES = """How much of {upper}'s lead over {base} on swaps that training never showed each remedy recovers, in percent:
0 is {base}, 100 is {upper}. Lines are 95 % intervals over new seeds and their animal pairs. A remedy whose interval
includes 0 is undecided. A split has none where the interval of the lead itself includes 0."""
HELD = """On the right: how many bits, of exactly 1, a linear probe reads from embeddings, or the difference of two
scores carries; chance is 0. On the binding split the bit is which animal has which texture, on the spatial split which
of two objects is on the left. Means over seeds with 95 % intervals."""
ALIKE = """All remedies take equally many steps and images: where accuracy would still rise with more steps, a remedy
that learns faster looks better. Those on a frozen CLIP train it first, for as many again. Remedies that change captions
are tested on captions of their own kind."""


def shares_chart(shares: "Sequence[tuple[str, Remedy]]") -> Any:
    """Return a chart with a panel for each split, and a dot with its interval for each row's share of the lead."""
    import altair as alt
    import pandas as pd

    rows = [(split, its.row, its.outcome, *(100 * end for end in its.share[:3])) for split, its in shares]
    frame = pd.DataFrame(rows, columns=["split", "row", "outcome", "share", "low", "high"])
    base = alt.Chart(frame).encode(y=alt.Y("row:N", sort=None, title=None), color=alt.Color("outcome:N", title=None))
    bars = base.mark_rule().encode(x=alt.X("low:Q", title="% of the lead"), x2="high:Q")
    dots = base.mark_point(filled=True, size=50).encode(x="share:Q", tooltip=list(frame))
    ends = [alt.Chart(frame).mark_rule(color="#bbb").encode(x=alt.datum(end)) for end in (0, 100)]
    return alt.layer(*ends, bars, dots, data=frame).properties(width=260).facet(alt.Column("split:N", title=None))


LINEAR = TextEmbeddings(
    **{"rows": ("LABCLIP, its paper's rates",), "upper": "LABCLIP, its paper's rates"},
    base=MultiObjectRecipe(
        **{"world": "eight-textures", "objects": (1, 2), "test_objects": (2,), "coverage": 0.75, "test_scenes": 200}
    ),
    training=Recipe(steps=4000, learning_rate=1e-3, decay=0.2, single_object_phase=0.125),
)
PRESETS: dict[str, TextEmbeddings] = {
    "smoke": TextEmbeddings(
        **{"rows": ("swapped captions", "OC-CLIP"), "cell": "smoke", "seeds": 1, "steps": 30},
        **{"world": "tiny", "pairs": 0.5, "architecture": "nano"},
    ),
    "laptop": TextEmbeddings(steps=1000),
    # Koishigarina et al. 2025 (LABCLIP), where CLIP has learnt the scenes of training.
    "linear": LINEAR,
    # The same where training shows few compositions, so that CLIP fails on the others.
    "linear-few": replace(LINEAR, base=replace(LINEAR.base, coverage=0.25, train_scenes=8000)),
}

if __name__ == "__main__":
    main(PRESETS)
