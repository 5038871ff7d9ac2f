"""Cells whose models read other graphs: which runs they are, what they share, and that tests alone change no weight."""

import json
import shutil
from dataclasses import replace

import pytest
from safetensors.numpy import load_file

from menagerie.envs.worlds import load_world
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.parsers.graph_source import GraphSource, ReadGraphs
from menagerie.generators.vocabulary import Vocabulary
from menagerie.studies.binding_grid import PRESETS
from menagerie.studies.runs.cell import CHECKPOINT, Job
from menagerie.studies.runs.graphs import open_material
from menagerie.studies.runs.shared import phase_key
from menagerie.studies.runs.train import run_cell
from tests.grid_cells import cells, render

SMOKE = replace(PRESETS["smoke"], hard_negatives=(0.0,), recipe=replace(PRESETS["smoke"].recipe, steps=4))
SOURCES = {place: GraphSource(dropped_nodes=0.5, graphs_at=place) for place in ("train", "test", "both")}


def cell(model="oc-clip", **fields):
    grid = replace(SMOKE, models=("clip", "oc-clip", "clip-phrases"), graph_source=GraphSource(**fields))
    return next(its for its in cells(grid, "") if its.model == model)


def test_the_generators_graphs_change_no_identity():
    assert cell().id == cells(SMOKE, "")[1].id
    assert "graphs" not in cell().settings
    assert cell(dropped_nodes=0.1).settings["graphs"] == {"dropped_nodes": 0.1}
    assert cell(graphs="rules").settings["parser"]


def test_only_models_that_read_graphs_depend_on_their_source():
    sources = [{}, {"dropped_nodes": 0.1}, {"moved_attributes": 0.1}, {"dropped_nodes": 0.1, "graphs_at": "test"}]
    sources += [{"graphs": "rules"}, {"graphs": "rules:world=tiny"}]
    for model in ("oc-clip", "clip-phrases"):
        assert len({cell(model, **fields).id for fields in sources}) == len(sources)
    assert len({cell("clip", **fields).id for fields in sources}) == 1
    train, test, both = (cell(dropped_nodes=0.5, graphs_at=place) for place in SOURCES)
    assert train.trained_as == both.trained_as == train
    assert test.trained_as == cell()
    assert cell(graphs="rules", graphs_at="test").trained_as.id == cell().id


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """Jobs by place, "plain" and "rules" among them, all but the one of tests alone run apart from each other."""
    store = tmp_path_factory.mktemp("graphs")
    grid = replace(SMOKE, store=store / "store", models=("oc-clip",))
    jobs = {}
    for name, source in {"plain": GraphSource(), **SOURCES, "rules": GraphSource(graphs="rules")}.items():
        own = replace(grid, graph_source=source)
        identity, files = render(own, 1)
        (its,) = cells(own, identity)
        jobs[name] = Job(its, files[its.data], store / name)
        run_cell(jobs[name], lambda step, text: None)
    return jobs


def weights(job):
    return load_file(job.folder / CHECKPOINT / "model.safetensors")


def result(job):
    return json.loads((job.folder / "result.json").read_text())


def same(one, other):
    return all((array == weights(other)[name]).all() for name, array in weights(one).items())


def predictions(job):
    return (job.folder / "predictions.csv").read_text()


def test_noise_in_graphs_changes_weights_or_tests_alone_as_asked(ran):
    assert same(ran["plain"], ran["test"])
    assert same(ran["train"], ran["both"])
    assert not same(ran["plain"], ran["train"])
    assert len({predictions(ran[name]) for name in ("plain", "train", "test", "both")}) == 4


def test_graphs_of_the_grammar_are_the_generators(ran):
    """So a lead that OC-CLIP has by its graphs it would have by captions and this grammar."""
    assert same(ran["plain"], ran["rules"])
    assert predictions(ran["plain"]) == predictions(ran["rules"])
    assert " 0 fell back" in result(ran["rules"])["parsed"]
    assert "parsed" not in result(ran["plain"])


@pytest.mark.parametrize("graphs", ["rules", "rules:world=eight"])
def test_rules_know_the_names_of_the_data(graphs):
    """Unless another world is named; there a caption of unknown textures is one node, and is counted."""
    words = Vocabulary.of(load_world("eight-textures"))
    texture = next(name for name in words.textures if name not in load_world("eight").textures)
    one, two = (f"{texture} {animal}" for animal in words.animals[:2])
    read = ReadGraphs(GraphSource(graphs=graphs), words, 0)
    nodes = read(f"a {one} and a {two} in the {words.backgrounds[0]}", SceneGraph(("unread",))).nodes
    assert (set(nodes) == {one, two, words.backgrounds[0]}) == (graphs == "rules")
    assert read.parser.counts().parsed == (graphs == "rules")


def test_tests_alone_are_scored_with_the_weights_of_a_finished_cell(ran, tmp_path):
    """In one folder the same bytes as trained apart, without a step."""
    for name, before in (("test", "plain"), ("both", "train")):
        again, steps = replace(ran[name], out=shutil.copytree(ran[before].out, tmp_path / name)), []
        run_cell(again, lambda *step, steps=steps: steps.append(step))
        assert steps == []
        assert same(again, ran[name])
        assert predictions(again) == predictions(ran[name])
        assert len((again.folder / "training.csv").read_text().splitlines()) == 5


def test_a_first_phase_is_shared_by_cells_with_the_same_training(ran):
    material = open_material(ran["plain"])

    class Texts:
        texts = GraphSource()

    keys = {name: phase_key(job, material, Texts, []) for name, job in ran.items()}
    assert keys["plain"] == keys["test"]
    assert keys["train"] == keys["both"]
    assert len(set(keys.values())) == 3
