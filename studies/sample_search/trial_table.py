"""All trials of a study of sample efficiency: as rows of a file, and as texts of a page."""

from collections.abc import Mapping, Sequence
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from menagerie.studies.analysis.tables import DASH
from menagerie.studies.sample_search.budget import SampleStudy, images_seen
from menagerie.studies.sample_search.objectives import CHECKS
from menagerie.studies.sample_search.tables import HEADER, Point

LOOKS = CHECKS + 1  # at a seed: while it trains, and its end
# What each question's search is called.
SEARCHES = {"front": "first", "target": "second"}


def state_of(config: SampleStudy, trial: FrozenTrial) -> str:
    """complete or pruned, as Optuna has it; missed where all seeds were trained and they miss the target together."""
    ended = len(trial.user_attrs.get("validations", ())) == config.seeds
    return "missed" if trial.state is TrialState.PRUNED and ended else trial.state.name.lower()


def ended_early(config: SampleStudy, trial: FrozenTrial) -> float | str:
    """Accuracy on validation of the seed in whose training a trial was pruned, when it was; empty for any other."""
    trained = len(trial.user_attrs.get("validations", ()))
    if state_of(config, trial) != "pruned" or trial.last_step is None:
        return ""
    return trial.intermediate_values[trial.last_step] if trial.last_step // LOOKS == trained else ""


def trial_rows(config: SampleStudy, all_points: Sequence[Point]) -> list[dict[str, Any]]:
    """Every trial as a row of a CSV file."""
    rows = []
    for point in all_points:
        known = point.trial.user_attrs
        if "images" not in known:
            continue
        by_seed = {f"validation_{k}": value for k, value in enumerate(known.get("validations", []))}
        rows.append(
            {"question": point.question, "model": point.model, "trial": point.trial.number}
            | {"state": state_of(config, point.trial), **known["setting"], "images": point.images}
            | {"images_seen": images_seen(config, point.model, point.steps), "validation": known.get("accuracy", "")}
            | {f"validation_{k}": by_seed.get(f"validation_{k}", "") for k in range(config.seeds)}
            | {"ended_early": ended_early(config, point.trial)}
        )
    return rows


def trial_texts(config: SampleStudy, rows: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    """Header and rows of all trials as people read them, in the words and units of the other tables."""
    header = ["search", "model", "trial", "state", *HEADER[2:], HEADER[0], "images seen", "validation (%)"]
    table = [[*header, *(f"seed {k} (%)" for k in range(config.seeds))]]
    for row in rows:
        shares = [f"{row[name]:.0%}" for name in ("pairs", "hard_negatives")]
        lone = [str(row["singles_views"]), f"{row['singles_share']:.0%}"]
        seeds = [percent(row[f"validation_{k}"]) for k in range(config.seeds)]
        if row["ended_early"] != "":
            seeds[seeds.index(DASH)] = f"{percent(row['ended_early'])} (ended early)"
        so_far = " (so far)" if row["state"] == "pruned" and row["validation"] != "" else ""
        place = [SEARCHES[row["question"]], row["model"], str(row["trial"]), row["state"]]
        counts = [str(row["images"]), str(row["images_seen"])]
        table.append([*place, *shares, *lone, *counts, percent(row["validation"]) + so_far, *seeds])
    return table


def percent(value: float | str) -> str:
    """An accuracy in percent; a dash where a seed wasn't trained."""
    return DASH if value == "" else f"{100 * float(value):.1f}"
