"""Parsers of open captions: what all share, rules over trees, facts of a T5, agreement, and the command."""

import json
import random
import sys
import threading
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.captions.relations import compound_names
from menagerie.generators.captions.templates import Caption
from menagerie.generators.parsers import t5
from menagerie.generators.parsers.dependency_rules import Word, graph_of_tree
from menagerie.generators.parsers.graph_json import ParseCache, as_json, from_json, plain_phrase
from menagerie.generators.parsers.parser import CaptionParser, Parsed, try_parse
from menagerie.generators.parsers.registry import describe, load_parser, names, open_parser
from menagerie.generators.sources.captions_file import captions_in_file, parse_file
from menagerie.generators.sources.information import mentions_in
from menagerie.generators.sources.place import one_node
from menagerie.generators.vocabulary import Vocabulary
from menagerie.models.training.targets import Claims, targets_of
from tests.command import run_here

CAT = SceneGraph(("brown cat", "computer"), (Edge("lying on", 0, 1),))


class Scripted:
    """A parser whose graphs are given; it notes what it parses."""

    def __init__(self, graphs: dict[str, SceneGraph | None], silent: set[str] = frozenset()):
        self.graphs, self.silent, self.parsed = graphs, set(silent), []

    def identity(self):
        return {"parser": "scripted"}

    def spent(self):
        return {}

    def parse(self, captions):
        for caption in captions:
            self.parsed.append(caption)
            if caption in self.silent:
                yield Parsed(caption, None, "timeout: 5 s", answered=False)
            else:
                graph = self.graphs.get(caption)
                yield Parsed(caption, graph, "" if graph else "no nodes: it names no object")


def test_every_parser_is_found_and_described():
    assert names() == ("llm", "one-node", "rules", "spacy-rules", "t5")
    for name in names():
        assert load_parser(name).name == name
        assert name in describe()
    assert "en_core_web_sm" in describe()
    with pytest.raises(UserError, match="did you mean 'spacy-rules'"):
        open_parser("spacy_rules")


def test_one_node_parser_keeps_captions_whole(tmp_path):
    parser = open_parser("one-node", tmp_path)
    assert parser("A cat, on a mat!") == one_node("A cat, on a mat!")
    assert parser.counts().fell_back == {"left whole": 1}
    assert not list(tmp_path.iterdir())


def test_captions_that_cant_be_parsed_are_one_node_and_counted():
    scripted = Scripted({"cat": CAT})
    parser = CaptionParser("scripted", scripted, None)
    reported = []
    assert parser.parse(["cat", "?", "cat"], lambda *both: reported.append(both)) == [CAT, one_node("?"), CAT]
    assert reported == [(1, 2), (2, 2)]
    assert parser("?") == one_node("?")
    assert scripted.parsed == ["cat", "?"], "each once"
    assert parser.counts() == (2, 1, {"no nodes": 1}, 0)
    assert parser.counts().text == "2 captions: 1 parsed, 1 fell back to one node (1 no nodes); 0 were known before"


def test_captions_without_an_answer_raise_unless_they_are_allowed(tmp_path):
    scripted, cache = Scripted({"cat": CAT}, {"dog", "pig"}), ParseCache(tmp_path, "scripted", {})
    parser = CaptionParser("scripted", scripted, cache)
    with pytest.raises(UserError, match=r"2 of 3 captions have no answer, the first is 'dog' \(timeout: 5 s\)"):
        parser.parse(["dog", "cat", "pig"])
    assert len(cache) == 1, "what was answered is kept, and nothing else"
    allowing = CaptionParser("scripted", scripted, cache, allow_unanswered=True)
    assert allowing.parse(["dog", "cat", "pig"]) == [one_node("dog"), CAT, one_node("pig")]
    assert allowing.counts() == (3, 1, {"timeout": 2}, 1)
    scripted.silent.clear()
    allowing.parse(["dog", "cat"])
    assert allowing.counts().fell_back == {"no nodes": 1, "timeout": 1}


GRAPHS = [CAT, SceneGraph(("été \ud800\n",)), SceneGraph(("dog", "dog"), (Edge("behind", 1, 0), Edge("facing", 0, 1)))]


@pytest.mark.parametrize("graph", GRAPHS)
def test_graphs_come_back_from_json(graph):
    assert from_json(json.loads(json.dumps(as_json(graph)))) == graph


def test_phrases_lose_articles_capitals_and_punctuation():
    assert [plain_phrase(text) for text in ("The  brown Cat,", "an ice cream", "A", "theatre", "No dog")] == [
        "brown cat",
        "ice cream",
        "",
        "theatre",
        "no dog",
    ]


def test_a_cache_cut_anywhere_keeps_its_whole_lines(tmp_path):
    """Wherever its file ends: what is whole is there, and what is added then is whole."""
    cache = ParseCache(tmp_path, "p", {"model": "m"})
    for k, graph in enumerate(GRAPHS):
        cache.keep(f"caption {k}", (graph, ""))
    cache.keep("none", (None, "index: 7"))
    content = cache.path.read_bytes()
    ends = [place + 1 for place, byte in enumerate(content) if byte == ord("\n")]
    for cut in range(len(content) + 1):
        cache.path.write_bytes(content[:cut])
        left = ParseCache(tmp_path, "p", {"model": "m"})
        assert len(left) == sum(end - 1 <= cut for end in ends)
        left.keep("new", (CAT, ""))
        again = ParseCache(tmp_path, "p", {"model": "m"})
        assert again.get("new") == (CAT, "")
        assert len(again) == len(left)
    cache.path.write_bytes(content)
    whole = ParseCache(tmp_path, "p", {"model": "m"})
    assert [whole.get(f"caption {k}") for k in range(3)] == [(graph, "") for graph in GRAPHS]
    assert whole.get("none") == (None, "index: 7")
    assert whole.get("other") is None


def test_damaged_lines_of_the_cache_are_skipped(tmp_path):
    cache = ParseCache(tmp_path, "p", {})
    cache.keep("cat", (CAT, ""))
    bad = ["{}", "[]", '{"caption": "a"}', "\xff", "", "[" * 9999]
    with cache.path.open("a", encoding="latin-1") as file:
        file.write("\n".join(bad) + "\n")
    read = ParseCache(tmp_path, "p", {})
    assert len(read) == 1


def add_many(root: Path, number: int) -> None:
    cache = ParseCache(root, "p", {})
    for k in range(50):
        cache.keep(f"{number} {k}" * 50, (CAT, ""))


def test_processes_share_a_cache(tmp_path):
    processes = [get_context("fork").Process(target=add_many, args=(tmp_path, k)) for k in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    cache = ParseCache(tmp_path, "p", {})
    assert len(cache) == 200


def readers(root, *graphs):
    """Cells that start together: each has read the cache, and would answer otherwise."""
    caches = [ParseCache(root, "p", {}) for _ in graphs]
    return [
        CaptionParser("scripted", Scripted({"cat": graph, "dog": graph}), cache)
        for graph, cache in zip(graphs, caches, strict=True)
    ]


def test_cells_that_start_together_read_the_first_answers(tmp_path):
    first, second = readers(tmp_path, *GRAPHS[:2])
    assert first.parse(["cat"]) == [CAT]
    assert second.parse(["dog", "cat"]) == [GRAPHS[1], CAT]
    assert second.parser.parsed == ["dog"]
    assert second.counts().kept == 1
    assert readers(tmp_path, GRAPHS[2])[0].parse(["cat", "dog"]) == [CAT, GRAPHS[1]], "a cell that goes on"


def test_a_cell_waits_for_another_that_asks_about_the_same(tmp_path):
    first, second = readers(tmp_path, *GRAPHS[:2])
    found = []
    waits = threading.Thread(target=lambda: found.extend(second.parse(["cat", "dog"])))

    def report(done, total):
        if done == 1:
            waits.start()
            waits.join(0.3)

    first.parse(["cat", "dog"], report)
    waits.join(20)
    assert (found, second.parser.parsed) == ([CAT, CAT], [])


def test_processes_keep_the_first_of_two_answers(tmp_path):
    """Also for a process that had an answer of its own."""
    caches = [ParseCache(tmp_path, "p", {}) for _ in range(2)]
    for cache, graph in zip(caches, GRAPHS, strict=False):
        cache.keep("cat", (graph, ""))
    assert [cache.get("cat") for cache in (*caches, ParseCache(tmp_path, "p", {}))] == [(CAT, "")] * 3
    assert caches[0].path.read_bytes().count(b"\n") == 1


def test_each_identity_has_its_own_folder(tmp_path):
    one, other = (ParseCache(tmp_path, "p", {"prompt": text}) for text in "ab")
    one.keep("cat", (CAT, ""))
    assert other.get("cat") is None
    assert json.loads((one.folder / "parser.json").read_text()) == {"prompt": "a"}


def test_a_folder_that_can_not_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match=r"file/p-.*can't be written .*choose another place"):
        ParseCache(tmp_path / "file", "p", {})


def tree(text: str) -> list[Word]:
    """ "A/DET/det/1 cat/NOUN/ROOT/1": words with part of speech, label and head."""
    fields = (word.split("/") for word in text.split())
    return [Word(word, part, label, int(head)) for word, part, label, head in fields]


# Trees as en_core_web_sm 3.8 gives them, and what the rules make of them.
TREES = {
    "A/DET/det/2 brown/ADJ/amod/2 cat/NOUN/nsubj/4 is/AUX/aux/4 lying/VERB/ROOT/4 on/ADP/prep/4 a/DET/det/7 "
    "computer/NOUN/pobj/5": (["brown cat", "computer"], [("lying on", 0, 1)]),
    "A/DET/det/1 man/NOUN/nsubj/2 is/AUX/ROOT/2 on/ADP/prep/2 the/DET/det/5 left/NOUN/pobj/3 of/ADP/prep/5 "
    "the/DET/det/8 dog/NOUN/pobj/6": (["man", "dog"], [("on the left of", 0, 1)]),
    # A known error: colours that people wear are taken for objects.
    "A/DET/det/1 woman/NOUN/ROOT/1 in/ADP/prep/1 blue/PROPN/pobj/2 and/CCONJ/cc/1 a/DET/det/6 woman/NOUN/conj/1 "
    "in/ADP/prep/6 red/NOUN/pobj/7": (["woman", "blue", "woman", "red"], [("in", 0, 1), ("in", 2, 3)]),
    "A/DET/det/3 small/ADJ/amod/3 brown/ADJ/amod/3 cat/NOUN/ROOT/3 and/CCONJ/cc/3 two/NUM/nummod/6 dogs/NOUN/conj/3": (
        ["small brown cat", "two dogs"],
        [],
    ),
    "A/DET/det/1 man/NOUN/ROOT/1 riding/VERB/acl/1 a/DET/det/4 wave/NOUN/dobj/2 on/ADP/prep/2 top/NOUN/pobj/5 "
    "of/ADP/prep/6 a/DET/det/9 surfboard/NOUN/pobj/7 ./PUNCT/punct/1": (
        ["man", "wave", "surfboard"],
        [("riding", 0, 1), ("on top of", 0, 2)],
    ),
    "A/DET/det/1 group/NOUN/ROOT/1 of/ADP/prep/1 people/NOUN/pobj/2 standing/VERB/acl/3 next/ADV/advmod/4 "
    "to/ADP/prep/5 a/DET/det/9 red/ADJ/amod/9 bus/NOUN/pobj/6": (
        ["group of people", "red bus"],
        [("standing next to", 0, 1)],
    ),
    "There/PRON/expl/1 is/VERB/ROOT/1 a/DET/det/3 cat/NOUN/attr/1 on/ADP/prep/3 the/DET/det/6 table/NOUN/pobj/4 "
    "in/ADP/prep/1 front/NOUN/pobj/7 of/ADP/prep/8 a/DET/det/11 window/NOUN/pobj/9": (
        ["cat", "table", "window"],
        [("on", 0, 1), ("in front of", 0, 2)],
    ),
    "A/DET/det/1 dog/NOUN/ROOT/1 that/PRON/nsubj/4 is/AUX/aux/4 chasing/VERB/relcl/1 a/DET/det/9 black/ADJ/amod/9 "
    "and/CCONJ/cc/6 white/ADJ/conj/6 cat/NOUN/dobj/4": (["dog", "black and white cat"], [("chasing", 0, 1)]),
    # A known error of the tree: the hat is the woman's, not where the horse is ridden.
    "The/DET/det/1 horse/NOUN/nsubjpass/3 is/AUX/auxpass/3 ridden/VERB/ROOT/3 by/ADP/agent/3 a/DET/det/6 "
    "woman/NOUN/pobj/4 in/ADP/prep/3 a/DET/det/9 hat/NOUN/pobj/7": (
        ["horse", "woman", "hat"],
        [("ridden by", 0, 1), ("ridden in", 0, 2)],
    ),
    "A/DET/det/1 photo/NOUN/ROOT/1 of/ADP/prep/1 a/DET/det/4 cat/NOUN/pobj/2 sitting/VERB/acl/4 on/ADP/prep/5 "
    "a/DET/det/8 chair/NOUN/pobj/6": (["cat", "chair"], [("sitting on", 0, 1)]),
    # What is said of a pronoun is lost: "it" is the bench.
    "A/DET/det/1 man/NOUN/poss/3 's/PART/case/1 hat/NOUN/nsubj/4 is/AUX/ROOT/4 on/ADP/prep/4 the/DET/det/7 "
    "bench/NOUN/pobj/5 and/CCONJ/cc/4 a/DET/det/10 dog/NOUN/nsubj/11 sleeps/VERB/conj/4 under/ADP/prep/11 "
    "it/PRON/pobj/12": (["man", "hat", "bench", "dog"], [("of", 1, 0), ("on", 1, 2)]),
    "No/DET/det/1 cat/NOUN/nsubj/2 is/AUX/ROOT/2 in/ADP/prep/2 the/DET/det/5 kitchen/NOUN/pobj/3": (
        ["no cat", "kitchen"],
        [],
    ),
    "Red/ADJ/amod/1 suitcases/NOUN/ROOT/1 stacked/VERB/acl/1 upon/SCONJ/prep/2 each/DET/det/5 other/ADJ/pobj/3": (
        ["red suitcases"],
        [],
    ),
    "A/DET/det/1 cat/NOUN/ROOT/1 jumping/VERB/acl/1 out/ADP/prep/2 of/ADP/prep/3 a/DET/det/6 box/NOUN/pobj/4": (
        ["cat", "box"],
        [("jumping out of", 0, 1)],
    ),
    "A/DET/det/1 cup/NOUN/nsubj/6 and/CCONJ/cc/1 a/DET/det/4 plate/NOUN/conj/1 ,/PUNCT/punct/1 are/AUX/ROOT/6 "
    "to/ADP/prep/6 the/DET/det/9 right/NOUN/pobj/7 of/ADP/prep/9 the/DET/det/12 laptop/NOUN/pobj/10": (
        ["cup", "plate", "laptop"],
        [("to the right of", 0, 2), ("to the right of", 1, 2)],
    ),
    "A/DET/det/1 boy/NOUN/ROOT/1 picking/VERB/acl/1 up/ADP/prt/2 a/DET/det/5 ball/NOUN/dobj/2": (
        ["boy", "ball"],
        [("picking up", 0, 1)],
    ),
    "Sitting/VERB/ROOT/0 quietly/ADV/advmod/0": None,
}


@pytest.mark.parametrize("text", TREES)
def test_rules_read_objects_and_relations_from_trees(text):
    nodes, edges = TREES[text] or ((), ())
    expected = SceneGraph(tuple(nodes), tuple(Edge(*edge) for edge in edges))
    assert try_parse(text, graph_of_tree, tree(text)).graph == (expected if nodes else None)


def test_spacy_gives_the_trees_of_the_captions_of_oc_clips_table_10():
    """The third is wrong, and known to be. With the rules of the paper's authors the first has "on", and the second
    misses its relation and has "the left" for an object."""
    spacy = pytest.importorskip("spacy", reason="spaCy isn't installed")
    installed = [name for name in spacy.util.get_installed_models() if name.startswith("en_core_web_sm")]
    if not installed:
        pytest.skip("no pipeline en_core_web_sm is installed")
    parser = open_parser(f"spacy-rules:model={installed[0]}")
    if not parser.identity()["model"].endswith(" 3.8.0"):
        pytest.skip(f"the graphs are those of en_core_web_sm 3.8.0, not of {parser.identity()['model']}")
    trees = list(map(tree, list(TREES)[:3]))
    captions = [" ".join(word.text for word in words) for words in trees]
    assert parser.parse(captions) == list(map(graph_of_tree, trees))


def test_random_trees_give_valid_graphs():
    """Whatever a model gives: any labels, parts of speech and heads."""
    rng, texts = random.Random(0), ("cat", "group", "photo", "left", "of", "on", "no", "the", "is", "runs", "people")
    labels = ("nsubj", "dobj", "pobj", "prep", "conj", "cc", "amod", "acl", "relcl", "attr", "expl", "poss", "agent")
    for _ in range(3000):
        order = rng.sample(range(9), 9)  # of a tree's words from its root on
        heads = {place: order[rng.randint(0, k)] for k, place in enumerate(order)}
        parts = rng.choices(("NOUN", "VERB", "AUX", "ADP", "ADJ", "PRON"), k=9)
        tops = zip(rng.choices(texts, k=9), parts, rng.choices(labels, k=9), range(9), strict=True)
        words = [Word(text, part, label, heads[place]) for text, part, label, place in tops]
        graph, problem = try_parse("caption", graph_of_tree, words)[1:3]
        assert graph or problem
        if graph:
            assert all(0 <= end < len(graph.nodes) for edge in graph.edges for end in edge[1:])


FACTS = {
    "( cat , is , brown ) , ( cat , lay on , computer )": (["brown cat", "computer"], [("lay on", 0, 1)]),
    "( man , at the left of , dog )": (["man", "dog"], [("at the left of", 0, 1)]),
    "( pigs , is , 2 ) , ( bags , on , pigs ) , ( pigs , is , pink )": (["2 pink pigs", "bags"], [("on", 1, 0)]),
    "( dog )": (["dog"], []),
    "( woman , is , in blue ) , ( woman , is , tall )": (["tall woman in blue"], []),
    "( sheep , near , sheep )": (["sheep"], []),
}


@pytest.mark.parametrize("facts", FACTS)
def test_facts_of_the_t5_are_read(facts):
    nodes, edges = FACTS[facts]
    assert t5.graph_of_facts(facts) == SceneGraph(tuple(nodes), tuple(Edge(*edge) for edge in edges))


NO_FACTS = ["", "a cat", "( cat , is )", "( cat , on , )", "( cat , is , brown ) , ( cat", "( the )"]


@pytest.mark.parametrize("facts", NO_FACTS)
def test_malformed_facts_fall_back_to_one_node(facts):
    class Model:
        def parse(self, captions, **options):
            return [facts for _ in captions]

    parser = CaptionParser("t5", t5.FactualT5(t5.T5Options(batch=2), Model()), None)
    assert parser.parse(["a", "b", "c"]) == [one_node("a"), one_node("b"), one_node("c")]
    assert parser.counts().parsed == 0


LIBRARIES = {"spacy-rules": ("spacy", "[spacy]"), "t5": ("factual_scene_graph", "[factual]")}


@pytest.mark.parametrize("name", LIBRARIES)
def test_a_missing_library_names_its_extra(name):
    library, extra = LIBRARIES[name]
    if find_spec(library):
        pytest.skip(f"{library} is installed")
    with pytest.raises(UserError) as error:
        open_parser(name)
    assert f"pip install 'binding-menagerie{extra}'" in str(error.value)


def test_a_missing_pipeline_is_one_error():
    pytest.importorskip("spacy", reason="spaCy isn't installed")
    with pytest.raises(UserError, match=r"can't load the pipeline 'no_such'.*spacy-rules:model=FOLDER"):
        open_parser("spacy-rules:model=no_such")


def test_a_pipeline_without_a_parser_is_refused(tmp_path):
    spacy = pytest.importorskip("spacy", reason="spaCy isn't installed")
    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(UserError, match="has no parser"):
        open_parser(f"spacy-rules:model={tmp_path / 'blank'}")


def test_phrases_are_split_into_noun_and_attributes():
    found = list(mentions_in([SceneGraph(("woman in red", "small brown cat", "no dog"))]))
    assert found == [("woman", "in red"), ("cat", "small"), ("cat", "brown"), ("dog", "no")]


def test_captions_are_read_one_a_line_or_from_coco(tmp_path):
    (tmp_path / "captions.txt").write_text("A cat.\n\n  A\tdog \r\nA cat.\n", encoding="utf-8")
    assert captions_in_file(tmp_path / "captions.txt") == ["A cat.", "A dog", "A cat."]
    content = {
        "images": [{"id": 1, "file_name": "1.jpg"}],
        "annotations": [{"image_id": 1, "caption": text} for text in ("A cat.", "A  cat.", "A pig")],
    }
    (tmp_path / "captions.json").write_text(json.dumps(content))
    assert captions_in_file(tmp_path / "captions.json") == ["A cat.", "A cat.", "A pig"]


FILES = {
    "empty.txt": (b"", "has no captions"),
    "long.txt": (b"x " * 1500, "write one caption a line"),
    "latin.txt": (b"caf\xe9", "is no text in UTF-8"),
    "list.json": (b"[]", "is not of its form"),
    "half.json": (b'{"images": [', "is no JSON"),
}


@pytest.mark.parametrize("name", [*FILES, "absent.txt"])
def test_files_without_captions_are_refused(name, tmp_path):
    content, problem = FILES.get(name, (None, "can't be read"))
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError) as error:
        captions_in_file(tmp_path / name)
    assert problem in str(error.value)
    assert "\n" not in str(error.value)


@pytest.fixture
def scripted(monkeypatch):
    """`--parser scripted`."""
    open_ = lambda text, parses, allow: CaptionParser(text, Scripted({"A cat.": CAT}, {"A cow."}), None, allow)  # noqa: E731
    monkeypatch.setattr("menagerie.generators.sources.captions_file.open_parser", open_)


def test_a_file_is_parsed(scripted, tmp_path, capsys):
    (tmp_path / "captions.txt").write_text("A cat.\nA pig.\n")
    parse_file(tmp_path / "captions.txt", "scripted", tmp_path / "graphs.json", tmp_path, False)
    line = "scripted: 2 captions: 1 parsed, 1 fell back to one node (1 no nodes); 0 were known before"
    assert capsys.readouterr().out.splitlines() == [line]
    (found,) = json.loads((tmp_path / "graphs.json").read_text())["parsers"]
    assert (found["parser"], found["counts"]["fell_back"]) == ("scripted", {"no nodes": 1})
    assert [from_json(graph) for graph in found["graphs"]] == [CAT, one_node("A pig.")]
    assert [graph["fell_back"] for graph in found["graphs"]] == [False, True]


def test_a_file_is_written_whole_or_not_at_all(scripted, tmp_path, capsys):
    (tmp_path / "captions.txt").write_text("A cat.\nA cow.\n")
    arguments = tmp_path / "captions.txt", "scripted", tmp_path / "graphs.json", tmp_path
    with pytest.raises(UserError, match=r"1 of 2 captions have no answer.*--allow-unanswered"):
        parse_file(*arguments, False)
    assert "1 parsed, 1 fell back to one node (1 timeout)" in capsys.readouterr().out
    assert not (tmp_path / "graphs.json").exists()
    parse_file(*arguments, True)
    with pytest.raises(UserError, match="choose another --out"):
        parse_file(*arguments, True)


def test_parse_command_writes_graphs_and_lists_parsers(tmp_path, monkeypatch):
    (tmp_path / "captions.txt").write_text("A cat.\n")
    start = [sys.executable, "-m", "menagerie", "parse"]
    monkeypatch.setenv("COLUMNS", "100")
    run = lambda *arguments: run_here([*start, *arguments], tmp_path)  # noqa: E731
    done = run("captions.txt", "--parser", "one-node", "--out", "out.json")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "out.json"
    assert json.loads((tmp_path / "out.json").read_text())["parsers"][0]["graphs"][0]["nodes"] == ["A cat."]
    wrong = run("captions.txt", "--parser", "llama")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    help_ = run("--help").stdout
    assert all(f"\n{name} " in help_ for name in names())
    assert max(map(len, help_.splitlines())) <= 120
    assert len(help_.splitlines()) <= 45


def test_the_loss_compares_captions_of_photographs_as_wholes():
    """Captions of photographs are compared as wholes, without capitals and punctuation, never by parts."""
    texts = ["An ice cream.", "a cream", "an ice  cream", "AN ICE CREAM", "ice"]
    graphs = [("ice cream",), ("cream",), ("ice cream",), ("ice cream",), ("ice",)]
    captions = [Caption(text, SceneGraph(nodes)) for text, nodes in zip(texts, graphs, strict=True)]
    marks = targets_of(captions, 5, False, False, Claims())
    assert marks.same.int().tolist() == [
        [1, 0, 1, 1, 0],
        [0, 1, 0, 0, 0],
        [1, 0, 1, 1, 0],
        [1, 0, 1, 1, 0],
        [0, 0, 0, 0, 1],
    ]
    assert marks.masked is None


def test_the_loss_doesnt_take_one_name_for_another_that_it_is_part_of():
    """There a text that is true of an image is masked: the name of one object isn't true of the other."""
    world = Vocabulary(("ice cream", "cream"), ("red",), ("city",), ())
    nodes = [("red ice cream", "city"), ("ice cream", "city"), ("cream", "city")]
    captions = [Caption(", ".join(own), SceneGraph(own)) for own in nodes]
    marks = targets_of(captions, 3, True, True, Claims(compound_names(world)))
    assert marks.same.int().tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]
    assert marks.masked.int().tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]
