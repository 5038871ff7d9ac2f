"""Vision-language models scored on splits and benchmarks, as a user does it, against a local server."""

import json
import sys
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest

from menagerie.envs.core.records import read_record
from menagerie.generators.benchmarks.benchmark import Outcome, ScoredItem
from menagerie.generators.benchmarks.matrix import Pool
from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.generators.benchmarks.split_tests import SplitTests
from menagerie.generators.sources.place import Place
from menagerie.generators.storage.dataset import SplitDataset
from menagerie.models.judges.questions import JudgeOptions
from menagerie.models.library.judged import find_judges
from menagerie.studies.scoring.benchmarks import chances_in, mark_guessed
from menagerie.studies.scoring.piece import questions_in
from tests.command import ROOT, read_rows, run_here
from tests.helpers.benchmark_files import MAKERS
from tests.helpers.chat_service import Sent
from tests.helpers.splits import RECIPE, make_split
from tests.helpers.vision_service import BENCH, BLUE, GOES_ON, GREEN, RED, VisionService, truth
from tests.studies.browser import plain

EVALUATE, TRANSFER = ([sys.executable, str(ROOT / "studies" / name)] for name in ("evaluate.py", "transfer.py"))
BENCHMARKS = ("sugarcrepe", "winoground", "zero-shot")
FORMS = (("yes", {}), ("likelihood", {"prior": 0.5}))


def rows_of(out):
    """Accuracies by the form of a row, and by what they are of; rows without records are left out."""
    found = defaultdict(dict)
    for row in read_rows(out / "results.csv"):
        if int(float(row["n"] or 0)):
            form = row["model"].rpartition(" (")[2].removesuffix(")")
            found[form][row.get("task") or (row["benchmark"], row["name"]), row.get("subset")] = row
    return found


@pytest.mark.parametrize(
    ("form", "options"),
    [(form, its | blind) for form, its in FORMS for blind in ({}, {"blind": True})],
)
def test_questions_of_a_pool_are_counted_rightly(form, options, tmp_path):
    pool = Pool("", (), (0, 1, 2, 1), ((RED,), (GREEN, BLUE), (BLUE, BLUE)), ())
    with VisionService(truth(BENCH)) as service:
        given = JudgeOptions(forms=(form,), answers=tmp_path / "answers", **options)
        judge = find_judges(f"chat:{service.url}#fake/model", given)[-1].load()
        judge.pool(BENCH, pool)
        assert questions_in(judge.form, pool) == len(service.questions())


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """A small split, and the benchmarks of its subsets."""
    file = make_split(tmp_path_factory.mktemp("split"), replace(RECIPE, test_scenes=4))
    names = [name for name in SplitDataset(file, "validation").split.subsets if name != "train"]
    return file, [SplitTests(SplitDataset(file, name)) for name in names]


def test_a_split_is_judged_in_every_form_and_blind_and_nothing_is_asked_twice(split, tmp_path):
    """By two commands: the second continues the folder of the first with other questions."""
    file, tests = split
    with VisionService(truth(*tests)) as service:
        command = [*EVALUATE, f"chat:{service.url}#fake", "--splits", str(file), "--out", "runs/a"]
        for more in (["--judge.forms", "choice", "likelihood"], ["--judge.blind"]):
            done = run_here([*command, *more], tmp_path, page=False)
            assert done.returncode == 0, done.stderr
        asked = service.questions()
    found = rows_of(tmp_path / "runs/a")
    assert len(asked) == len(set(asked)), "nothing is asked twice, whatever the subset"
    assert {float(row["accuracy"]) for row in found["yes"].values()} == {1.0}
    assert {float(row["accuracy"]) for (task, _), row in found["yes, blind"].items() if task == "swap"} == {0.5}
    results = [json.loads(path.read_text()) for path in tmp_path.glob("runs/a/cells/*/result.json")]
    tasks = {result["model"].rpartition(" (")[2]: result["subsets"]["validation"] for result in results}
    assert tasks.keys() == {"choice)", "likelihood)", "yes)", "yes, blind)"}
    assert all(tasks[form]["swap"]["accuracy"] == 1 for form in ("choice)", "likelihood)"))
    assert tasks["yes)"].keys() - tasks["choice)"].keys() == {"image score", "group score"}


def test_benchmarks_are_judged_in_the_forms_that_fit_them(tmp_path):
    for name in BENCHMARKS:
        MAKERS[name](tmp_path / "data")
    benches = [load_benchmark(name).build(Place(tmp_path / "data")) for name in BENCHMARKS]
    with VisionService(truth(*benches)) as service:
        command = [*TRANSFER, f"chat:{service.url}#fake", "--data-root", "data", "--benchmarks", *BENCHMARKS]
        done = run_here([*command, "--judge.forms", "yes", "choice", "--out", "runs/a"], tmp_path, page=False)
    assert done.returncode == 1, done.stderr
    assert "error: 2 of " in done.stderr
    found = rows_of(tmp_path / "runs/a")
    assert {float(row["official"]) for row in found["yes"].values()} == {1.0}
    assert {name for (name, _), _ in found["yes"]} == set(BENCHMARKS)
    assert {name for (name, _), _ in found["choice"]} == {"sugarcrepe"}
    assert done.stdout.count("left out: ") == 2


def test_items_without_a_verdict_are_counted_and_the_row_is_marked(tmp_path):
    MAKERS["sugarcrepe"](tmp_path / "data")
    bench = load_benchmark("sugarcrepe").build(Place(tmp_path / "data"))

    def prudish(request):
        return Sent(status=400, body=b"against our policy") if "dog, 1" in request.caption else GOES_ON

    with VisionService(truth(bench), fault=prudish) as service:
        command = [*TRANSFER, f"chat:{service.url}#fake", "--data-root", "data", "--benchmarks", "sugarcrepe"]
        done = run_here([*command, "--out", "runs/a"], tmp_path, figures=False)
    assert done.returncode == 0, done.stderr
    (result,) = map(read_record, tmp_path.glob("runs/a/pieces/*/result.json"))
    assert [result["judged"][name] for name in ("items", "undecided", "refused")] == [14, 2, 2]
    assert [result["headlines"]["micro"][rule] for rule in ("neutral", "official")] == pytest.approx([13 / 14] * 2)
    assert "(yes), 14% without a verdict" in plain(tmp_path / "runs/a/report.html")


CHAT, OTHER = "chat:http://127.0.0.1:9/v1#m", "chat:http://127.0.0.1:8/v1#n"


@pytest.mark.parametrize(
    ("models", "options", "says"),
    [
        ([CHAT, OTHER], ["key", "MY_KEY"], "http://127.0.0.1:8 and http://127.0.0.1:9"),
        ([CHAT, "chat:https://127.0.0.1:9/v1#n"], ["key", "MY_KEY"], "http://127.0.0.1:9 and https://127.0.0.1:9"),
    ],
)
def test_a_key_that_two_servers_would_get_is_refused(models, options, says, split, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret")
    first, *more = options
    command = [*EVALUATE, *models, "--splits", str(split[0]), f"--judge.{first}", *more, "--dry-run"]
    done = run_here(command, tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert says in done.stderr
    assert "secret" not in done.stderr


def refusing(request):
    return GOES_ON if request.caption.startswith("Is this grey?") else Sent(status=400, body=b"policy")


# One judge's questions are all refused; the other always says A.
VERDICTLESS = pytest.mark.parametrize(("form", "fault"), [("yes", refusing), ("choice", None)])


@VERDICTLESS
def test_without_verdicts_all_benchmarks_are_at_chance_by_every_rule(form, fault, tmp_path):
    names = ("whatsup", "sugarcrepe", "negbench", *(["svo-probes", "winoground", "zero-shot"] if form == "yes" else []))
    for name in names:
        MAKERS[name](tmp_path / "data")
    with VisionService(lambda image, text: 0.0, place=9.0, logprobs=False, fault=fault) as service:
        command = [*TRANSFER, f"chat:{service.url}#fake", "--data-root", "data", "--benchmarks", *names]
        done = run_here([*command, "--judge.forms", form, "--out", "runs/a"], tmp_path, page=False)
    assert done.returncode == (2 if fault else 0), done.stderr
    assert done.stderr.count("items has a verdict") == (fault is not None)
    results = list(map(read_record, tmp_path.glob("runs/a/pieces/*/result.json")))
    assert {result["benchmark"] for result in results} == {*names}
    for result in results:
        bench = load_benchmark(result["benchmark"]).build(Place(tmp_path / "data"))
        assert (result["judged"]["undecided"] == result["judged"]["items"]) == (fault is not None)
        for name, numbers in result["headlines"].items():
            assert numbers["official"] == pytest.approx(chances_in(bench)["headline", name])


def test_only_ties_without_a_verdict_are_broken_at_random_in_pools():
    tied = ScoredItem(BENCH.items[0], np.float32([[2, 2]]), Outcome(1.0, 0.5, True))
    assert mark_guessed(tied, np.float32(2)).outcome.official == 0.5
    assert np.isnan(mark_guessed(tied, np.float32(2)).scores).all()
    assert mark_guessed(tied, np.float32(1)).outcome == tied.outcome
    lower = mark_guessed(tied._replace(scores=np.float32([[3, 2]])), np.float32(2))
    assert lower.outcome == tied.outcome
    assert np.isnan(lower.scores).tolist() == [[False, True]]


@VERDICTLESS
def test_without_verdicts_all_tasks_of_a_split_are_at_chance(form, fault, split, tmp_path):
    with VisionService(lambda image, text: 0.0, place=9.0, logprobs=False, fault=fault) as service:
        command = [*EVALUATE, f"chat:{service.url}#a", "--splits", str(split[0]), "--judge.forms", form]
        done = run_here([*command, "--out", "runs/a"], tmp_path, page=False)
    assert done.returncode == (2 if fault else 0), done.stderr
    assert ("none of 140 items has a verdict (answers: 210 refused)" in done.stderr) == (fault is not None)
    chances = {"text score": 1 / 4, "image score": 1 / 4, "group score": 1 / 6}
    rows = rows_of(tmp_path / "runs/a")[form]
    assert {"swap", "text score"} <= {task for task, _ in rows}
    for (task, _), row in rows.items():
        assert float(row["accuracy"]) == pytest.approx(chances.get(task, 1 / 2))
