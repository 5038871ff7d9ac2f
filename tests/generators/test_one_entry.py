"""A relation and a caption field are one entry each: captions, rules, parsers, tasks and audit follow."""

from dataclasses import dataclass

import pytest

import menagerie
from menagerie.envs.core.identity import generator
from menagerie.envs.relations import RELATIONS, SpatialRelation, relation_from, truth
from menagerie.envs.worlds import load_world
from menagerie.generators.audit.run import audit_records
from menagerie.generators.captions.graph import Edge
from menagerie.generators.captions.relations import converses
from menagerie.generators.captions.spec import CAPTION_FIELDS
from menagerie.generators.parsers.rules import words_of_captions
from menagerie.generators.rules.parser import parse_rule
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.spatial import SpatialRecipe
from tests.helpers.splits import in_memory

FEW = {"world": "tiny", "pairs": 0.5, "views": 1, "test_views": 1, "test_scenes": 20}


@pytest.fixture
def over(monkeypatch):
    """A relation in one file, envs/relations.py, and nine lines; it stood in eleven files before."""
    places = ("upper left", "lower left")
    relation = SpatialRelation(
        ("over", "below"),
        places,
        places,
        lambda *slots: False,
        lambda one, other: one[2] - other[2],
        level="row",
        axis=0,
    )
    monkeypatch.setitem(RELATIONS, "over/below", relation)
    kept = (relation_from, truth, converses, words_of_captions)
    for function in kept:
        function.cache_clear()
    yield "over/below"
    for function in kept:
        function.cache_clear()


@pytest.mark.parametrize("name", ["over/below", "front/behind"])
def test_a_split_of_a_relation_has_its_captions_tests_rules_and_audit(over, name):
    recipe = SpatialRecipe(relations=(name, "left/right"), hard_negatives=0.5, **FEW)
    assert recipe.least_visible == (0.25 if name == "front/behind" else 0)
    split = in_memory.__wrapped__(recipe)
    tests = [test for test in split.subsets if test.startswith(name.replace("/", "_"))]
    assert len(tests) == 2
    first, second = RELATIONS[name].predicates
    for test in tests:
        records = split.subsets[test]
        assert {scene.relation for scene in records.scenes} == {name}
        assert {edge.predicate for graph in records.graphs for edge in graph.edges} == {first, second}
    assert [finding for finding in audit_records(split) if not finding.holds and not finding.skipped] == []
    assert menagerie.parse(f"a cat {second} a red lion in the city").edges == (Edge(second, 0, 1),)
    (word, _), scene = name.split("/"), split.subsets[tests[0]].scenes[0]
    (related,) = scene.relations
    rule = parse_rule(f"relation={word} & first={scene.objects[related.first].animal}", load_world("tiny"))
    assert rule.matches(scene)


@dataclass(frozen=True)
class NamesAloneRecipe(BindingRecipe):
    """With the field of a recipe, and below with its entry: two files, three lines each."""

    names_alone: float = 0.0


def test_a_caption_field_changes_training_captions_alone(monkeypatch):
    def name_alone(content, spec):
        bare = generator(spec.seed, "names alone", content.scene.key).random() < spec.recipe["names_alone"]
        objects = tuple(obj._replace(texture="") for obj in content.objects) if bare else content.objects
        return content._replace(objects=objects)

    monkeypatch.setitem(CAPTION_FIELDS, "names_alone", (0.0, name_alone))
    recipe = NamesAloneRecipe(names_alone=0.5, **FEW)
    split, plain = in_memory.__wrapped__(recipe), in_memory(BindingRecipe(**FEW))
    train, whole = split.subsets["train"], plain.subsets["train"]
    bare = [not any(obj.texture for obj in content.objects) for content in train.contents_at(slice(len(train)))]
    assert 0.3 < sum(bare) / len(bare) < 0.7
    assert train.scenes == whole.scenes
    assert [text == other for text, other in zip(train.captions, whole.captions, strict=True)] == [
        not its for its in bare
    ]
    assert split.subsets["unseen_pairs"].captions == plain.subsets["unseen_pairs"].captions
