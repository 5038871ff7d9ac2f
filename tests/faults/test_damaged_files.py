"""A file damaged in any way gives a clear error or the right result, as soon as it is read."""

import os
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.faults.damage import FAULTS, NAMES, STEPS, Damage, faults_of
from tests.faults.file_kinds import FileKind, made
from tests.faults.our_files import OURS
from tests.faults.their_files import THEIRS
from tests.helpers.judge import BAD, ERROR, RIGHT, TRACEBACK, outcome

KINDS = [*OURS, *THEIRS]
# Damaged files of all kinds together; 2000 before a release.
EXAMPLES = int(os.environ.get("MENAGERIE_EXAMPLES", "120"))
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("kinds")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_damaged_file_is_one_clear_error_or_changes_nothing(kind: FileKind, folder):
    """An intact file that the system refuses to open is never called damaged, nor is its deletion advised."""
    intact = made(kind, folder / kind.name / "made")
    numbers = st.integers(0, STEPS - 1)

    @settings(
        max_examples=-(-EXAMPLES // len(KINDS)),
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.builds(Damage, st.sampled_from(faults_of(intact.file)), numbers, numbers))
    def check(damage: Damage) -> None:
        verdict = intact.judge(damage, folder / kind.name / "work")
        assert verdict is None or verdict.kind not in BAD, f"{damage}: {verdict.kind}\n{verdict.detail}"

    check()
    assert intact.complaint() == ""


def test_each_fault_changes_a_file(tmp_path):
    (tmp_path / "a.json").write_text('{"a": [1, {"b": "c"}]}')
    assert set(faults_of(tmp_path / "a.json")) | set(faults_of(tmp_path / "a.h5")) == set(FAULTS)
    for fault in sorted(set(FAULTS) - {"another table"}):
        (tmp_path / "b").mkdir()
        path = tmp_path / "b/a.json"
        path.write_bytes((tmp_path / "a.json").read_bytes())
        assert Damage(fault, STEPS // 2, 77).spoil(path)
        assert fault in NAMES or path.read_bytes() != (tmp_path / "a.json").read_bytes()
        path.unlink(missing_ok=True) if not path.is_dir() or path.is_symlink() else path.rmdir()
        (tmp_path / "b").rmdir()


@pytest.mark.parametrize(
    ("read", "verdict"),
    [
        (lambda path: (_ for _ in ()).throw(KeyError("a")), "traceback"),
        (lambda path: os.abort(), "traceback"),
        (lambda path: bytearray(16 << 30), "traceback"),
        (lambda path: [1.5, None], "value"),
    ],
)
def test_crashes_and_lack_of_memory_are_noticed(read, verdict, tmp_path):
    assert outcome(read, tmp_path)[0] == verdict


def test_a_read_that_hangs_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.helpers.judge.SECONDS", 0.3)
    assert outcome(lambda path: os.read(os.pipe()[0], 1), tmp_path)[0] == "hang"
    assert {ERROR, RIGHT, TRACEBACK} & set(BAD) == {TRACEBACK}


def test_json_and_toml_are_parsed_in_one_module():
    """It says of every fault what it is, and in which file."""
    parser = re.compile(r"\b(?:json|tomllib|pickle)\.loads?\b|\bnp\.load\b")
    found = {}
    for file in (
        file for floor in ("envs", "generators", "models", "studies") for file in (ROOT / floor).rglob("*.py")
    ):
        if names := set(parser.findall(file.read_text())):
            found[file.relative_to(ROOT).as_posix()] = names
    assert found == {
        "envs/core/reading.py": {"json.loads", "tomllib.loads"},
        "envs/core/identity.py": {"json.loads"},  # of what it has just written
        "generators/false_captions/photographs.py": {"json.loads"},  # the same
        "envs/core/pictures.py": {"np.load"},  # of pixels, without pickles
        "envs/drawing/placement.py": {"json.loads"},  # of the source's; part of what RENDER_VERSION stands for
        "studies/scoring/benchmarks.py": {"pickle.loads"},  # of what this command pickled for its workers
        "studies/runs/torchrun.py": {"pickle.loads"},  # of what the first process of the same torchrun sends
    }
