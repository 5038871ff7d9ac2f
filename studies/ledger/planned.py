"""Checks that a claim's numbers are of runs, tests and tasks that its study plans, before anything is trained."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from menagerie.envs.core.errors import UserError, choose
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.command import study_of
from menagerie.studies.frame.study import all_arms
from menagerie.studies.ledger.claim_file import ClaimFile


def planned_arms(command: str, out: Path, store: Path) -> tuple[Arm, ...]:
    """Return the runs that a study's command trains in the longest case."""
    study = study_of(command, out, store)
    study.check()
    return all_arms(study)


def check_planned(file: ClaimFile, arms: Sequence[Arm]) -> None:
    """Raise for a group of records that no planned run will have. Rows of tables are known only when a study ended."""
    for each in (*file.claim.condition, *file.claim.criterion):
        for group in each.accuracy:
            try:
                check_group(group, arms)
            except UserError as error:
                raise error.at(f"{each.says!r}") from error


def check_group(group: dict[str, Any], arms: Sequence[Arm]) -> None:
    wanted = {name: several(value) for name, value in group.items() if name != "weight"}
    subsets, tasks = (wanted.pop(name, ()) for name in ("subset", "task"))
    for name, values in wanted.items():
        known = list(dict.fromkeys(arm.place.get(name) for arm in arms))
        if unknown := [value for value in values if value not in known]:
            raise UserError(f"no planned run of these labels has {name} {unknown[0]!r}; there are {known}")
        arms = [arm for arm in arms if arm.place[name] in values]
    for subset in subsets:
        choose("test", subset, {test: None for arm in arms for test in arm.cell.tests})
    recipes = [arm.cell.data.recipe for arm in arms if hasattr(arm.cell.data, "recipe")]
    for task in tasks if recipes else ():  # data of other kinds say their tasks when they are read
        choose("task", task, {task: None for recipe in recipes for task in ("swap", *recipe.tasks)})


def several(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, list | tuple) else (value,)
