"""Claims of papers: files, verdicts by bounds, runs that aren't counted, and the ledger that the docs show."""

import csv
import dataclasses
import shlex
import subprocess

import pytest

from menagerie.envs.core.errors import Incomplete, UserError
from menagerie.envs.core.provenance import commit_of
from menagerie.envs.worlds import load_world
from menagerie.studies.commands.ledger import Ledger
from menagerie.studies.frame.records import write_cells_and_results
from menagerie.studies.ledger import table
from menagerie.studies.ledger.claim_file import SHIPPED, read_claim, read_claims
from menagerie.studies.ledger.planned import check_planned, planned_arms
from menagerie.studies.ledger.verdict import check_runs, judge_claim
from menagerie.studies.published import draw
from menagerie.studies.runs.folder import CLAIM, claim
from tests.studies.stored import stored_grid

HEAD = """
paper = "Somebody 2026"
place = "table 1"
claim = "OC-CLIP is above CLIP"
study = "binding-grid"
options = ["--preset", "smoke", "--pairs", "0.8"]
seeds = { first = 100, number = 3 }
"""
SWAPS = 'subset = "unseen_pairs", task = "swap"'
LEAD = f"""
[[criterion]]
says = "lead"
accuracy = [{{ model = "oc-clip", pairs = 0.8, {SWAPS} }}, {{ model = "clip", pairs = 0.8, {SWAPS}, weight = -1 }}]
"""
SHIPPED_FILES = sorted(SHIPPED.glob("*.toml"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A study's folder: 80 % of CLIP's records are right or so, with wide intervals, and a table."""
    records = stored_grid(tmp_path_factory.mktemp("stored"))
    write_cells_and_results(records)
    (records.out / "gains.csv").write_text(
        "name,value,low,high,clusters,seeds\nfar,12,11,13,6,3\nnear,3,-1,7,6,3\nalone,12,,,6,1\nflat,12,12,12,6,3\n"
        "few,12,11,13,6,2\nsmall,1,-2,2,6,3\nwords,1 [0; 2],,,6,4\n"
    )
    return records.out


def written(tmp_path, *parts, head=HEAD):
    path = tmp_path / "lead.toml"
    path.write_text(head + "".join(parts))
    return path


def of_table(row, bound, kind="criterion", table="gains.csv", more=""):
    return f'[[{kind}]]\nsays = "gain"\ntable = "{table}"\nrow = {row}\n{bound}\n{more}\n'


@pytest.mark.parametrize(
    ("name", "bound", "outcome"),
    [
        ("far", "above = 10", "confirmed"),
        ("far", "above = 15", "contradicted"),
        ("far", "above = 12.5", "undecided"),
        ("far", "below = 15", "confirmed"),
        ("far", "below = 10", "contradicted"),
        ("far", "within = 10", "contradicted"),
        ("far", "within = 20", "confirmed"),
        ("near", "within = 5", "undecided"),
        ("small", "within = 5", "confirmed"),
        ("alone", "above = 10", "undecided"),
        ("flat", "above = 10", "undecided"),
        ("few", "above = 10", "undecided"),
    ],
)
def test_an_interval_wholly_on_one_side_of_the_bound_decides(tmp_path, folder, name, bound, outcome):
    file = read_claim(written(tmp_path, of_table(f'{{ name = "{name}" }}', bound)))
    assert judge_claim(file.claim, folder).outcome == outcome


@pytest.mark.parametrize(
    ("bounds", "outcome"),
    [
        (("above = 10", "above = 11.5"), "undecided"),
        (("above = 10", "below = 14"), "confirmed"),
        (("above = 11.5", "below = 10"), "contradicted"),
    ],
)
def test_a_claim_of_several_criteria(tmp_path, folder, bounds, outcome):
    """All confirm it, or one contradicts it."""
    file = read_claim(written(tmp_path, *(of_table('{ name = "far" }', bound) for bound in bounds)))
    assert judge_claim(file.claim, folder).outcome == outcome


def test_a_condition_is_judged_by_its_number_alone(tmp_path, folder):
    criterion = of_table('{ name = "far" }', "above = 10")
    for name, bound, outcome in (("near", "above = 2", "confirmed"), ("near", "above = 4", "not testable")):
        file = read_claim(written(tmp_path, criterion, of_table(f'{{ name = "{name}" }}', bound, "condition")))
        found = judge_claim(file.claim, folder)
        assert found.outcome == outcome
        assert "3.00" in found.condition


def test_accuracies_are_those_of_the_records(tmp_path, folder):
    from menagerie.studies.frame.records import read

    swaps = read(folder).where(subset="unseen_pairs", task="swap", pairs=0.8)
    difference = swaps.estimates(("model",), against={"model": "clip"})["oc-clip",]
    alone = f'[[criterion]]\nsays = "its own"\naccuracy = [{{ model = "clip", pairs = 0.8, {SWAPS} }}]\nabove = 0.1\n'
    found = judge_claim(read_claim(written(tmp_path, LEAD, "above = 0.0\n", alone)).claim, folder)
    assert f"lead {difference.written(difference.value)} [" in found.numbers
    assert f"its own {swaps.where(model='clip').estimates('model')['clip',]} (above 10): confirmed" in found.numbers


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("paper = ", "no TOML"),
        (HEAD, "criterion"),
        (HEAD + LEAD, "above, below and within"),
        (HEAD + LEAD + "above = 1\nbelow = 2\n", "above, below and within"),
        (HEAD + LEAD + "abve = 1\n", "abve"),
        (HEAD + LEAD + "above = 'much'\n", "above"),
        (HEAD + LEAD + "above = 1\ntable = 'a.csv'\n", "either table and row, or accuracy"),
        (HEAD + LEAD.replace("-1", "'less'") + "above = 1\n", "weight"),
        (HEAD.replace("binding-grid", "binding-gird") + LEAD + "above = 1\n", "binding-grid"),
        (HEAD.replace("100", "99") + LEAD + "above = 1\n", "first"),
        (HEAD.replace('"smoke"', '"smoke", "--seeds=5"') + LEAD + "above = 1\n", "options have --seeds"),
    ],
)
def test_a_file_that_is_no_claim_is_refused(tmp_path, text, words):
    path = tmp_path / "lead.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=words) as error:
        read_claim(path)
    assert str(path) in str(error.value)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ('{ nam = "far" }', "'name'"),
        ('{ name = "fa" }', "far"),
        ("{ seeds = 3 }", "rows match"),
        ('{ name = "words" }', "must be numbers"),
    ],
)
def test_a_row_that_the_table_lacks_is_named(tmp_path, folder, row, words):
    file = read_claim(written(tmp_path, of_table(row, "above = 1")))
    with pytest.raises(UserError, match=words):
        judge_claim(file.claim, folder)


def test_the_digest_is_of_the_content_alone(tmp_path):
    plain, twin = tmp_path / "plain.toml", tmp_path / "twin.toml"
    plain.write_text(HEAD + LEAD + "above = 0.1\n")
    twin.write_text("# A remark.\n" + HEAD.replace(" = ", "=") + LEAD + "\nabove = 0.10 # said\n")
    assert read_claim(plain).digest == read_claim(twin).digest
    twin.write_text(HEAD + LEAD + "above = 0.2\n")
    assert read_claim(plain).digest != read_claim(twin).digest
    (tmp_path / "other").mkdir()
    with pytest.raises(UserError, match=r"plain\.toml"):
        read_claims((plain, plain.rename(tmp_path / "other" / "plain.toml")))


@dataclasses.dataclass
class Settings:
    steps: int = 1


def test_runs_of_another_content_are_not_counted(tmp_path, monkeypatch):
    """Neither a folder of another digest nor one run in it; both stay."""
    path, out = written(tmp_path, LEAD, "above = 0.1\n"), tmp_path / "out"
    file = read_claim(path)
    check_runs(file, out / "lead")  # nothing is there
    (out / "lead").mkdir(parents=True)
    monkeypatch.setenv(CLAIM, f"{file.digest} 0123456789ab")
    claim(out / "lead", Settings(), frozenset())
    check_runs(file, out / "lead")
    stored_grid(out / "lead", 1, ("clip",))  # runs without a claim
    with pytest.raises(UserError, match="for no claim"):
        check_runs(file, out / "lead")
    written(tmp_path, LEAD, "above = 0.2\n")
    with pytest.raises(Incomplete, match=file.digest):
        Ledger((path,), out, tmp_path / "store").run()
    (row,) = csv.DictReader((out / "ledger.csv").open())
    assert (row["outcome"], row["commit"]) == ("not judged", "0123456789ab")
    assert len(list((out / "lead" / "cells").iterdir())) == 2


def test_a_published_run_of_a_claim_has_its_verdict_while_the_file_stays(tmp_path, monkeypatch):
    file = read_claim(written(tmp_path, of_table('{ name = "far" }', "above = 10")))
    for module in (draw, table):
        monkeypatch.setattr(module, "read_claims", lambda paths: [read_claim(file.path)])
    out, kept = tmp_path / "out", tmp_path / "measured/ledger-lead/verdict.csv"
    out.mkdir()
    monkeypatch.setenv(CLAIM, f"{file.digest} 0123456789ab")
    claim(out, Settings(), frozenset())
    (out / "gains.csv").write_text("name,value,low,high,clusters,seeds\nfar,12,11,13,6,3\n")
    (row,) = table.shipped_rows(tmp_path / "measured")
    assert (row.outcome, row.folder) == ("not run", "")
    kept.parent.mkdir(parents=True)
    kept.write_text(draw.verdict_text("lead", out))
    (row,) = table.shipped_rows(tmp_path / "measured")
    assert (row.outcome, row.folder, row.commit) == ("confirmed", "runs/ledger/lead", "0123456789ab")
    written(tmp_path, of_table('{ name = "far" }', "above = 11"))
    (row,) = table.shipped_rows(tmp_path / "measured")
    assert (row.outcome, row.numbers) == ("run for another state of the file", "")
    with pytest.raises(UserError, match=r"another state of .*lead\.toml"):
        draw.verdict_text("lead", out)
    with pytest.raises(UserError, match="did you mean 'lead'"):
        draw.verdict_text("leed", out)


def test_a_study_that_fails_is_no_verdict(tmp_path, capfd):
    path = written(tmp_path, LEAD, "above = 0.1\n")
    (tmp_path / "store").write_text("a file where a folder should be")
    with pytest.raises(Incomplete, match="status 2"):
        Ledger((path,), tmp_path / "out", tmp_path / "store").run()
    assert str(tmp_path / "store") in capfd.readouterr().err
    assert "**not judged**" in (tmp_path / "out" / "ledger.md").read_text()


def test_the_commit_of_a_file_is_named_if_it_is_as_committed(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text("a = 1")
    assert commit_of(file) == ""
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    for words in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "Add it")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    assert len(commit_of(file)) == 12
    file.write_text("a = 2")
    assert commit_of(file) == ""


@pytest.mark.parametrize("path", SHIPPED_FILES, ids=lambda path: path.stem)
def test_shipped_claims_name_runs_that_their_study_plans(path, tmp_path):
    """With three seeds that no published number used, at 32 px at least."""
    claim = (file := read_claim(path)).claim
    assert claim.seeds.first >= 100
    assert claim.seeds.number >= 3
    arms = planned_arms(shlex.join(["menagerie", *Ledger(out=tmp_path).command(file)]), tmp_path, tmp_path)
    check_planned(file, arms)
    assert {arm.cell.seed for arm in arms} == {claim.seeds.first + k for k in range(claim.seeds.number)}
    assert all(arm.cell.towers.resolution >= 32 for arm in arms)
    for recipe in {arm.cell.data.recipe for arm in arms if arm.cell.seed == claim.seeds.first}:
        recipe.rules(load_world(recipe.world))
        recipe.counts()


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("smoke", "smok"),
        ("pairs = 0.8", "pairs = 0.9"),
        ('"unseen_pairs"', '"unsen_pairs"'),
        ('"swap"', '"swop"'),
        ('"clip"', '"filip"'),
    ],
)
def test_a_name_that_no_planned_run_has_is_found_before_training(tmp_path, right, wrong):
    (path := tmp_path / "mine.toml").write_text((HEAD + LEAD).replace(right, wrong) + "above = 0.1\n")
    with pytest.raises(Incomplete, match=wrong.rpartition(" ")[2].strip('"')):
        Ledger((path,), tmp_path / "out", tmp_path / "store").run()
    assert not (tmp_path / "out" / "mine").exists()
