"""The options of studies that search with Optuna. Free of Optuna."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import tyro

from menagerie.envs.core.files import write_csv
from menagerie.envs.core.identity import json_value
from menagerie.envs.core.options import FIRST, PLACE, WHAT
from menagerie.envs.core.validation import FIRST_SEED, RUNS
from menagerie.studies.frame.options import EXECUTION, GROWS
from menagerie.studies.frame.parts import Rows
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.study import SplitStudy
from menagerie.studies.runs.command_line import only_models
from menagerie.studies.runs.folder import without_passwords

if TYPE_CHECKING:
    from pathlib import Path

    from menagerie.studies.frame.search import Search


@dataclass(frozen=True)
class SearchStudy(SplitStudy):
    """A study on splits that makes a separate search for each model."""

    alone: ClassVar[bool] = True

    trials: Annotated[int, WHAT, FIRST, RUNS, GROWS] = 12
    """Trials of each search; more may follow later."""
    trials_at_once: Annotated[int, tyro.conf.arg(name="at-once"), WHAT, RUNS] = 2
    """Trials of a model that are drawn together, from the results of all earlier ones. So many can run at once, and
    draws don't depend on --workers."""
    sampler_seed: Annotated[int, WHAT, FIRST_SEED] = 0
    """Seed of the searches' draws."""
    storage: Annotated[str, PLACE, GROWS] = ""
    """Where trials are stored: a journal file, or the URL of a database (sqlite:///trials.db, postgresql+psycopg://...)
    that commands on many machines may share; empty takes journal.log in the folder of the results. optuna-dashboard
    can open it."""
    study: Annotated[str, PLACE, GROWS] = ""
    """Name of the study in its storage; empty takes the name of this command."""
    abandon: Annotated[bool, PLACE, GROWS] = False
    """Take over all running trials of other folders in this study, even if their commands still run."""

    @abstractmethod
    def searches(self) -> "list[Search]":
        """All searches of the study."""

    def check(self) -> None:
        """Raise if `--storage` can't be a storage."""
        from menagerie.studies.frame.storage import check_storage

        super().check()
        check_storage(self.storage)

    def prepare(self, out: "Path") -> "SearchStudy":
        """With `--abandon`, take over all running trials of other folders."""
        for search in self.searches() if self.abandon and not self.dry_run else ():
            if number := search.take_over(Records((), out), self.storage):
                print(f"{search.name}: {number} trials of other commands were taken over")
        return self

    def decisive(self, model: str) -> dict[str, Any]:
        """Return the settings that decide the trials of a model; they must be the same for all who share its search."""
        alone = replace(self, models=(model,), scorers=only_models(self.scorers, (model,)))
        ignored = EXECUTION | self.growing()
        return {name: value for name, value in json_value(asdict(alone)).items() if name not in ignored}

    def as_recorded(self) -> "SearchStudy":
        """Return the study as its folder and its page show it: without the password that the storage's URL may hold."""
        return replace(self, storage=without_passwords(self.storage))


def write_trials(records: Records, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write all trials to trials.csv; their rows have the same columns."""
    if rows:
        write_csv(records.out / "trials.csv", list(rows[0]), (list(row.values()) for row in rows))


def trial_table(rows: Sequence[Mapping[str, Any]]) -> Rows:
    """Return the table of all trials on the page; their rows have the same columns."""
    return Rows("all_trials", list(rows[0]) if rows else [], [list(map(trial_text, row.values())) for row in rows])


def trial_text(value: Any) -> str:
    """Return a value of a trial as text."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {trial_text(each)}" for name, each in value.items())
    return "–" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
