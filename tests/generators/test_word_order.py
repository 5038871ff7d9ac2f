"""ARO's word orders, made by a tagger of a few words."""

import builtins
import re
from collections import Counter

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.generators.benchmarks.word_order import caption_and_shuffles, clean_text
from menagerie.generators.parsers.spacy_rules import spacy_model, spacy_tags
from menagerie.generators.sources.place import Place
from tests.helpers.benchmark_files import IMAGES, MAKERS, captions_of, tiny_tags

CAPTION = 'A small CAT beside two "big" dogs, on the green grass.'
NOUNS, ADJECTIVES = {"cat", "dogs", "grass"}, {"small", "big", "green"}


def kinds(text):
    """N, A or - for each word."""
    words = re.sub(",", " , ", text).split()
    return "".join("N" if word in NOUNS else "A" if word in ADJECTIVES else "-" for word in words)


def in_threes(text):
    words = re.sub(",", " , ", text).split()
    return [words[start : start + 3] for start in range(0, len(words), 3)]


@pytest.fixture
def made():
    """Shuffles of a caption that loses no token to cleaning, as the true one does."""
    return caption_and_shuffles("a small cat beside two big dogs , on the green grass", "a.jpg 0", tiny_tags)


def test_five_options_of_the_same_words(made):
    assert len(set(made)) == 5
    assert len({tuple(sorted(option.split())) for option in made}) == 1


def test_nouns_and_adjectives_change_places_among_themselves(made):
    true, nouns, others, _, _ = made
    assert kinds(nouns) == kinds(true) == kinds(others)
    for old, new, kind in zip(true.split(), nouns.split(), kinds(true), strict=True):
        assert kind != "-" or old == new
    for old, new, kind in zip(true.split(), others.split(), kinds(true), strict=True):
        assert kind == "-" or old == new


def test_shuffling_in_threes_keeps_each_three_together(made):
    true, _, _, within, whole = map(in_threes, made)
    assert [sorted(three) for three in within] == [sorted(three) for three in true]
    assert Counter(map(tuple, whole)) == Counter(map(tuple, true))


def test_captions_are_cleaned_as_aro_does():
    assert clean_text(CAPTION) == "a small cat beside two big dogs, on the green grass"
    assert len(clean_text("word " * 40).split()) == 30
    assert clean_text("...") == "..."
    assert caption_and_shuffles("Dogs", "a.jpg 0", tiny_tags) == ("dogs",) * 5, "a shuffle may change nothing"


def test_shuffles_depend_on_the_record_alone(tmp_path):
    MAKERS["coco-order"](tmp_path)
    bench = load_benchmark("coco-order").build(Place(tmp_path, 16, tag=tiny_tags))
    assert bench.made_texts
    whole = {clean_text(caption): caption for k in range(IMAGES) for caption in captions_of(k)}
    for item in bench.items:  # whatever stands before it
        texts = tuple(text.text for text in item.texts)
        assert texts == caption_and_shuffles(whole[texts[0]], item.record, tiny_tags)
    again = caption_and_shuffles(CAPTION, "another.jpg 0", tiny_tags)
    assert (
        caption_and_shuffles(CAPTION, "another.jpg 0", tiny_tags)
        == again
        != caption_and_shuffles(CAPTION, "a.jpg 0", tiny_tags)
    )


def test_word_orders_without_spacy_are_one_clear_error(tmp_path, monkeypatch):
    importing = builtins.__import__

    def without(name, *more):
        if name == "spacy":
            raise ImportError(name)
        return importing(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    spacy_model.cache_clear()
    spacy_tags.cache_clear()
    MAKERS["coco-order"](tmp_path)
    with pytest.raises(UserError, match=r"spaCy isn't installed; .* pip install spacy") as error:
        load_benchmark("coco-order").build(Place(tmp_path))
    assert "--benchmarks" in str(error.value)
    assert "\n" not in str(error.value)


def test_spacy_tags_nouns_and_adjectives():
    pytest.importorskip("spacy")
    try:
        spacy_model()
    except UserError as error:
        pytest.skip(str(error))
    assert dict(spacy_tags("a small cat and dogs"))["dogs"] == "NNS"
