"""Codes without encoders: free vectors for all images and captions of a small world, fitted to what is true of what.

A world's images are all scenes of n different animals in different textures; its captions say the whole scene, some of
its objects, where two animals stand, or what is absent. So the matrix that says which caption is true of which image is
known, and the best score of a form (one vector, tokens, slots, sums over objects) can be looked for by fitting: Adam on
the whole matrix A, in double precision. What a fit orders can be ordered; one that fails proves nothing. Vectors that
order each row of A need at least the sign rank of 2 A - 1, minus 1, dimensions (Weller et al. 2025, arXiv 2508.21038).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import combinations, permutations, product
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import digest, generator, seed_of
from menagerie.studies.runs.cell import AnyJob, Report
from menagerie.studies.runs.folder import provenance
from menagerie.studies.runs.results import read_result, write_result

PRESENT, ABSENT, LEFT, RIGHT, FIRST_PLACE = range(5)
"""What a mention says of its object; from `FIRST_PLACE` on, in which place from the left it stands."""
UNNAMED = -1  # an animal or a texture that a mention leaves out
SCALE, RATE = 100.0, 0.1  # CLIP's largest scale (Radford et al. 2021); Adam's first rate
TIE = 1e-9  # difference of scores below which they count as equal, which is rounding
FITTED, UNSEEN = "fitted", "unseen"
Composed = Literal["sum", "product", "pairs", "apart"]
Mention = tuple[int, int, int]
"""An animal, a texture, and what is said of them."""
Text = tuple[Mention, ...]
Numbers = dict[str, float | None]


class TruthMatrix(NamedTuple):
    """A world: what images show and captions say, and which caption is true of which image."""

    images: list[Text]
    captions: list[Text]
    truth: Bool[np.ndarray, "captions images"]


def truth_matrix(objects: int, animals: int, textures: int, kind: str) -> TruthMatrix:
    """Return the world of scenes of `objects` different animals in different textures, with the captions of a `kind`
    that are true of some images and false of others. Left and right are told apart where captions state places."""
    placed = kind in ("relations", "all")
    images = [tuple(scene) for scene in scenes(objects, animals, textures, placed)]
    captions = [*images, *further_captions(objects, animals, textures, kind)]
    truth = truth_of(images, captions)
    kept = truth.any(1) & ~truth.all(1)
    return TruthMatrix(images, [text for text, keep in zip(captions, kept, strict=True) if keep], truth[kept])


def scenes(objects: int, animals: int, textures: int, placed: bool) -> Iterator[Text]:
    """Yield all sets (rows, if `placed`) of different animals in different textures."""
    chosen = (permutations if placed else combinations)(range(animals), objects)
    for names, worn in product(chosen, permutations(range(textures), objects)):
        yield tuple(
            (a, t, FIRST_PLACE + k if placed else PRESENT) for k, (a, t) in enumerate(zip(names, worn, strict=True))
        )


def image_count(objects: int, animals: int, textures: int, kind: str) -> int:
    ways = math.perm if kind in ("relations", "all") else math.comb
    return ways(animals, objects) * math.perm(textures, objects)


def further_captions(objects: int, animals: int, textures: int, kind: str) -> Iterator[Text]:
    """Yield the captions besides those of whole scenes: of 1 to n - 1 objects (all kinds but "whole"), "x left of y",
    "no x"; of "all" kinds also those of an animal or a texture alone."""
    if kind != "whole":
        for count in range(1, objects):
            yield from scenes(count, animals, textures, placed=False)
    if kind in ("relations", "all"):
        yield from (((x, UNNAMED, LEFT), (y, UNNAMED, RIGHT)) for x, y in permutations(range(animals), 2))
    if kind in ("negation", "all"):
        yield from (((x, t, ABSENT),) for x in range(animals) for t in (UNNAMED, *range(textures)))
    if kind == "all":
        yield from (((x, UNNAMED, PRESENT),) for x in range(animals))
        yield from (((UNNAMED, t, PRESENT),) for t in range(textures))


def truth_of(images: Sequence[Text], captions: Sequence[Text]) -> Bool[np.ndarray, "captions images"]:
    shown = np.array(images)
    truth = np.ones((len(captions), len(images)), bool)
    for row, text in zip(truth, captions, strict=True):
        stands = {}
        for animal, texture, says in text:
            named = ((animal, 0), (texture, 1))
            fits = np.all([shown[..., k] == name for name, k in named if name != UNNAMED], axis=0)
            row &= fits.any(1) if says != ABSENT else ~fits.any(1)
            if says >= FIRST_PLACE:
                row &= fits[:, says - FIRST_PLACE]
            stands[says] = fits.argmax(1)
        if LEFT in stands:
            row &= stands[LEFT] < stands[RIGHT]
    return truth


class Codes(nn.Module):
    """Codes of all captions and images of a world; `forward` scores each caption with each image, from -1 to 1."""


class Tokens(Codes):
    """Sets of k vectors. The score is the mean over a caption's vectors of the cosine with the nearest one of the image
    (late interaction, as FILIP's: Yao et al. 2022). With k = 1 it is CLIP's cosine."""

    def __init__(self, world: TruthMatrix, width: int, tokens: int) -> None:
        super().__init__()
        self.images = free_vectors(len(world.images), tokens, width)
        true = torch.tensor(world.truth, dtype=torch.double)  # a caption begins at the mean of its images
        self.texts = nn.Parameter(torch.einsum("ci,ikd->ckd", true, self.images.data))

    def forward(self) -> Float[Tensor, "captions images"]:
        texts, images = (normalize(its, dim=-1) for its in (self.texts, self.images))
        cosines = texts.flatten(0, 1) @ images.flatten(0, 1).T
        if texts.shape[1] == 1:
            return cosines
        return cosines.view(*texts.shape[:2], *images.shape[:2]).amax(3).mean(1)


class Slots(Codes):
    """A free vector for each object of an image, and a caption as a graph. Each node has the cosine of its label's
    vector with the nearest slot; each end of an edge, and each place, that of its own vector with its node's slot. The
    score is their mean (after OC-CLIP, Assouel et al. 2025: labels have the same vector in all captions)."""

    def __init__(self, world: TruthMatrix, width: int) -> None:
        super().__init__()
        nodes = [[(a, t, says if says < LEFT else PRESENT) for a, t, says in its] for its in world.captions]
        parts = [[*n, *(m for m in its if m[2] >= LEFT)] for n, its in zip(nodes, world.captions, strict=True)]
        number = {part: k for k, part in enumerate(dict.fromkeys(part for its in parts for part in its))}
        self.node = torch.tensor([number[(*part[:2], PRESENT)] if part[2] >= LEFT else k for part, k in number.items()])
        self.share = torch.zeros(len(parts), len(number), dtype=torch.double)
        for row, its in zip(self.share, parts, strict=True):
            row[[number[part] for part in its]] = 1 / len(its)
        self.labels, self.slots = (
            free_vectors(len(number), width),
            free_vectors(len(world.images), len(world.images[0]), width),
        )

    def forward(self) -> Float[Tensor, "captions images"]:
        cosines = normalize(self.labels, dim=-1) @ normalize(self.slots, dim=-1).flatten(0, 1).T
        cosines = cosines.view(len(self.labels), *self.slots.shape[:2])
        return self.share @ cosines.gather(2, cosines[self.node].argmax(2, keepdim=True))[..., 0]


class Composition(Codes):
    """Codes that are composed of what images show and captions mention: sums over objects. An object's vector is free
    ("sum"), or the elementwise product ("product") or the sum ("apart", which can't bind) of vectors of its animal and
    its texture, times a vector of its place or of what is said of it. "pairs" adds to "product" the elementwise product
    of each two objects. The score is the cosine. Images and captions have vectors of their own."""

    def __init__(self, world: TruthMatrix, width: int, form: Composed) -> None:
        super().__init__()
        self.form, self.sides, self.vectors = form, [], nn.ParameterList()
        for its in (world.captions, world.images):
            most = max(map(len, its))
            padded = torch.tensor([[*text, *[(UNNAMED, UNNAMED, UNNAMED)] * (most - len(text))] for text in its])
            self.sides.append((padded + torch.tensor([1, 1, 0]), padded[..., 2:] != UNNAMED))
        sizes = [int(max(its[..., k].max() for its, _ in self.sides)) + 1 for k in range(3)]
        for _ in self.sides:
            table = (
                [free_vectors(sizes[0] * sizes[1], width)]
                if form == "sum"
                else [free_vectors(size, width) for size in sizes[:2]]
            )
            self.vectors.extend([*table, free_vectors(sizes[2], width)])
        self.textures = sizes[1]

    def forward(self) -> Float[Tensor, "captions images"]:
        half = len(self.vectors) // 2
        texts, images = (self.compose(k, list(self.vectors[k * half : (k + 1) * half])) for k in (0, 1))
        return texts @ images.T

    def compose(self, side: int, vectors: list[Tensor]) -> Float[Tensor, "items width"]:
        (mentions, given), (*tables, said) = self.sides[side], vectors
        animal, texture, says = mentions.clamp(min=0).unbind(-1)
        if self.form == "sum":
            found = tables[0][animal * self.textures + texture]
        else:
            both = tables[0][animal], tables[1][texture]
            found = both[0] + both[1] if self.form == "apart" else both[0] * both[1]
        found = found * said[says] * given
        total = found.sum(1)
        if self.form == "pairs":
            total = total + (total**2 - (found**2).sum(1)) / 2
        return normalize(total, dim=-1)


def free_vectors(*shape: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(shape, dtype=torch.double))


LogitsLoss = Callable[[Tensor], Tensor]
"""Maps logits (captions x images) to a loss, for the matrix that it was made for."""


def infonce_of(truth: Bool[Tensor, "captions images"]) -> LogitsLoss:
    """Return the mean cross-entropy of each true pair among the false ones, by caption and by image."""
    false, at = (~truth).double(), truth.nonzero(as_tuple=True)

    def loss(logits: Tensor) -> Tensor:
        powers = logits.exp()
        wrong, right = powers * false, powers[at]
        return sum(torch.log1p(wrong.sum(1 - k)[at[k]] / right).mean() for k in (0, 1))

    return loss


def sigmoid_of(truth: Bool[Tensor, "captions images"]) -> LogitsLoss:
    """Return the loss of SigLIP (Zhai et al. 2023), as a mean over all pairs."""
    sign = 1 - 2 * truth.double()
    return lambda logits: softplus(sign * logits).mean()


def margin_of(truth: Bool[Tensor, "captions images"]) -> LogitsLoss:
    """Return a smooth hinge of the lowest true pair above the highest false one, by caption and by image."""
    false, true = (~truth).double(), truth.double()

    def loss(logits: Tensor) -> Tensor:
        powers = logits.exp()
        wrong, right = powers * false, true / powers
        return sum(torch.log1p(wrong.sum(k) * right.sum(k)).mean() for k in (0, 1))

    return loss


LOSSES: dict[str, Callable[[Tensor], LogitsLoss]] = {"infonce": infonce_of, "sigmoid": sigmoid_of, "margin": margin_of}


def fit_codes(
    codes: Codes, truth: Bool[np.ndarray, "n m"], loss: str, steps: int, part: Any = None
) -> Float[np.ndarray, "n m"]:
    """Fit codes to the matrix, or to the `part` (`np.ix_`) of it that is given; returns the scores of all pairs. The
    scale is learnt, up to `SCALE`, and for the sigmoid loss a bias too, which begins as SigLIP's."""
    loss_of = LOSSES[loss](torch.tensor(truth if part is None else truth[part]))
    scale = nn.Parameter(torch.tensor(1 / 0.07, dtype=torch.double).log())
    bias = nn.Parameter(torch.tensor(-10.0 if loss == "sigmoid" else 0.0, dtype=torch.double))
    optimiser = torch.optim.Adam([*codes.parameters(), scale, *[bias] * (loss == "sigmoid")], RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    for _ in range(steps):
        scores = codes() if part is None else codes()[part]
        optimiser.zero_grad()
        loss_of(scores * scale.exp().clamp(max=SCALE) + bias).backward()
        optimiser.step()
        schedule.step()
    return codes().detach().numpy()


def margins(scores: Float[np.ndarray, "n m"], truth: Bool[np.ndarray, "n m"]) -> Float[np.ndarray, " n"]:
    """Return for each row by how much its lowest true score is above its highest false one; inf without both."""
    return np.where(truth, scores, np.inf).min(1) - np.where(truth, -np.inf, scores).max(1)


def exchanges(world: TruthMatrix) -> dict[str, Int[np.ndarray, "tests 3"]]:
    """Return for each test rows of an image, its true caption and a false one. "swaps": two textures exchanged, or two
    places; "one object": the texture is that of another object of the image."""
    number = {text: k for k, text in enumerate(world.captions)}
    found: dict[str, list[tuple[int, int, int]]] = {"swaps": [], "one object": []}
    for image, scene in enumerate(world.images):
        for i, j in combinations(range(len(scene)), 2):
            for k in range(1 if scene[0][2] == PRESENT else 2):  # animals exchanged are places exchanged, and textures
                other = exchange_parts(scene, i, j, (1,) if not k else (0, 1))
                found["swaps"].append((image, number[scene], number[other]))
        for (a, t, _), (_, other, _) in permutations(scene, 2):
            pair = [((a, its, PRESENT),) for its in (t, other)]
            if pair[0] in number:
                found["one object"].append((image, *(number[text] for text in pair)))
    return {name: np.array(its) for name, its in found.items() if its}


def exchange_parts(scene: Text, i: int, j: int, parts: Iterable[int]) -> Text:
    new = [list(its) for its in scene]
    for part in parts:
        new[i][part], new[j][part] = scene[j][part], scene[i][part]
    return tuple(tuple(its) for its in new)


def margin_numbers(rows: Float[np.ndarray, " n"]) -> Numbers:
    """Return the share of margins above 0 (a tie is wrong), the least one at a scale of `SCALE`, and their number."""
    known = rows[np.isfinite(rows)]
    if not len(known):
        return {"accuracy": None, "margin": None, "n": 0}
    return {"accuracy": float((known > TIE).mean()), "margin": SCALE * float(known.min()), "n": len(known)}


@dataclass(frozen=True)
class Fit(AnyJob):
    """One fit of codes to a world; its result is kept in a folder of its own."""

    tests: ClassVar[tuple[str, ...]] = (FITTED, UNSEEN)

    form: str
    """vector, tokens, slots, or one of `Composed`."""
    width: int
    objects: int
    captions: str
    loss: str
    seed: int
    tokens: int = 1
    animals: int = 5
    textures: int = 4
    unseen: float = 0.1
    """Share of the compositions that the fit of a composed code leaves out."""
    steps: int = field(default=400)
    out: Path = field(default=Path(), kw_only=True, compare=False)

    @property
    def id(self) -> str:
        return digest({item.name: getattr(self, item.name) for item in fields(self) if item.name != "out"})

    @property
    def model(self) -> str:
        return self.form

    @property
    def name(self) -> str:
        return (
            f"{self.form}, width {self.width}, {self.objects} objects, {self.captions}, {self.loss}, seed {self.seed}"
        )

    @property
    def folder(self) -> Path:
        return self.out / "cells" / self.id

    @property
    def ended(self) -> bool:
        return read_result(self.folder) is not None

    def job(self, out: Path) -> "Fit":
        return replace(self, out=out)

    def run(self, report: Report, release: Callable[[], None]) -> None:
        torch.set_num_threads(self.threads)
        release()
        origin = {"provenance": provenance()}
        write_result(
            self.folder, {"id": self.id, "model": self.model, "seed": self.seed, "subsets": self.fit()} | origin
        )

    def codes(self, world: TruthMatrix) -> Codes:
        if self.form == "slots":
            return Slots(world, self.width)
        if self.form in ("vector", "tokens"):
            return Tokens(world, self.width, self.tokens)
        return Composition(world, self.width, self.form)

    def fit(self) -> dict[str, dict[str, Numbers]]:
        """Return the numbers of each test, of what was fitted and of what was left out."""
        world = truth_matrix(self.objects, self.animals, self.textures, self.captions)
        names_hidden = [[any(m[:2] in self.left_out for m in text) for text in its] for its in world[1::-1]]
        rows, columns = (np.array(its) for its in names_hidden)
        seen = world.truth[:, ~columns]
        part = np.ix_(~rows & seen.any(1) & ~seen.all(1), ~columns)
        if not all(its.size for its in part):
            raise UserError("compositions that are left out leave nothing to fit: lower --unseen or raise --animals")
        torch.manual_seed(seed_of(self.seed, "free codes"))
        scores = fit_codes(self.codes(world), world.truth, self.loss, self.steps, part if self.left_out else None)
        tests = exchanges(world)
        hidden = {name: columns[its[:, 0]] | rows[its[:, 1:]].any(1) for name, its in tests.items()}
        fitted = margins(scores[part], world.truth[part]), margins(scores[part].T, world.truth[part].T)
        found = {FITTED: numbers(*fitted, scores, {name: its[~hidden[name]] for name, its in tests.items()})}
        if self.left_out:
            left = margins(scores, world.truth)[rows], margins(scores.T, world.truth.T)[columns]
            found[UNSEEN] = numbers(*left, scores, {name: its[hidden[name]] for name, its in tests.items()})
        return found

    @property
    def left_out(self) -> set[tuple[int, int]]:
        """The compositions, at least one, that the fit leaves out; none of a code that isn't composed."""
        every = list(product(range(self.animals), range(self.textures)))
        if self.form in ("vector", "tokens", "slots"):
            return set()
        order = generator(self.seed, "unseen compositions").permutation(len(every))
        return {every[k] for k in order[: max(1, round(self.unseen * len(every)))]}


def numbers(
    captions: Float[np.ndarray, " c"],
    images: Float[np.ndarray, " i"],
    scores: Float[np.ndarray, "n m"],
    tests: dict[str, Int[np.ndarray, "_ 3"]],
) -> dict[str, Numbers]:
    """Summarise the margins of captions, of images and of exchanges."""
    swapped = {name: scores[true, at] - scores[false, at] for name, its in tests.items() for at, true, false in [its.T]}
    return {name: margin_numbers(its) for name, its in ({"captions": captions, "images": images} | swapped).items()}
