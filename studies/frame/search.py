"""Searches with Optuna over the arms of a study, and Optuna's storages of their trials: a journal file, SQLite, or any
database that it opens, also on a server. No message from here contains a password.

Only the command draws trials and tells results, which are read from the cells. A trial is created as running, with the
name of the folder (its owner) that trains it. Its parameters depend only on its number and on the trials that ended
before its batch. Machines that share a storage create trials of their own. If two create the last one at the same
instant, the second is marked as failed and doesn't count.
"""

import contextlib
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.storages import BaseStorage, JournalStorage, RDBStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, TrialState, create_trial

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import json_value
from menagerie.envs.core.reading import Unreadable, open_file
from menagerie.models.spec import Range
from menagerie.studies.frame.arm import IMAGINED, WHY, Arm
from menagerie.studies.runs.folder import describe_differences, error_without_passwords, without_passwords

if TYPE_CHECKING:
    from menagerie.studies.frame.arm import KnownResults

Space = Mapping[str, BaseDistribution]
Params = Mapping[str, Any]
OWNER, SETTINGS = "owner", "settings"  # attributes of a trial and of a search
STARTUP = 3  # trials of a search that are drawn at random, the first ones given among them
JOURNAL = b'{"op_code"'  # how Optuna's journals begin
GRACE = 10  # seconds after which the lock of a command that was killed while it wrote is taken away
BUSY = 60  # seconds that SQLite waits for other commands

optuna.logging.set_verbosity(optuna.logging.ERROR)  # it would log every trial
warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)  # options of samplers may change
warnings.filterwarnings("ignore", ".*constraints_func", FutureWarning)  # what takes its place is new in Optuna 5


class TrialResult(NamedTuple):
    """The result of a trial's parameters so far."""

    arms: Sequence[Arm]
    values: tuple[float, ...] | None = None
    """The values of the objectives; None until its arms have ended, and if it is pruned."""
    pruned: str = ""
    """Why the trial will never have values; empty if it may have some."""
    attributes: Mapping[str, float] = {}
    """Further numbers that the trial is stored with, such as that of a constraint."""

    @property
    def ended(self) -> bool:
        return self.values is not None or bool(self.pruned)


def draw_by_tpe(seed: int) -> TPESampler:
    """Return Optuna's TPE, for one or several objectives (Ozaki et al. 2020), over all parameters together."""
    return TPESampler(seed=seed % 2**32, n_startup_trials=STARTUP, multivariate=True, constant_liar=True)


def draw_by_constraint(seed: int, constraint: Callable[[FrozenTrial], float]) -> GPSampler:
    """Return Optuna's sampler of the best value where `constraint` is at most 0 (Gardner et al. 2014)."""
    import torch

    torch.set_num_threads(1)  # more would change the last digits, and so what is drawn
    given: Any = {"constraints_func": lambda trial: (constraint(trial),)}
    return GPSampler(seed=seed % 2**32, n_startup_trials=STARTUP, **given)


@dataclass(frozen=True)
class Search:
    """An Optuna study: its space, its sampler and its number of trials."""

    name: str
    space: Space
    trials: int
    at_once: int = 1
    """Number of trials in an owner's batch. A batch is created when the owner's batch before it has ended."""
    directions: tuple[str, ...] = ("maximize",)
    sampler: Callable[[int], BaseSampler] = draw_by_tpe
    """Makes the sampler of the trial with a given number."""
    first: Sequence[Params] = ()
    """Parameters of the first trials, all or some of them; the sampler draws the others."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The settings that decide results. A study in the storage with other settings is refused."""

    def follow(
        self, known: "KnownResults", given: str, judge: Callable[[FrozenTrial], TrialResult]
    ) -> list[tuple[FrozenTrial, TrialResult]]:
        """Write the results of trials that have ended, create those that are due, and return all with what `judge`
        makes of them.

        `given` is the storage as the user gave it. No other part of a plan writes. Trials of other owners have no arms,
        unless all their runs are here too. Raises `UserError` for a storage that fails, or has other settings.
        """
        place = known.storage(given)
        while True:
            with opened(place) as storage:
                study = self.study(storage)
                trials = self.draw_missing(study, storage, known.owner)
            judged = [(trial, judge(trial)) for trial in trials if trial.params.keys() == self.space.keys()]
            with opened(place) as storage:
                told = sum(self.tell(study, storage, *each) for each in judged if is_running_of(each[0], known.owner))
                if not told and not self.create_due(study, trials, known.owner):
                    break
        found = []
        for trial, tried in judged:
            self.check_values(trial, tried)
            if trial.user_attrs[OWNER] != known.owner and not tried.ended:  # its runs aren't here
                why = "it ended without a value on another machine" if trial.state is TrialState.PRUNED else ""
                tried = TrialResult((), tuple(trial.values) if trial.values else None, why)
            found.append((trial, tried))
        return found

    def found(self, known: "KnownResults", given: str) -> list[FrozenTrial]:
        """Return the trials that there are so far, by number; writes nothing."""
        with opened(known.storage(given)) as storage:
            if self.name not in {study.study_name for study in storage.get_all_studies()}:
                return []
            trials = self.counting(optuna.load_study(study_name=self.name, storage=storage))
        return [trial for trial in trials[: self.trials] if trial.params.keys() == self.space.keys()]

    def over(self, trials: Sequence[FrozenTrial]) -> bool:
        """Whether all trials of the search have ended, on whatever machine."""
        return len(trials) >= self.trials and all(trial.state.is_finished() for trial in trials)

    def take_over(self, known: "KnownResults", given: str) -> int:
        """Make this folder the owner of all running trials of others; returns their number."""
        with opened(known.storage(given)) as storage:
            left = running_elsewhere(self.counting(self.study(storage)), known.owner)
            for trial in left:
                storage.set_trial_user_attr(trial._trial_id, OWNER, known.owner)
        return len(left)

    def study(self, storage: BaseStorage) -> optuna.Study:
        """Open the search in a storage, and create it if it isn't there. Raises if it has other settings there."""
        place: Any = {"study_name": self.name, "storage": storage, "sampler": self.sampler(0)}
        try:
            study = optuna.load_study(**place)
        except KeyError:
            study = optuna.create_study(**place, directions=list(self.directions), load_if_exists=True)
        space = {name: optuna.distributions.distribution_to_json(values) for name, values in self.space.items()}
        wanted = json_value(dict(self.settings) | {"at once": self.at_once, "space": space})
        if SETTINGS not in study.user_attrs and not study.get_trials(deepcopy=False):
            study.set_user_attr(SETTINGS, wanted)
        if (there := study.user_attrs.get(SETTINGS)) is None:
            raise UserError(f"the storage has a study {self.name!r} of another program; choose another --study")
        if listed := describe_differences(there, wanted):
            there = f"the study {self.name!r} in this storage is of another configuration"
            raise UserError(f"{there}: {listed}; choose another --study")
        return study

    def counting(self, study: optuna.Study) -> list[FrozenTrial]:
        """Return the trials that didn't fail, by number. Raises for a damaged storage."""
        trials = study.get_trials(deepcopy=False)
        counted = [trial for trial in trials if trial.state is not TrialState.FAIL]
        ended, failed = [trial for trial in counted if trial.state.is_finished()], len(trials) - len(counted)
        found = {
            "rows of trials are missing or there twice": [t.number for t in trials] != list(range(len(trials))),
            "a trial has no owner": any(OWNER not in trial.user_attrs for trial in counted),
            "a trial that ended has no parameters, or others": any(t.params.keys() != self.space.keys() for t in ended),
            "a value isn't a number": not all(math.isfinite(value) for trial in ended for value in trial.values or ()),
            f"{failed} trials failed": failed > max(self.trials, len(counted)),
        }
        if why := next((text for text, wrong in found.items() if wrong), ""):
            raise UserError(f"the storage of {self.name!r} is damaged: {why}; restore it, or choose another --study")
        return counted

    def draw_missing(self, study: optuna.Study, storage: BaseStorage, owner: str) -> list[FrozenTrial]:
        """Write the parameters of the owner's trials that have none yet, and mark trials above the search's number as
        failed; returns all others."""
        trials = self.counting(study)
        for trial in trials[self.trials :]:
            if is_running_of(trial, owner):
                study.tell(trial.number, state=TrialState.FAIL)
        trials = trials[: self.trials]
        lacking = [t for t in trials if is_running_of(t, owner) and t.params.keys() != self.space.keys()]
        for trial in lacking:
            for name, value in self.draw(trial, self.counting(study), owner).items():
                values = self.space[name]
                storage.set_trial_param(trial._trial_id, name, values.to_internal_repr(value), values)
        return self.counting(study)[: self.trials] if lacking else trials

    def draw(self, trial: FrozenTrial, trials: Sequence[FrozenTrial], owner: str) -> Params:
        """Draw a trial's parameters in a temporary study of all trials, in which those of its own batch still run."""
        mine = [other.number for other in trials if other.user_attrs[OWNER] == owner]
        place = mine.index(trial.number)
        batch, later = mine[place - place % self.at_once :], mine[place:]
        sampler = RandomSampler(trial.number) if owner == IMAGINED else self.sampler(trial.number)  # a dry run is fast
        study = optuna.create_study(directions=list(self.directions), sampler=sampler)
        for other in trials:
            if other.number not in later and other.params.keys() == self.space.keys():
                as_running = {"params": other.params, "distributions": other.distributions, "state": TrialState.RUNNING}
                study.add_trial(create_trial(**as_running) if other.number in batch else other)
        if trial.number < len(self.first):
            study.enqueue_trial(dict(self.first[trial.number]))
        return study.ask(dict(self.space)).params

    def tell(self, study: optuna.Study, storage: BaseStorage, trial: FrozenTrial, tried: TrialResult) -> bool:
        """Write the result of a trial, if it has ended; returns whether it has."""
        if tried.pruned:
            storage.set_trial_user_attr(trial._trial_id, WHY, tried.pruned)
            study.tell(trial.number, state=TrialState.PRUNED, skip_if_finished=True)
        elif tried.values is not None:
            for name, value in tried.attributes.items():
                storage.set_trial_user_attr(trial._trial_id, name, value)
            study.tell(trial.number, list(tried.values), TrialState.COMPLETE, skip_if_finished=True)
        return tried.ended

    def check_values(self, trial: FrozenTrial, tried: TrialResult) -> None:
        """Raise if a trial that ended has other values in the storage than its runs, which are here."""
        if not trial.state.is_finished() or not tried.ended:
            return
        there = [*(trial.values or ()), *(trial.user_attrs.get(name, math.nan) for name in tried.attributes)]
        here = [*(tried.values or ()), *tried.attributes.values()]
        same = len(there) == len(here) and (trial.state is TrialState.PRUNED) == bool(tried.pruned)
        if not same or not all(map(math.isclose, there, here)):
            raise UserError(
                f"trial {trial.number} of {self.name!r} is {trial.state.name} with {there} in the storage, not "
                f"with {here} as its runs: the storage was changed; restore it, or choose another --study"
            )

    def create_due(self, study: optuna.Study, trials: Sequence[FrozenTrial], owner: str) -> bool:
        """Create a trial if one is due: the search has trials left, and the owner's batch isn't full or has ended."""
        mine = [trial for trial in trials if trial.user_attrs[OWNER] == owner]
        due = len(mine) % self.at_once or all(trial.state.is_finished() for trial in mine)
        if len(trials) >= self.trials or not due:
            return False
        study.add_trial(create_trial(state=TrialState.RUNNING, user_attrs={OWNER: owner}))
        return True


def is_running_of(trial: FrozenTrial, owner: str) -> bool:
    return not trial.state.is_finished() and trial.user_attrs[OWNER] == owner


def running_elsewhere(trials: Sequence[FrozenTrial], owner: str) -> list[FrozenTrial]:
    return [trial for trial in trials if not trial.state.is_finished() and trial.user_attrs[OWNER] != owner]


def distribution(values: Range | tuple[Any, ...]) -> BaseDistribution:
    """Convert a range or the choices of a model's spec to a distribution of Optuna."""
    if not isinstance(values, Range):
        return CategoricalDistribution(values)
    kind = FloatDistribution if float in map(type, (values.least, values.most)) else IntDistribution
    return kind(values.least, values.most, log=values.log)


def can_have(values: BaseDistribution, value: Any) -> bool:
    if isinstance(values, CategoricalDistribution):
        return value in values.choices
    return bool(values.low <= (value or 0) <= values.high)


@contextlib.contextmanager
def opened(place: str | BaseStorage) -> Iterator[BaseStorage]:
    """Yield a storage, made if it isn't there. Whatever its driver or server raises inside is a `UserError`."""
    what = "opened"
    try:
        storage = place if isinstance(place, BaseStorage) else open_once(place)
        if isinstance(place, str) and "://" not in place:
            cut_torn(Path(place))
        what = "used"
        yield storage
    except UserError:
        raise
    except Exception as error:
        raise storage_error(str(place), error, what) from error


@lru_cache(maxsize=8)
def open_once(place: str) -> BaseStorage:
    if "://" in place:
        return connect(place)
    check_journal(Path(place))
    cut_torn(Path(place))
    return JournalStorage(JournalFileBackend(place, JournalFileOpenLock(place, grace_period=GRACE)))


def connect(url: str) -> RDBStorage:
    """Connect to a database. Tries again, because another command may be creating the same tables."""
    from sqlalchemy.exc import DBAPIError

    kwargs: dict[str, Any] = {"pool_pre_ping": True}  # reconnects to a restarted server
    if url.startswith("sqlite"):
        kwargs["connect_args"] = {"timeout": BUSY}
    for _ in range(4):
        with contextlib.suppress(DBAPIError):
            return RDBStorage(url, engine_kwargs=kwargs)
        time.sleep(0.5)
    return RDBStorage(url, engine_kwargs=kwargs)


def cut_torn(path: Path) -> None:
    """Cut off the incomplete last line that a killed writer or a full disk left: Optuna would append to it."""
    if not path.exists() or path.read_bytes()[-1:] in (b"", b"\n"):
        return
    lock = JournalFileOpenLock(str(path), grace_period=GRACE)
    lock.acquire()  # a line that is still being written is complete by then
    try:
        with path.open("rb+") as file:
            file.truncate(file.read().rfind(b"\n") + 1)
    finally:
        lock.release()


def check_storage(place: str) -> None:
    """Raise if `--storage` can't be a storage; doesn't connect to a server."""
    if place and "://" not in place:
        check_journal(Path(place))
    elif place:
        from sqlalchemy import create_engine

        try:
            create_engine(place).dispose()
        except Exception as error:  # any error of SQLAlchemy or a driver
            raise storage_error(place, error) from error


def check_journal(path: Path) -> None:
    """Raise for a path where there can't be a journal, and for a file that isn't one, which must not be written to."""
    if (shown := without_passwords(str(path))) != str(path) and not path.exists():
        raise UserError(
            f"--storage {shown} is not a file; write a database as a URL with ://, such as postgresql://me@host/base"
        )
    if not path.parent.is_dir():
        raise UserError(f"--storage {path}: there is no folder {path.parent}; write a database as a URL with ://")
    if not path.exists() and not path.is_symlink():
        return
    try:
        with open_file(path) as file:
            start = file.read(1 << 12).lstrip()[: len(JOURNAL)]
    except Unreadable as error:
        raise UserError(f"--storage: {error}; name a journal, a new file, or a database by a URL with ://") from error
    if not JOURNAL.startswith(start):
        raise UserError(f"--storage {path} is not a journal of Optuna; name one, a new file, or a database by its URL")


def storage_error(place: str, error: BaseException, what: str = "opened") -> UserError:
    """Return the error for a storage that can't be opened or used, with the first line of its innermost cause."""
    while error.__cause__ is not None:
        error = error.__cause__
    why = (str(error).strip().splitlines() or [""])[0]
    why = why if " " in why else f"{type(error).__name__} {why}".strip()
    return UserError(
        f"--storage {without_passwords(place)} can't be {what}: {error_without_passwords(why, place)}; "
        "docs/studies.md shows what it may be; finished runs are kept"
    )
