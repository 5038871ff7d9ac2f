"""Benchmarks of photographs for models that read scene graphs: parsed texts, and their record in results."""

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import digest
from menagerie.envs.core.records import read_record
from menagerie.generators.benchmarks import caption_pairs
from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.generators.sources.place import Place
from menagerie.models.towers.config import TowerConfig
from menagerie.studies.frame.command import check_study
from menagerie.studies.frame.run import run_study
from menagerie.studies.scoring.benchmarks import VERSION, benchmark_piece, subject_of
from menagerie.studies.scoring.models import parse_models
from menagerie.studies.transfer import Transfer
from tests.command import no_figures, read_rows
from tests.helpers.benchmark_files import make_sugarcrepe, write_json
from tests.helpers.chat_service import ChatService, Request, Sent, written
from tests.studies.browser import plain

SCORER = "from menagerie.models.networks.oc_clip import OCCLIPScorer\nclass Mine(OCCLIPScorer):\n    pass\n"
TEXTS = ("a red cat above a white lion", "a white cat above a red lion")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Records of two texts in the words of our worlds, and a scorer of graphs."""
    make_sugarcrepe(tmp_path / "data")
    for name in caption_pairs.SUGARCREPE:
        record = {"filename": "000000000001.jpg", "caption": TEXTS[0], "negative_caption": TEXTS[1]}
        write_json(tmp_path / f"data/sugarcrepe/{name}.json", {"0": record})
    (tmp_path / "mine.py").write_text(SCORER)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(folder, **options):
    """The scores of one command, and its results."""
    study = Transfer(models=("mine.py:Mine",), benchmarks=("sugarcrepe",), out=folder / "out", **options)
    check_study(study)
    with no_figures():
        run_study(study, folder / "out")
    (piece,) = {row["piece"] for row in read_rows(folder / "out/results.csv")}
    scores = read_rows(folder / "out/pieces" / piece / "scores.csv")
    return [row["scores"] for row in scores], read_record(folder / "out/pieces" / piece / "result.json")


def objects(request: Request) -> Sent:
    """The graph of "a red cat above a white lion"; useless answers for other texts."""
    if request.caption != TEXTS[0]:
        return Sent("I can't")
    nodes = request.caption.split(" above ")
    return Sent(written(nodes, [("above", 0, 1)]))


def test_graphs_of_a_parser_change_scores_and_are_kept(folder, capsys):
    whole, before = run(folder)
    assert "parser" not in before
    with ChatService(objects) as service:
        name = f"llm:model=m,url={service.url}"
        parsed, result = run(folder, parser=name)
        assert service.captions() == {TEXTS[0]: 1, TEXTS[1]: 3}
        assert result["parser"] == {"name": name, "texts": 2, "fell_back": 1}
        assert "2 captions: 1 parsed, 1 fell back to one node (1 marks)" in capsys.readouterr().out
        assert result["id"] != before["id"]
        pairs = [(old.split(), new.split()) for old, new in zip(whole, parsed, strict=True)]
        assert all(old[0] != new[0] for old, new in pairs), "another graph, another score"
        assert all(old[1] == new[1] for old, new in pairs), "one node as before"
        assert f"scene graphs of 2 texts by {name}, 1 of one node" in plain(folder / "out/report.html")
        again, same = run(folder, parser=name)
        assert (again, same["id"], len(service.requests)) == (parsed, result["id"], 4)
        assert "1 pieces, 1 of them finished before" in capsys.readouterr().out
    assert run(folder)[0] == whole


def test_texts_without_an_answer_are_refused(folder):
    with ChatService(lambda request: Sent("", 400)) as service, pytest.raises(UserError) as error:
        run(folder, parser=f"llm:model=m,url={service.url}")
    assert "2 of 2 captions have no answer" in str(error.value)
    assert not (folder / "out").exists()


def test_the_default_parser_changes_no_id(folder):
    models = parse_models(["ViT-B-32"], (), TowerConfig())
    spec = load_benchmark("sugarcrepe")
    assert Transfer().parser == "one-node"
    subject = subject_of(spec, spec.build(Place(folder / "data")))
    piece = benchmark_piece(models[0], subject, False)
    plain = {"model": models[0].source.identity(), "benchmark": "sugarcrepe", "records": subject.content["records"]}
    assert piece.id == digest(plain | {"skip": False, "version": VERSION})
