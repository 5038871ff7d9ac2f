"""A fit of free codes to a world, as a job: its numbers of what was fitted and of what was left out."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import digest, generator, seed_of
from menagerie.studies.measures.free_codes import SCALE, Codes, Composition, Slots, Tokens, fit_codes, margins
from menagerie.studies.measures.truth_matrix import TruthMatrix, exchanges, truth_matrix
from menagerie.studies.runs.cell import AnyJob, Report
from menagerie.studies.runs.folder import provenance
from menagerie.studies.runs.results import read_result, write_result

TIE = 1e-9  # difference of scores below which they count as equal, which is rounding
FITTED, UNSEEN = "fitted", "unseen"
Numbers = dict[str, float | None]


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
    steps: int = 400
    out: Path = field(default=Path(), kw_only=True, compare=False)

    @property
    def id(self) -> str:
        return digest({item.name: getattr(self, item.name) for item in fields(self) if item.name != "out"})

    @property
    def model(self) -> str:
        return self.form

    @property
    def name(self) -> str:
        form = f"{self.tokens} tokens" if self.form == "tokens" else self.form
        return f"{form}, width {self.width}, {self.objects} objects, {self.captions}, {self.loss}, seed {self.seed}"

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
