"""What is the best that a score can do, without encoders?

Free codes for all images and captions of a small world are fitted to what is true of what: one vector, tokens, slots
with a graph, or sums over objects. The smallest width at which every true pair is above every false one is the form's
own bound; what trained models lack beyond it, encoders and data lack.

    python studies/ceiling.py --preset smoke       # seconds
    python studies/ceiling.py                      # 2 to 4 objects, five seeds, worlds of at most 600 images
    python studies/ceiling.py --preset losses      # one vector, fitted by each loss
    python studies/ceiling.py --preset large       # worlds of at most 5000 images, hours
    python studies/ceiling.py --preset gap         # trains CLIP: what of its gap is form, width, encoders, data
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Annotated, ClassVar, Literal

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.options import DATA, FIRST, TRAINING, WHAT
from menagerie.envs.core.validation import SEEDS, STEPS, Range
from menagerie.studies.analysis.tables import to_csv
from menagerie.studies.frame.arm import Arm, KnownResults
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import SMOKE
from menagerie.studies.frame.options import GROWS, Axis
from menagerie.studies.frame.parts import Chart, Part, Rows, Sentence
from menagerie.studies.frame.records import Records, write_cells
from menagerie.studies.frame.study import AnyStudy, all_arms
from menagerie.studies.measures.code_widths import (
    claim_rows,
    smallest_widths,
    table_of_fits,
    width_chart,
    widths_by_form,
)
from menagerie.studies.measures.gap import Gap

Kind = Literal["whole", "objects", "relations", "negation", "all"]
Form = Literal["vector", "tokens", "slots", "sum", "product", "pairs", "apart"]
Loss = Literal["infonce", "sigmoid", "margin"]
WIDTHS = Range(2, 4096)


@dataclass(frozen=True)
class Ceiling(AnyStudy):
    """The ceiling of a score, without encoders"""

    called: ClassVar[str] = "fits"
    decides: ClassVar[tuple[str, ...]] = ("device", "threads", "store")

    objects: Annotated[Axis[int], Range(2, 4)] = (2, 3, 4)
    """Numbers of objects in an image."""
    captions: Axis[Kind] = ("whole", "objects", "relations", "negation")
    """Kinds of captions: of whole scenes; also of some objects; also "x left of y"; or also "no x"; or all of these."""
    forms: Axis[Form] = ("vector", "tokens", "slots", "sum", "product", "pairs")
    """Forms of the score: free codes (vector, tokens, slots), and vectors composed of those of objects, which leave out
    some compositions in the fit."""
    widths: Annotated[Axis[int], WIDTHS] = (2, 4, 6, 8, 12, 16, 24)
    """Widths of a vector, a token or a slot, rising; a seed stops at the first that orders everything."""
    tokens: Annotated[Axis[int], Range(2, 64)] = (2,)
    """Numbers of tokens of an image and of a caption, for the form tokens."""
    losses: Axis[Loss] = ("infonce",)
    """Losses: InfoNCE both ways, the sigmoid loss, a smooth margin of the worst pairs."""
    seeds: Annotated[int, WHAT, FIRST, GROWS, SEEDS] = 5
    """Number of seeds, from 0: of first codes, and of the compositions that are left out."""
    animals: Annotated[int, DATA, FIRST, Range(2, 20)] = 5
    """Most animals of a world; fewer where it would have too many images."""
    textures: Annotated[int, DATA, FIRST, Range(2, 20)] = 4
    """Textures of a world, at least as many as an image has objects."""
    most_images: Annotated[int, DATA, FIRST, Range(2, 5000)] = 600
    """Most images of a world."""
    unseen: Annotated[float, DATA, Range(0.0, 0.5)] = 0.1
    """Share of the compositions, at least one, that fits of composed codes leave out."""
    steps: Annotated[int, TRAINING, FIRST, STEPS] = 400
    """Steps of Adam on the whole matrix."""

    def plan(self, known: KnownResults) -> Iterator[Arm]:
        """Plan rising widths for each world, form, loss and seed, until one orders what was fitted."""
        for seed, kind, objects, (form, tokens), loss in product(
            range(self.seeds), self.captions, self.objects, self.codes, self.losses
        ):
            for width in self.widths:
                yield (arm := self.fit(form, tokens, width, objects, kind, loss, seed))
                if orders_all(known, arm) is not False:
                    break

    @property
    def codes(self) -> list[tuple[str, int]]:
        """Each form with its number of tokens."""
        return [(form, k) for form in self.forms for k in (self.tokens if form == "tokens" else (1,))]

    def fit(self, form: str, tokens: int, width: int, objects: int, kind: str, loss: str, seed: int) -> Arm:
        from menagerie.studies.measures.code_fit import Fit

        animals = self.animals_for(objects, kind)
        world = {"animals": animals, "textures": self.textures, "unseen": self.unseen, "steps": self.steps}
        labels = {"captions": kind, "objects": objects, "animals": animals, "loss": loss, "tokens": tokens}
        return Arm(Fit(form, width, objects, kind, loss, seed, tokens, **world), labels | {"width": width})

    def animals_for(self, objects: int, kind: str) -> int:
        """Return the most animals, up to `animals`, with which a world has at most `most_images`."""
        from menagerie.studies.measures.truth_matrix import image_count

        numbers = range(self.animals, objects - 1, -1)
        fits = [n for n in numbers if 1 < image_count(objects, n, self.textures, kind) <= self.most_images]
        if not fits:
            raise UserError(
                f"--objects {objects}, --captions {kind}: no world of at most {self.animals} animals in "
                f"{self.textures} textures has 2 to {self.most_images} images; change --animals, --textures or "
                "--most-images"
            )
        return fits[0]

    def check(self) -> None:
        """Raise for widths out of order and for worlds that don't exist."""
        if list(self.widths) != sorted(self.widths):
            raise UserError(f"--widths must rise, got {' '.join(map(str, self.widths))}")
        for objects, kind in product(self.objects, self.captions):
            self.animals_for(objects, kind)

    def forecast(self) -> bool:
        print(f"at most {len(all_arms(self))} fits of {self.steps} steps; a seed stops at the first width that does")
        return True

    def tables(self, records: Records) -> None:
        write_cells(records)
        to_csv(records.out / "results.csv", records.scores.drop(columns="images_seen", errors="ignore"))

    def page(self, records: Records) -> Iterator[Part]:
        """Yield the smallest widths, a figure by width, and what this says of the claims of Kang et al. 2025."""
        fits = table_of_fits(records)
        found = smallest_widths(fits, self.widths[-1])
        form, loss = self.forms[0], self.losses[0]
        shown = found[(found["form"] == form) & (found["loss"] == loss)]
        for kind, part in shown.groupby("captions", sort=False):
            rows = part.itertuples()
            said = ", ".join(f"{row.width} for {row.objects} objects ({row.animals} animals)" for row in rows)
            orders = f"the smallest width at which the form {form} orders all captions and images"
            yield Sentence(f"{CAPTION_NAMES[kind]}: {orders} is {said}.")
        yield Chart("ceiling", width_chart(fits[fits["loss"] == self.losses[0]]), says=FIGURE)
        widths = widths_by_form(found)
        yield Rows("widths", list(widths), widths.to_numpy().tolist(), says=WIDEST)
        header = [name.replace("_", " ") for name in found]
        yield Rows("smallest", header, found.astype(str).to_numpy().tolist(), says=TABLE)
        claims = list(claim_rows(found, self.seeds, len(self.objects)))
        yield Rows("claims", ("claim", "fits", "smallest widths", "decided"), claims, says=CLAIMS)


def orders_all(known: KnownResults, arm: Arm) -> bool | None:
    """Return whether a fit puts every true pair above every false one, by caption and by image; None until it ended."""
    shares = [known.score(arm, "fitted", side) for side in ("captions", "images")]
    return None if None in shares else min(shares) == 1


CAPTION_NAMES = {
    "whole": "Captions of whole scenes alone",
    "objects": "With captions of some objects",
    "relations": 'With captions of some objects and "x left of y"',
    "negation": 'With captions of some objects and "no x"',
    "all": "With all kinds of captions",
}
FIGURE = """Percent of captions, or of images if lower, whose true partners all score above the false ones, by the width
of a vector, token or slot. A line for each seed, up to the first width that orders everything. Composed codes: of what
was fitted."""
WIDEST = """The first width at which every true pair is above every false one, by caption and by image: the range over
seeds. Composed codes: of what was fitted."""
TABLE = """The first width at which every true pair is above every false one, by caption and by image, as the range over
seeds; numbers are those at this width. Margin: the least difference of a true and a false score, times 100, the largest
scale of CLIP; more steps raise it. Unseen: of compositions that the fit of a composed code left out, among all captions
and images; a sum of a vector for each composition has random ones for these. Widths are upper bounds."""
CLAIMS = """What Kang et al. 2025 (Is CLIP ideal? No. Can we fix it? Yes!) say, in our words. Their abstract says that
no such space does any two of these: what an image shows, whose an attribute is, places, negation. A code that is found
is a proof by example for this world, and says neither that encoders reach it nor that it holds in larger worlds: there
look at the margin. Contradicted: by one loss each seed found one for each number of objects. Undecided: some didn't,
which isn't a proof that there is none. Not tested: fits are missing. The paper's conditions between two images or two
texts aren't part of this matrix: `geometry.py` has a constructed embedding that meets them all. The last is a step of
the proof, in which an object's attribute adds its own vector. There it holds where places aren't told: no swap is right
with `--forms apart`, but by captions with relations."""

PRESETS: dict[str, AnyStudy] = {
    "smoke": Ceiling(
        **{"objects": (2,), "captions": ("whole", "objects"), "forms": ("vector", "slots", "product"), "seeds": 2},
        **{"widths": (2, 6), "animals": 3, "textures": 2, "steps": 100},
    ),
    "laptop": Ceiling(),
    "losses": Ceiling(forms=("vector",), losses=("infonce", "sigmoid", "margin")),
    "all": Ceiling(forms=("vector",), captions=("all",)),
    "large": Ceiling(animals=8, most_images=5000, steps=1000),
    "gap": Gap(tuned="laptop", seeds=5),
    "gap-smoke": Gap(**SMOKE, pairs=0.5, views=4),
}

if __name__ == "__main__":
    main(PRESETS)
