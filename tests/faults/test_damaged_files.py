"""Every kind of file, damaged in every way: a clear error or the right result; nothing else, and never later."""

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
# What opens a file, or is handed its text.
OPENERS = {"open_file", "read_bytes", "read_text", "read_lines", "read_json", "read_toml", "parse_json", "unseal"}
OPENERS |= {"read_record", "read_records", "check_file", "check_digest", "checked_file", "open_hdf5", "check_regular"}
OPENERS |= {"read_json_list", "read_json_lines", "read_json_rows", "read_csv", "stream_json", "decode_json"}
# Modules that open files and have no entry, and why. Benchmarks and sources are damaged one by one, every file of
# theirs, in tests/generators/test_damaged_benchmarks.py and test_damaged_sources.py.
ELSEWHERE = ("menagerie.generators.benchmarks", "menagerie.generators.sources")
EXEMPT = {
    "menagerie.envs.checks.physics": "writes to the null device",
    "menagerie.envs.core.plugins": "reads the source itself",
    "menagerie.envs.core.reading": "the door",
    "menagerie.envs.core.records": "the door",
    "menagerie.envs.core.pictures": "opens what its callers have an entry for",
    "menagerie.envs.custom.python_file": "runs a user's code",
    "menagerie.envs.drawing.mesh_file": "behind menagerie.envs.custom.ingredients, which looks at the file first",
    "menagerie.studies.cluster.process": "what the kernel says of processes",
    "menagerie.models.cell_results": "results, which menagerie.studies.runs.results reads through it",
    "menagerie.envs.custom.photos": "an installed package of Debian's and pictures: tests/envs/test_photos.py",
    "menagerie.envs.drawing.placement": "a table that is part of the source",
    "menagerie.generators.audit.regeneration": "reads a split that was read before",
    "menagerie.generators.audit.run": "splits by their own reader",
    "menagerie.studies.analysis.loading": "what the kernel says of processes",
    "menagerie.studies.analysis.papers": "a table that is part of the source",
    "menagerie.studies.cluster.jobs": "reads what the kernel says of processes",
    "menagerie.generators.export.formats": "writes",
    "menagerie.generators.frozen.benchmark": "tables that are part of the source",
    "menagerie.studies.analysis.growth_parts": "what the kernel says of processes",
    "menagerie.generators.parsers.chat_server": "answers of a server: tests/generators/test_llm_parser.py",
    "menagerie.generators.parsers.llm": "answers of a server: tests/generators/test_llm_parser.py",
    "menagerie.models.library.sources": "weights that open_clip reads",
    "menagerie.models.training.together": "weights that the first process of the same torchrun sends",
    "menagerie.models.library.pictures": "pictures that a caller has opened",
    "menagerie.models.towers.weight_file": "weights of others: tests/models/test_weight_files.py",
    "menagerie.models.towers.own_weights": "weights of others: tests/models/test_weight_files.py",
    "menagerie.studies.commands.worlds": "reads a file of the source",
    "menagerie.studies.frame.draw": "a list of its own, of which it takes no line but names of files of parts",
    "menagerie.studies.frame.page": "shows a run's reason for having no result, whatever it says",
    "menagerie.studies.pages.tune": "writes anew what it can't read",
    "menagerie.studies.real_training.describe": "reads an export that it has just written",
    "menagerie.studies.runs.machine": "what the kernel says of processors",
    "menagerie.studies.runs.cell": "hashes a user's code and weights",
    "menagerie.studies.runs.results": "an entry",
    "menagerie.studies.scoring.benchmark_tables": "tables that are part of the source",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("kinds")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_damaged_file_is_one_line_or_changes_nothing(kind: FileKind, folder):
    """What isn't shrinks to the least place and amount at which it isn't. A whole file is never called damaged."""
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


def test_names_are_different():
    assert len({kind.name for kind in KINDS}) == len(KINDS)


def test_every_fault_befalls_a_file(tmp_path):
    """None of them does nothing to every file that it is meant for."""
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
def test_the_judge_sees_what_happens(read, verdict, tmp_path):
    assert outcome(read, tmp_path)[0] == verdict


def test_the_judge_ends_what_hangs(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.helpers.judge.SECONDS", 0.3)
    assert outcome(lambda path: os.read(os.pipe()[0], 1), tmp_path)[0] == "hang"
    assert {ERROR, RIGHT, TRACEBACK} & set(BAD) == {TRACEBACK}


# What opens a file however it is called, and what parses its text.
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


def test_whatever_opens_files_has_an_entry():
    """As far as a scan can see: every module that calls a reader is named by a kind, or exempt for a reason."""
    known = {module for kind in KINDS for module in kind.modules}
    reading = {module for module, names in calls().items() if names - (PARSERS - {"np.load"})}
    strange = {module for module in reading - known - EXEMPT.keys() if not module.startswith(ELSEWHERE)}
    assert strange == set()
    assert known | EXEMPT.keys() <= calls().keys()


def test_json_and_toml_are_parsed_by_the_door_alone():
    allowed = {
        "menagerie.envs.core.reading": {"json.loads", "tomllib.loads"},
        "menagerie.envs.core.identity": {"json.loads"},  # of what it has just written
        "menagerie.envs.drawing.placement": {"json.loads"},  # of the source's; part of what RENDER_VERSION stands for
        "menagerie.studies.runs.followers": {"pickle.loads"},  # of what the first process of the same torchrun sends
    }
    found = {module: PARSERS & names for module, names in calls().items()}
    assert {module: names for module, names in found.items() if names} == allowed
