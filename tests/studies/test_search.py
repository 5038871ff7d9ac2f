"""Searches above the executor: which trials there are, whoever is stopped and whoever asks. Nothing is trained."""

import sqlite3
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
from menagerie.studies.frame.search import Search, TrialResult, open_once
from tests import searching
from tests.searching import SEEDS, TRIALS, Runs, cheap
from tests.studies.postgres import SERVER, server

NO_SERVER = pytest.mark.skipif(SERVER is None, reason="there is no PostgreSQL server here")


def trials_of(storage, search=None):
    """All that there are of a search, failed ones too."""
    kept = open_once(storage) if isinstance(storage, str) else storage
    study = optuna.load_study(study_name=(search or cheap()).name, storage=kept)
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
    ran = [path.name for folder in tmp_path.glob("machine *") for path in folder.iterdir()]
    assert sorted(ran) == sorted(
        {f"{p['x']}-{p['rate']}-{k}" for _, p, values, _ in kept if values for k in range(SEEDS)}
    )


class Behind(InMemoryStorage):
    """A storage in which another machine asks just before this one's trial arrives."""

    other = None

    def create_new_trial(self, study_id, template_trial=None):
        if self.other and template_trial.user_attrs["owner"] == "a":
            faster, self.other = self.other, None
            faster()
        return super().create_new_trial(study_id, template_trial)


@pytest.mark.parametrize("trials", [2, 3])
def test_two_machines_that_ask_at_once_draw_different_trials(trials, tmp_path):
    """If there was only one left, the slower one's doesn't count, and a longer search goes on after it."""
    storage, search = Behind(), cheap(trials=trials)
    a, b = Runs(tmp_path / "a", storage), Runs(tmp_path / "b", storage)
    storage.other = lambda: search.follow(b, "", b.judge)
    search.follow(a, "", a.judge)
    states = [(t.user_attrs["owner"], t.state.name) for t in storage.get_all_trials(0)]
    assert states == [("b", "RUNNING"), ("b", "RUNNING"), ("a", "FAIL" if trials == 2 else "RUNNING")]
    for runs in (b, a):
        runs.run(search, "")
    kept = search.found(a, "")
    assert search.over(kept)
    assert len({trial.params["x"] for trial in kept}) == len(kept) == trials
    a.run(cheap(trials=4), "")
    assert len(cheap(trials=4).found(a, "")) == 4


def test_workers_and_stops_change_no_trial(once, tmp_path):
    for name, most in (("one", 1), ("many", 100)):
        runs, storage = Runs(tmp_path / name), str(tmp_path / f"{name}.log")
        while runs.step(cheap(), storage, most):
            pass
        assert trials_of(storage) == once[0]


@pytest.mark.parametrize("named", [0, 1])
def test_a_trial_whose_writer_was_killed_gets_the_same_parameters(named, once, tmp_path):
    """Before any of them was written, and before the last."""
    storage, runs, search = str(tmp_path / "j.log"), Runs(tmp_path / "a"), cheap()
    for _ in range(4):
        runs.step(search, storage, 100)
    study = optuna.load_study(study_name=search.name, storage=open_once(storage))
    there = len(study.trials)
    params = dict(list(once[0][there][1].items())[:named])
    space = {name: searching.SPACE[name] for name in params}
    owned = {"state": TrialState.RUNNING, "user_attrs": {"owner": "a"}}
    study.add_trial(optuna.create_trial(params=params, distributions=space, **owned))
    assert len(found(search, storage)) == there
    runs.run(search, storage)
    assert trials_of(storage) == once[0]


def test_a_search_that_ended_goes_on_with_more_trials(once, tmp_path):
    """As if all had been asked for at once; the same folder, and the same storage."""
    storage, runs = str(tmp_path / "j.log"), Runs(tmp_path / "a")
    for trials in (3, 6, TRIALS):
        runs.run(cheap(trials=trials), storage)
        assert len(trials_of(storage)) == trials
    assert trials_of(storage) == once[0]
    assert len(cheap(trials=3).found(runs, storage)) == 3


DAMAGE = {
    "delete from trials where number = 1": "missing or there twice",
    "update trials set number = 1 where number = 2": "missing or there twice",
    "update trial_values set value = 0.999 where trial_id = 2": "COMPLETE with .0.999. .* the storage was changed",
    "update trial_values set value = null, value_type = 'INF_POS' where trial_id = 2": "isn't a number",
    "update trials set state = 'PRUNED' where number = 1": "PRUNED with .*: the storage was changed",
    "update trials set state = 'FAIL'": "trials failed",
    "update trials set state = 'NONE' where number = 1": "can't be used: .*NONE",
    "update trial_params set param_name = 'y' where trial_id = 2 and param_name = 'x'": "no parameters, or others",
    "update trial_params set distribution_json = '{' where trial_id = 2": "can't be used",
    "delete from trial_user_attributes where trial_id = 2": "no owner",
    "update study_user_attributes set value_json = '{'": "can't be used",
    "drop table trial_values": "COMPLETE with \\[\\] .* the storage was changed",
}


@pytest.mark.parametrize("change", DAMAGE)
def test_a_database_that_was_changed_is_refused(change, tmp_path):
    """In one line, and before any trial is added to it."""
    storage, runs, search = f"sqlite:///{tmp_path}/t.db", Runs(tmp_path / "a"), cheap(trials=4)
    runs.run(search, storage)
    with sqlite3.connect(tmp_path / "t.db") as database:
        database.execute(change)
    database.close()
    open_once.cache_clear()
    before = len(list(runs.folder.iterdir()))
    with pytest.raises(UserError, match=DAMAGE[change]) as caught:
        runs.run(cheap(trials=3), storage)
    assert len(str(caught.value).splitlines()) == 1
    assert len(list(runs.folder.iterdir())) == before


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
    assert search.take_over(here, storage) == 2
    here.run(search, storage)
    trials = found(search, storage)
    assert search.over(trials)
    assert [t.params for t in trials] == first, "nothing that was to be tried is lost"
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
    optuna.create_study(study_name="theirs", storage=open_once(storage)).add_trial(optuna.create_trial(value=1.0))
    theirs = Search("theirs", {}, 2, sampler=lambda number: RandomSampler())
    with pytest.raises(UserError, match="of another program"):
        theirs.follow(runs, storage, runs.judge)


def test_a_line_that_a_dying_writer_left_is_cut_off(tmp_path):
    journal, runs = tmp_path / "j.log", Runs(tmp_path / "a")
    cheap().follow(runs, str(journal), runs.judge)
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"op_code": 6, "wor')
    runs.step(cheap(), str(journal), 100)
    runs.step(cheap(), str(journal), 100)
    assert journal.read_bytes().startswith(whole + b'{"op_code"')


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
