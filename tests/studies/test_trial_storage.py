"""Trials that workers share, and workers that die."""

import collections
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from menagerie.envs.core.errors import UserError
from menagerie.studies.runs.folder import provenance
from menagerie.studies.trials.queue import Search, Trials
from menagerie.studies.trials.storage import unopened
from menagerie.studies.trials.workers import process, run_workers, work
from tests import cheap_search
from tests.command import ROOT
from tests.studies.postgres import SERVER, server

TRIALS = 40


def start(storage, folder, *stall):
    command = [sys.executable, str(Path(cheap_search.__file__)), storage, str(folder), str(TRIALS), *stall]
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL)


def four_workers_two_killed(storage, folder):
    """Run them; returns the numbers of the trials in whose middle a worker was killed."""
    doomed = [start(storage, folder, "stall") for _ in range(2)]
    try:
        wait_for(lambda: len(list(folder.glob("stalled-*"))) == 2)
        stalled = list(folder.glob("stalled-*"))
        steady = [start(storage, folder) for _ in range(2)]
    finally:  # nothing outlives a test that fails
        for worker in doomed:
            os.kill(worker.pid, signal.SIGKILL)
            worker.wait()
    assert [worker.wait(240) for worker in steady] == [0, 0]
    return [int(file.read_text()) for file in stalled]


def check_all_ended_once(storage, folder, killed):
    trials = Trials(storage, beat_seconds=1)
    every_trial = trials.storage.get_all_trials(trials.storage.get_study_id_from_name("cheap"))
    assert [trial.number for trial in every_trial if trial.state is not TrialState.FAIL] == list(range(TRIALS))
    assert {trial.state for trial in every_trial[:TRIALS]} == {TrialState.COMPLETE, TrialState.PRUNED}
    ended = collections.Counter(map(int, (folder / "ended").read_text().split()))
    assert ended == dict.fromkeys(range(TRIALS), 1)
    assert len(killed) == 2
    for trial in every_trial[:TRIALS]:  # also those of the killed: taken up with what was drawn for them
        drawn = optuna.samplers.RandomSampler(seed=trial.number)._rng.rng.uniform(-1, 1)
        assert trial.params["x"] == pytest.approx(drawn)
        assert (trial.state is TrialState.COMPLETE) == (trial.params["x"] <= 0.5)


def test_every_trial_in_a_journal_ends_once(tmp_path):
    storage = str(tmp_path / "journal.log")
    check_all_ended_once(storage, tmp_path, four_workers_two_killed(storage, tmp_path))


@pytest.mark.skipif(SERVER is None, reason="there is no PostgreSQL server here (Debian: apt-get install postgresql)")
def test_every_trial_in_a_database_ends_once(tmp_path):
    with server() as storage:
        check_all_ended_once(storage, tmp_path, four_workers_two_killed(storage, tmp_path))


def run_all(storage, trials, objective):
    queue = Trials(str(storage))
    search = cheap_search.search(trials)
    queue.open(search, {})
    work(queue, [search], objective)
    return [(trial.number, trial.params, trial.values, trial.state) for trial in queue.all(search)]


def test_one_worker_twice_gives_the_same_trials(tmp_path):
    objective = partial(cheap_search.objective, tmp_path, False, [])
    assert run_all(tmp_path / "a.log", 8, objective) == run_all(tmp_path / "b.log", 8, objective)


def test_a_worker_that_must_stop_gives_its_trial_back(tmp_path):
    def stop(search, trial):
        trial.suggest_float("x", -1, 1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_all(tmp_path / "a.log", 8, stop)
    objective = partial(cheap_search.objective, tmp_path, False, [])
    assert run_all(tmp_path / "a.log", 8, objective) == run_all(tmp_path / "b.log", 8, objective)


def test_a_running_trial_is_nobody_elses(tmp_path):
    search = cheap_search.search(2)
    one, other = Trials(str(tmp_path / "j.log")), Trials(str(tmp_path / "j.log"))
    one.open(search, {})
    other.open(search, {})
    first, second = one.take(search), other.take(search)
    assert (first.number, second.number) == (0, 1)
    assert other.take(search) is None
    one.leases.locks[one.storage.get_trial_id_from_study_id_trial_number(0, 0)].release()  # as a process that dies
    assert other.take(search).number == 0


def test_a_worker_without_a_trial_helps_with_one_that_runs(tmp_path):
    search = cheap_search.search(1)
    one, other = Trials(str(tmp_path / "j.log")), Trials(str(tmp_path / "j.log"))
    one.open(search, {})
    taken, helped = one.take(search), []

    def help_with(search, trial):
        helped.append((search.name, trial.number))
        one.end(taken, None)

    work(other, [search], partial(cheap_search.objective, tmp_path, False, []), help_with)
    assert helped == [("cheap", 0)]
    assert not (tmp_path / "ended").exists(), "it has run no trial of its own"


def test_another_commands_searches_count_until_they_end(tmp_path):
    """What cells share is deleted when nobody needs it any more, and two commands may search in one folder."""
    run_all(tmp_path / "j.log", 2, partial(cheap_search.objective, tmp_path, False, []))
    mine, other = Trials(str(tmp_path / "j.log")), Trials(str(tmp_path / "j.log"))
    assert mine.all_ended("cheap")
    further = replace(cheap_search.search(1), name="cheap further")
    other.open(further, {})
    assert not mine.all_ended("cheap")
    taken = other.take(further)
    assert not mine.all_ended("cheap")
    assert mine.all_ended("dear ")
    other.end(taken, None)
    assert mine.all_ended("cheap")


def test_one_that_was_taken_for_dead_leaves_what_another_found(tmp_path):
    """As after a long sleep of its machine: its trial was run and ended by another."""
    search = cheap_search.search(1)
    late, other = Trials(str(tmp_path / "j.log")), Trials(str(tmp_path / "j.log"))
    late.open(search, {})

    def slow(search, trial):
        late.leases.locks[late._id("cheap", 0)].release()
        taken = other.take(search)
        other.end(taken, [2.0])
        trial.suggest_float("x", -1, 1)
        return (1.0,)

    work(late, [search], slow)
    assert other.all(search)[0].values == [2.0]


def test_a_line_that_a_dying_writer_left_is_cut_off(tmp_path):
    search, journal = cheap_search.search(2), tmp_path / "j.log"
    Trials(str(journal)).open(search, {})
    whole = journal.read_bytes()
    journal.write_bytes(whole + b'{"op_code": 6, "wor')
    trials = Trials(str(journal))
    assert trials.take(search).number == 0
    assert journal.read_bytes().startswith(whole + b'{"op_code"')
    assert len(Trials(str(journal)).all(search)) == 2


def ended_trials(journal):
    """A journal of two ended trials; returns what they are."""
    queue, search = Trials(str(journal)), cheap_search.search(2)
    queue.open(search, {})
    for _ in range(2):
        trial = queue.take(search)
        trial.suggest_float("x", -1, 1)
        queue.end(trial, [float(trial.number)])
    return outcomes(journal)


def outcomes(journal):
    return [(trial.number, trial.params, trial.values) for trial in Trials(str(journal)).all(cheap_search.search(2))]


@pytest.mark.parametrize("where", ["first", "middle", "end"])
def test_blank_lines_are_passed_over(where, tmp_path):
    """Editors leave them, and `cat` of two files: whoever started already goes on, and so does the next command."""
    journal = tmp_path / "j.log"
    before = ended_trials(journal)
    lines = journal.read_bytes().splitlines(keepends=True)
    there = {"first": 0, "middle": len(lines) // 2, "end": len(lines)}[where]
    journal.write_bytes(b"".join([*lines[:there], b"\n", b" \t\r\n", *lines[there:]]))
    trials = Trials(str(journal))
    trials.open(cheap_search.search(3), {})
    assert trials.take(cheap_search.search(3)).number == 2
    assert outcomes(journal) == before


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (b"{torn\n", "is no JSON"),
        (b"\0\0\0\0\n", "is no JSON"),  # a file system after a power cut
        (b"\xff\xfe\n", "is no JSON"),
        (b"5\n", "is no line of a journal"),
        (b"{}\n", "is no line of a journal"),
        (b'{"op_code": 99, "worker_id": "w"}\n', "is not a journal of Optuna"),
        (b'{"op_code": 4, "worker_id": "w"}\n', "is not a journal of Optuna"),
    ],
)
@pytest.mark.parametrize("last", [False, True])
def test_a_bad_line_is_named_and_those_before_it_can_be_kept(bad, reason, last, tmp_path):
    journal = tmp_path / "j.log"
    ended_trials(journal)
    lines = journal.read_bytes().splitlines(keepends=True)
    there = len(lines) if last else len(lines) - 2  # the last two end a trial
    journal.write_bytes(b"".join([*lines[:there], bad, *lines[there:]]))
    with pytest.raises(UserError, match=f"line {there + 1}.*{reason}|{reason}.*line {there + 1}") as caught:
        Trials(str(journal))
    assert str(journal) in str(caught.value)
    assert f"head -n {there}" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    journal.write_bytes(b"".join(lines[:there]))
    trials = Trials(str(journal))
    assert trials.ended(cheap_search.search(2)) == (2 if last else 1)
    if not last:
        assert trials.take(cheap_search.search(2)).number == 1, "it is run again"


def test_a_worker_that_reads_on_names_a_bad_line_too(tmp_path):
    journal = tmp_path / "j.log"
    ended_trials(journal)
    trials = Trials(str(journal))
    count = journal.read_bytes().count(b"\n")
    with journal.open("ab") as file:
        file.write(b"\n[1]\n")
    with pytest.raises(UserError, match=rf"j\.log line {count + 2} "):
        trials.ended(cheap_search.search(2))


def test_a_study_of_another_configuration_is_refused(tmp_path):
    storage = str(tmp_path / "j.log")
    Trials(storage).open(Search("s", 2, ("minimize",), cheap_search.sampler), {"target": 0.9, "seeds": 3})
    with pytest.raises(UserError, match=r"another configuration: target \(0.9 there, 0.95 now\)"):
        Trials(storage).open(Search("s", 2, ("minimize",), cheap_search.sampler), {"target": 0.95, "seeds": 3})
    optuna.create_study(study_name="theirs", storage=Trials(storage).storage).add_trial(optuna.create_trial(value=1.0))
    with pytest.raises(UserError, match="of another program"):
        Trials(storage).open(Search("theirs", 2, ("minimize",), cheap_search.sampler), {})


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("postgresql+psycopg://me:secret@127.0.0.1:1/none", r"me:\*\*\*@127.0.0.1:1/none can't be opened: .*refused"),
        (
            "postgresql+psycopg://127.0.0.1:1/none?password=secret",
            r"127.0.0.1:1/none\?\*\*\* can't be opened: .*refused",
        ),
        ("postgresql://me:secret@h:y/none?key=secret", r"me:\*\*\*@h:y/none\?\*\*\* can"),
        ("postgresql:me:secret@host/base", r"postgresql:me:\*\*\*@host/base is no file: a database needs a URL"),
        ("host=127.0.0.1 password=secret", r"password=\*\*\* is no file"),
        ("postgresql+psycopg://me:none@secret@127.0.0.1:1/none", "can't be opened"),
        ("postgrsql://127.0.0.1/none", "can't be opened: .*postgrsql"),
        ("nowhere/journal.log", "there is no folder nowhere"),
        ("notes.txt", "is not a journal of Optuna"),
    ],
)
def test_a_storage_that_cannot_be_had_is_one_clear_line(storage, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("mine\nand mine\n")
    with pytest.raises(UserError, match=message) as caught:
        Trials(storage)
    assert "secret" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert (tmp_path / "notes.txt").read_text() == "mine\nand mine\n"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("sqlite:///trials.db", "sqlite:///trials.db"),
        ("postgresql://host/base", "postgresql://host/base"),
        ("postgresql://me@host:1/base", "postgresql://me@host:1/base"),
        ("--storage=postgresql://me:pass@host:1/base", "--storage=postgresql://me:***@host:1/base"),
        ("postgresql://me:p@s/s:w o?rd@host:1/base", "postgresql://me:***@host:1/base"),
        ("postgresql://:pass@host/base", "postgresql://:***@host/base"),
        ("postgresql://host:1/base?user=me&password=pass", "postgresql://host:1/base?***"),
        ("mysql://me:pass@host/base?ssl=1&key=pass", "mysql://me:***@host/base?***"),
        ("mssql+pyodbc:///?odbc_connect=UID%3Dme%3BPWD%3Dpass", "mssql+pyodbc:///?***"),
        ("mysql://us/er:pw@h", "mysql://us/er:***@h"),
        ("postgresql:///me:pw@h/base", "postgresql:///me:***@h/base"),
        ("postgresql:u:p@h", "postgresql:u:***@h"),
        ("--storage=postgresql:/u:p@h", "--storage=postgresql:/u:***@h"),
        ("host=h password='a b' user=me", "host=h password=*** user=me"),
        ("postgresql://me:pw@[::1]:5432/db", "postgresql://me:***@[::1]:5432/db"),
        ("http://me:pw@localhost:8080/a", "http://me:***@localhost:8080/a"),
        ("postgresql://[::1]:5432/db@x", "postgresql://[::1]:5432/db@x"),
        ("http://localhost:8080/a@b", "http://localhost:8080/a@b"),
        ("http://host/a:b@c", "http://host/a:b@c"),
        ("sqlite:////data/a:b@c.db", "sqlite:////data/a:b@c.db"),
        ("--pretrained=a.pt@default", "--pretrained=a.pt@default"),
        ("what?", "what?"),
        ("--out=r\udcff", r"--out=r\xff"),  # a path of other bytes than UTF-8
    ],
)
def test_a_run_records_a_readable_command_without_passwords(url, shown, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["tune.py", url, "--seeds", "2"])
    assert provenance()["command"] == f"python tune.py {shown} --seeds 2"


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ("invalid DSN host=h password=secret user=me", "invalid DSN host=h password=*** user=me"),
        ('no host "secret" for user "me"', 'no host "***" for user "me"'),
        ("DRIVER={x};PWD={sec ret};UID=me", "DRIVER={x};PWD=***;UID=me"),
        ("sslkey=secret is no file", "sslkey=*** is no file"),
        ("at http://localhost:8080 and mysql://me:secret@h", "at http://localhost:8080 and mysql://me:***@h"),
        ("mysql://h/base: no 'me'@'h'; secretive", "mysql://h/base: no 'me'@'h'; secretive"),
        ("bad value 's/c r%t' or 's%2Fc+r%25t'", "bad value '***' or '***'"),
    ],
)
@pytest.mark.parametrize(
    "url",
    ["mysql://me:secret@h", "mysql://h/base?password=secret", "mysql+pyodbc:///?odbc_connect=PWD%3Dsecret%3BUID%3Dme"],
)
def test_an_error_of_a_driver_has_no_password(error, shown, url):
    if "%" in error:
        url = "mysql://me:s%2Fc+r%25t@h"
    assert (
        str(unopened(url, ValueError(error))).partition("opened: ")[2]
        == f"{shown}; docs/studies.md shows what it may be"
    )


def mistaken(argument, interruption):
    """Body of a worker."""
    raise UserError("the split is damaged")


def abandoned(folder):
    """Body of a worker: a process whose own worker runs trials; it is killed."""
    context = multiprocessing.get_context("spawn")
    messages = context.SimpleQueue()
    worker = context.Process(target=process, args=(slow, messages, folder))
    worker.start()
    (folder / "pid").write_text(str(worker.pid))
    time.sleep(1000)


def slow(folder, interruption):
    """Take a trial and stay with it."""
    trials = Trials(str(folder / "j.log"))
    trials.open(cheap_search.search(1), {})
    work(trials, [cheap_search.search(1)], partial(cheap_search.objective, folder, True, [0, 0]))


def test_a_worker_ends_with_its_parent_and_gives_its_trial_back(tmp_path):
    parent = multiprocessing.get_context("spawn").Process(target=abandoned, args=(tmp_path,))
    parent.start()
    wait_for(lambda: list(tmp_path.glob("stalled-*")))
    parent.kill()
    parent.join()
    trials = Trials(str(tmp_path / "j.log"))
    search = cheap_search.search(1)
    wait_for(lambda: trials.all(search)[0].state is TrialState.WAITING)
    wait_for(lambda: not Path(f"/proc/{(tmp_path / 'pid').read_text()}").exists())


def wait_for(reached):
    """Wait, for a busy machine's sake long."""
    end = time.monotonic() + 240
    while not reached():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_workers_mistake_is_told():
    with pytest.raises(UserError, match="the split is damaged"):
        run_workers(1, 1, mistaken, None)
