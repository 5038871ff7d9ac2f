"""Effects in two-level factorial designs: estimates from records, and their figure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

from menagerie.envs.core.errors import UserError
from menagerie.studies.analysis.factorial import Effect, design, effects
from menagerie.studies.frame.arm import as_column
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.claims import judge_difference
from menagerie.studies.frame.estimate import KEY, Estimate, estimate
from menagerie.studies.frame.parts import OwnFigure
from menagerie.studies.frame.records import Records

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Levels = Mapping[str, tuple[Any, Any]]
"""The two values of each factor, by the label that runs have for it."""
Found = Mapping[str, Mapping[Effect, Estimate]]
"""The effects for each model, or for each value of another label."""


def finished_seeds(records: Records, value: Any, runs: int, by: str = "model") -> list[int]:
    """List the seeds for which all runs of the design are finished, for a model or a value of another label."""
    seeds = [arm.cell.seed for arm, _ in records.results if arm.place[by] == value]
    return [seed for seed in dict.fromkeys(seeds) if seeds.count(seed) == runs]


def contrasts(records: Records, levels: Levels, by: str = "model", most: int = 2) -> dict[Any, dict[Effect, Estimate]]:
    """Estimate every effect of up to `most` factors on the records of one test, for each model (or value of the label
    `by`). Only seeds for which all runs are finished count.

    An effect is the mean of the runs in which the product of its factors' signs is 1, minus the mean of the others. For
    a pair of factors this is half the difference between one factor's effect at the other's second level and at its
    first. All runs of a seed are tested by the same records, so each record gives a difference; `estimate` takes the
    mean of these, with the interval of paired differences. Raises `UserError` if runs were tested by different
    records.
    """
    runs, points, found = len(design(len(levels))), records.points, {}
    for value in records.labels(by) if len(points) else ():
        part = points[(points[by] == value) & points["seed"].isin(finished_seeds(records, value, runs, by))]
        if not len(part):
            continue
        signs = {name: part[name].eq(as_column(both[1])) * 2 - 1 for name, both in levels.items()}
        for effect in effects(tuple(levels), most):
            signed = part.assign(value=part["value"] * prod(signs[name] for name in effect))
            sums = signed.groupby([*KEY, "animals"], sort=False)["value"].agg(["sum", "size"])
            if not sums["size"].eq(runs).all():
                raise UserError(f"{records.out}: runs of {value} were tested by different records: no effect is known")
            its = sums["sum"].mul(2 / runs).rename("value").reset_index()
            found.setdefault(value, {})[effect] = estimate(its, signed=True)
    return found


def sign_of_effect(its: Estimate | None) -> int:
    """1 for an effect whose interval is above 0, -1 for one whose interval is below, else 0."""
    return {"confirmed": 1, "contradicted": -1}.get(judge_difference(its, 1), 0)


@dataclass(frozen=True)
class Effects(OwnFigure):
    """Every effect as a dot with its interval, main effects above pairs; a panel for each key of `found`. Effects whose
    sign isn't certain (`sign_of_effect`) are grey."""

    found: Found
    words: Mapping[Effect, str]
    """What each effect is called, from top to bottom."""
    title: Callable[[Any], str] = field(default=title_of, kw_only=True)
    """What a panel is called."""

    def numbers(self) -> list[dict[str, Any]]:
        return [
            {"model": model, "effect": self.words[effect], **its._asdict()}
            for model, of_model in self.found.items()
            for effect, its in of_model.items()
        ]

    def figure(self) -> "Figure | None":
        if not self.found:
            return None
        from menagerie.studies.frame.bars import NAMES, ROW, draw_dot
        from menagerie.studies.frame.figures import panel_axes, style_axes
        from menagerie.studies.report.figures import COLOURS

        size = (3.4, ROW * len(self.words) + 0.75)
        figure, axes = panel_axes(len(self.found), size, NAMES, sharex=True, sharey=True)
        for axis, (model, of_model) in zip(axes, self.found.items(), strict=True):
            axis.set_title(self.title(model), fontsize=9, parse_math=False)
            style_axes(axis)
            axis.axvline(0, color="0.4", linewidth=1)
            axis.axhline(sum(len(effect) == 1 for effect in self.words) - 0.5, color="0.8", linewidth=1)
            for row, effect in enumerate(self.words):
                draw_dot(
                    axis, of_model[effect], float(row), COLOURS[0] if sign_of_effect(of_model[effect]) else "0.6", ()
                )
        axes[0].set_yticks(range(len(self.words)), list(self.words.values()), parse_math=False)
        axes[0].set_ylim(len(self.words) - 0.4, -0.6)
        figure.supxlabel("effect in percentage points", x=NAMES / figure.get_figwidth(), ha="left", fontsize=9)
        return figure
