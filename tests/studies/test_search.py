"""Searches above the executor: which trials there are, whoever is stopped and whoever asks. Nothing is trained."""

import subprocess
import sys
from pathlib import Path

import optuna
import pytest
from optuna.samplers import RandomSampler
from optuna.storages import InMemoryStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from menagerie.envs.core.errors import UserError
from menagerie.studies.frame.search import Search, TrialResult
from menagerie.studies.frame.storage import open_storage
from tests import searching
from tests.searching import SEEDS, TRIALS, Runs, cheap
from tests.studies.postgres import SERVER, server

NO_SERVER = pytest.mark.skipif(SERVER is None, reason="there is no PostgreSQL server here")


def trials_of(storage, search=None):
    """All that there are of a search, failed ones too."""
    study = optuna.load_study(study_name=(search or cheap()).name, storage=open_storage(storage))
    return [(t.number, t.params, t.values, t.state.name) for t in study.get_trials()]


@pytest.fixture(scope="module")
def once(tmp_path_factory):
    """The trials of one command that nothing disturbs, its storage, and its folder."""
    folder = tmp_path_factory.mktemp("once")
    Runs(folder / "a").run(cheap(), str(folder / "j.log"))
    return trials_of(str(folder / "j.log")), str(folder / "j.log"), folder / "a"


@pytest.fixture(params=["journal", "sqlite", pytest.param("postgres", marks=NO_SERVER)])
def storage(request, tmp_path):
    if request.param == "postgres":
        with server() as url:
            yield url
    else:
        yield str(tmp_path / "j.log") if request.param == "journal" else f"sqlite:///{tmp_path}/trials.db"


def found(search, storage):
    """The trials of a search that count."""
    return search.found(Storage(), storage)


class Storage:
    """What is known by one who only reads."""

    def storage(self, given):
        return given


def command(storage, folder, *how):
    """What `searching.py` does."""
    script = str(Path(searching.__file__))
    subprocess.run([sys.executable, script, storage, str(folder), *how], check=True, timeout=240)


def test_a_search_killed_ten_times_has_the_same_trials(once, storage, tmp_path):
    command(storage, tmp_path, "kill", "1")
    assert trials_of(storage) == once[0]
    assert {state for *_, state in once[0]} == {"COMPLETE", "PRUNED"}
    assert len({params["x"] for _, params, *_ in once[0]}) == TRIALS


def test_asking_twice_writes_nothing_more_and_optuna_reads_the_journal(once):
    """As optuna-dashboard does."""
    trials, storage, folder = once
    before = Path(storage).read_bytes()
    for _ in range(2):
        assert not Runs(folder).step(cheap(), storage)
        found(cheap(), storage)
    assert Path(storage).read_bytes() == before
    (study,) = optuna.get_all_study_summaries(JournalStorage(JournalFileBackend(storage)))
    assert (study.study_name, study.n_trials) == ("cheap", TRIALS)
    assert study.best_trial.value == max(values[0] for _, _, values, _ in trials if values)


def test_commands_at_once_end_with_exactly_the_trials(storage, tmp_path):
    command(storage, tmp_path, "together")
    trials = trials_of(storage)
    kept = [trial for trial in trials if trial[-1] != "FAIL"]
    assert len(kept) == TRIALS
    assert {state for *_, state in kept} <= {"COMPLETE", "PRUNED"}
    if not storage.startswith("postgres"):  # a lock keeps them apart, so that none asks in vain
        assert kept == trials
    ran = [path.name for folder in tmp_path.glob("machine *") for path in folder.iterdir()]
    assert sorted(ran) == sorted(
        {f"{p['x']}-{p['rate']}-{k}" for _, p, values, _ in kept if values for k in range(SEEDS)}
    )


class Behind(InMemoryStorage):
    """A server on which another machine asks just before this one's trial arrives."""

    other = None

    def create_new_trial(self, study_id, template_trial=None):
        if self.other and template_trial.user_attrs["owner"] == "a":
            faster, self.other = self.other, None
            faster()
        return super().create_new_trial(study_id, template_trial)


def test_two_machines_that_ask_at_once_draw_different_trials(tmp_path):
    storage, search = Behind(), cheap(trials=3)
    a, b = Runs(tmp_path / "a", storage), Runs(tmp_path / "b", storage)
    storage.other = lambda: search.follow(b, "", b.judge)
    search.follow(a, "", a.judge)
    states = [(t.user_attrs["owner"], t.state.name) for t in storage.get_all_trials(0)]
    assert states == [("b", "RUNNING"), ("b", "RUNNING"), ("a", "FAIL"), ("a", "RUNNING")]
    kept = search.found(a, "")
    assert len({trial.params["x"] for trial in kept}) == 3, "and not the same as the other"
    b.run(search, "")
    a.run(search, "")
    assert search.over(search.found(a, ""))


def test_workers_and_stops_change_no_trial(once, tmp_path):
    for name, most in (("one", 1), ("many", 100)):
        runs, storage = Runs(tmp_path / name), str(tmp_path / f"{name}.log")
        while runs.step(cheap(), storage, most):
            pass
        assert trials_of(storage) == once[0]


def test_a_batch_whose_writer_was_killed_is_completed(once, tmp_path, monkeypatch):
    """Between the two writes of its trials; what the first came to has no part in the second."""
    storage, runs, search = str(tmp_path / "j.log"), Runs(tmp_path / "a"), cheap()
    for _ in range(4):
        runs.step(search, storage, 100)
    with monkeypatch.context() as patch:
        patch.setattr(Search, "is_due", lambda self, trials, owner: len(trials) < 9)
        search.follow(runs, storage, runs.judge)
    assert len(found(search, storage)) == 9
    runs.run(search, storage)
    assert trials_of(storage) == once[0]


def test_a_batch_is_drawn_from_what_came_before_it(tmp_path):
    """And its first points are those that were given."""
    first = [{"x": 0.5, "rate": 0.01}, {"x": 0.25, "rate": 0.1}]
    runs, search = Runs(tmp_path / "a", InMemoryStorage()), cheap(first=first)
    assert [t.params for t, _ in search.follow(runs, "", runs.judge)] == first
    runs.step(search, "")
    assert len(search.follow(runs, "", runs.judge)) == 2, "the batch has not ended"
    runs.step(search, "", 100)
    assert len(search.follow(runs, "", runs.judge)) == 4


def test_a_trial_that_will_never_have_values_is_pruned_and_the_next_asked_for(tmp_path):
    edge = [{"x": 0.99, "rate": 0.1}, {"x": 0.5, "rate": 0.1}]
    runs, search = Runs(tmp_path / "a", InMemoryStorage()), cheap(trials=2, at_once=1, first=edge)
    (pruned, tried), (running, _) = search.follow(runs, "", runs.judge)
    assert (pruned.state, tried.pruned) == (TrialState.PRUNED, "too near the edge")
    assert running.state is TrialState.RUNNING
    runs.run(search, "")
    assert search.over(search.found(runs, ""))


def test_a_machine_that_never_returns_is_replaced(tmp_path):
    first = [{"x": 0.1 * k, "rate": 0.1} for k in range(1, 4)]
    storage, search = str(tmp_path / "j.log"), cheap(trials=3, first=first)
    gone, here = Runs(tmp_path / "gone"), Runs(tmp_path / "here")
    search.follow(gone, storage, gone.judge)
    here.run(search, storage)
    assert [t.state.name for t in found(search, storage)] == ["RUNNING", "RUNNING", "COMPLETE"]
    assert not search.over(found(search, storage))
    assert search.abandon(here, storage) == 2
    here.run(search, storage)
    trials = found(search, storage)
    assert search.over(trials)
    assert [t.params for t in trials] == [first[2], *first[:2]], "nothing that was to be tried is lost"
    assert all(t.user_attrs["owner"] == "here" for t in trials)
    gone.run(search, storage)  # it returns after all
    assert found(search, storage) == trials


def test_the_trials_of_others_have_no_runs_here_until_theirs_are(tmp_path):
    storage, search = InMemoryStorage(), cheap(trials=2, at_once=1)
    there, here = Runs(tmp_path / "there", storage), Runs(tmp_path / "here", storage)
    there.step(search, "")
    (_, running), _ = search.follow(here, "", here.judge)
    assert running == TrialResult(())
    there.run(search, "")
    here.run(search, "")
    (trial, ended), _ = search.follow(here, "", here.judge)
    assert ended == TrialResult((), tuple(trial.values))
    for file in there.folder.iterdir():
        (here.folder / file.name).write_bytes(file.read_bytes())
    assert len(search.follow(here, "", here.judge)[0][1].arms) == SEEDS


def test_a_study_of_another_configuration_is_refused(tmp_path):
    storage, runs = str(tmp_path / "j.log"), Runs(tmp_path / "a")
    cheap(settings={"target": 0.9}).follow(runs, storage, runs.judge)
    with pytest.raises(UserError, match=r"another configuration: target \(0.9 there, 0.95 now\)"):
        cheap(settings={"target": 0.95}).follow(runs, storage, runs.judge)
    optuna.create_study(study_name="theirs", storage=open_storage(storage)).add_trial(optuna.create_trial(value=1.0))
    theirs = Search("theirs", {}, 2, sampler=lambda number: RandomSampler())
    with pytest.raises(UserError, match="of another program"):
        theirs.follow(runs, storage, runs.judge)


def test_a_line_that_a_dying_writer_left_is_cut_off(tmp_path):
    journal, runs = tmp_path / "j.log", Runs(tmp_path / "a")
    cheap().follow(runs, str(journal), runs.judge)
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"op_code": 6, "wor')
    reopen(journal)
    runs.step(cheap(), str(journal), 100)
    runs.step(cheap(), str(journal), 100)
    assert journal.read_bytes().startswith(whole + b'{"op_code"')


def reopen(journal):
    """As another command finds it: under another number of its file."""
    whole = journal.read_bytes()
    journal.rename(journal.with_suffix(".before"))
    journal.write_bytes(whole)


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("postgresql+psycopg://me:secret@127.0.0.1:1/none", r"me:\*\*\*@127.0.0.1:1/none can't be opened: .*refused"),
        ("postgresql+psycopg://127.0.0.1:1/none?password=secret", r"none\?\*\*\* can't be opened: .*refused"),
        ("host=127.0.0.1 password=secret", r"password=\*\*\* is not a file"),
        ("nowhere/journal.log", "there is no folder nowhere"),
        ("notes.txt", "is not a journal of Optuna"),
    ],
)
def test_a_storage_that_cannot_be_opened_is_refused_without_its_password(storage, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("mine\nand mine\n")
    runs = Runs(tmp_path / "a")
    with pytest.raises(UserError, match=message) as caught:
        cheap().follow(runs, storage, runs.judge)
    assert "secret" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "notes.txt"]
    assert (tmp_path / "notes.txt").read_text() == "mine\nand mine\n"
