"""A file damaged in any way gives a clear error or the right result, as soon as it is read."""

import ast
import os
import re
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.faults.damage import FAULTS, NAMES, STEPS, Damage, faults_of
from tests.faults.file_kinds import FileKind, made
from tests.faults.our_files import OURS
from tests.faults.refusals import complaints
from tests.faults.their_files import THEIRS
from tests.helpers.judge import BAD, ERROR, RIGHT, TRACEBACK, outcome

KINDS = [*OURS, *THEIRS]
# Damaged files of all kinds together; 2000 before a release.
EXAMPLES = int(os.environ.get("MENAGERIE_EXAMPLES", "130"))
ROOT = Path(__file__).parents[2]
FLOORS = ("envs", "generators", "models", "studies")
# Functions that open a file, or are given its text.
OPENERS = {"open_file", "read_bytes", "read_text", "read_lines", "read_json", "read_toml", "parse_json", "unseal"}
OPENERS |= {"read_record", "read_records", "check_file", "check_digest", "checked_file", "open_hdf5", "check_regular"}
OPENERS |= {"read_entries", "read_lists", "read_json_lines", "read_json_object", "read_csv", "decode_json"}
OPENERS |= {"read_foreign_text", "read_foreign_bytes"}
# Modules that open files and have no entry, by the reason. Benchmarks and sources are damaged one by one, every file of
# theirs, in tests/generators/test_foreign_files.py.
ELSEWHERE = ("menagerie.generators.benchmarks", "menagerie.generators.sources")
OF_THE_SOURCE = """
menagerie.envs.core.plugins menagerie.envs.drawing.placement menagerie.studies.analysis.papers
menagerie.generators.frozen.benchmark menagerie.studies.commands.worlds menagerie.studies.scoring.benchmark_tables
"""
OF_THE_KERNEL = """
menagerie.envs.checks.physics menagerie.studies.cluster.process menagerie.studies.analysis.loading
menagerie.studies.analysis.growth_parts menagerie.studies.cluster.jobs menagerie.studies.runs.machine
"""
BEHIND_ANOTHER_READER = """
menagerie.envs.core.reading menagerie.envs.core.records menagerie.envs.core.pictures
menagerie.envs.drawing.mesh_file menagerie.envs.custom.photos menagerie.generators.audit.regeneration
menagerie.generators.audit.run menagerie.models.library.pictures menagerie.models.library.sources
menagerie.studies.runs.results menagerie.models.cell_results
"""
JUST_WRITTEN = """
menagerie.generators.export.formats menagerie.generators.export.write menagerie.models.training.together
menagerie.studies.frame.draw
menagerie.studies.frame.page menagerie.studies.pages.tune menagerie.studies.real_training.describe
"""
CODE_OF_USERS = "menagerie.envs.custom.python_file menagerie.studies.runs.cell"
# tests/generators/test_llm_parser.py, tests/models/test_weight_files.py and tests/envs/test_photos.py
TESTED_ELSEWHERE = """
menagerie.generators.parsers.chat_server menagerie.generators.parsers.llm menagerie.models.towers.weight_file
menagerie.models.towers.own_weights
"""
EXEMPT = {
    module
    for modules in (OF_THE_SOURCE, OF_THE_KERNEL, BEHIND_ANOTHER_READER, JUST_WRITTEN, CODE_OF_USERS, TESTED_ELSEWHERE)
    for module in modules.split()
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("kinds")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_damaged_file_is_one_clear_error_or_changes_nothing(kind: FileKind, folder):
    """An intact file that the system refuses to open is never called damaged."""
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
    assert complaints(intact) == []


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


# Names of any object that open a file, and functions that parse its text.
ENDS = (".read_text", ".read_bytes", "Image.open", "open_picture", "read_upright", "tarfile.open", "h5py.File")
ENDS += ("torch.load", "load_file", "np.load")
PARSERS = {"json.load", "json.loads", "tomllib.load", "tomllib.loads", "np.load", "pickle.load", "pickle.loads"}


@cache
def calls() -> dict[str, set[str]]:
    """What each module of the project calls of `OPENERS`, `ENDS` and `PARSERS`: "json.loads", "path.read_text"."""
    files = [file for floor in FLOORS for file in (ROOT / floor).rglob("*.py")]
    names = (".".join(("menagerie", *file.relative_to(ROOT).with_suffix("").parts)) for file in files)
    return {name: called(file.read_text()) for name, file in zip(names, files, strict=True)}


def called(text: str) -> set[str]:
    """The same of one module's text, which is parsed if it has any of those words."""
    last = {name.rpartition(".")[2] for name in (*OPENERS, *ENDS, *PARSERS)}
    if not last & set(re.findall(r"\w+", text)):
        return set()
    functions = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    found = {ast.unparse(one) for one in functions if getattr(one, "attr", getattr(one, "id", "")) in last}
    return {name for name in found if name in OPENERS | PARSERS or name.endswith(ENDS)}


def test_every_module_that_opens_files_is_tested_with_damaged_ones():
    known = {module for kind in KINDS for module in kind.modules.split()}
    reading = {module for module, names in calls().items() if names - (PARSERS - {"np.load"})}
    strange = {module for module in reading - known - EXEMPT if not module.startswith(ELSEWHERE)}
    assert strange == set()
    assert known | EXEMPT <= calls().keys()


def test_json_and_toml_are_parsed_in_one_module():
    allowed = {
        "menagerie.envs.core.reading": {"json.loads", "tomllib.loads"},
        "menagerie.envs.core.identity": {"json.loads"},  # of what it has just written
        "menagerie.envs.drawing.placement": {"json.loads"},  # of the source's; part of what RENDER_VERSION stands for
        "menagerie.studies.runs.followers": {"pickle.loads"},  # of what the first process of the same torchrun sends
    }
    found = {module: PARSERS & names for module, names in calls().items()}
    assert {module: names for module, names in found.items() if names} == allowed
