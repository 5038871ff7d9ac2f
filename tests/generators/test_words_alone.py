"""What words alone decide: hand-made items, a language model whose chances sum to 1, and SugarCrepe's real captions."""

import json
import math
import os
import re
from collections import Counter
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest

from menagerie.generators.benchmarks.benchmark import FOUR_WAY_RULES, Item, texts_chosen
from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.generators.benchmarks.words_alone import TrigramPrior, bag_scores, text_words, words_alone
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.templates import Caption
from menagerie.generators.sources.place import Place

SUGARCREPE = Path(os.environ.get("MENAGERIE_SHARED", "")) / "data" / "sugarcrepe"


def item(*texts, images=1, true=1):
    return Item("0", "all", tuple(range(images)), tuple(Caption(text, SceneGraph(())) for text in texts), "", true)


def measured(rule, *items, prior=None):
    return words_alone(SimpleNamespace(outcome=lambda item, scores: rule(scores)), items, prior)


def test_a_bag_of_words_guesses_where_the_words_are_the_same():
    swap, longer = item("A red cat, a dog.", "a dog a red cat"), item("a cat", "a big cat")
    found = measured(texts_chosen, swap, longer)
    assert (found.records, found.same, found.bag) == (2, 0.5, 0.75)
    assert (found.length, found.preferred) == (0.75, "shorter")
    assert measured(texts_chosen, item("a cat")) is None, "nothing to choose"


def test_several_false_texts_tie_each_and_true_ones_count_together():
    assert measured(texts_chosen, item("a b", "b a", "c", "a b")).bag == pytest.approx(1 / 3)
    two = SimpleNamespace(outcome=lambda item, scores: texts_chosen(scores, 2))
    paraphrases = item("a cat is red", "a red cat", "a blue cat", true=2)
    assert words_alone(two, [paraphrases]).bag == 1


def test_four_way_items_of_the_same_words_are_at_chance():
    both = item("a dog left of a cat", "a cat left of a dog", images=2)
    found = {name: measured(rule, both) for name, rule in FOUR_WAY_RULES.items()}
    assert [round(found[name].bag, 4) for name in ("text", "image", "group")] == [0.25, 0.25, 0.1667]
    assert found["text"].length == 0.25, "all tie"
    other = item("a dog", "a big cat", images=2)
    assert measured(FOUR_WAY_RULES["text"], other).length == 0, "one text for both images"
    assert bag_scores(other).tolist() == [[1, 0], [0, 1]]


def test_the_prior_is_a_distribution_and_prefers_what_it_was_trained_on():
    prior = TrigramPrior(["a red cat", "a red dog", "the cat sleeps"])
    words = [*prior.after[()], "unknown"]
    for context in product(("a", "red", "new"), repeat=2):
        assert math.isclose(sum(prior.chance(word, context) for word in words), 1)
    assert prior("a red cat") > prior("a cat red") > prior("a zebra red")
    # By hand: 12 words with the ends, 7 different ones, an eighth for all that are unknown.
    assert prior.chance("cat", ()) == pytest.approx((2 + 7 / 8) / (12 + 7))
    assert measured(texts_chosen, item("a red cat", "a cat red"), prior=prior).prior == 1


@pytest.mark.skipif(not SUGARCREPE.is_dir(), reason="MENAGERIE_SHARED has no SugarCrepe")
def test_words_of_sugarcrepes_swaps():
    """Against a count of the files that knows nothing of items: 66.9 and 61.3 % have a pair of the same words."""
    bench = load_benchmark("sugarcrepe").build(Place(SUGARCREPE.parent, allow_missing=True))
    items, shares = [*bench.items, *bench.items_without_images()], {}
    for name in ("swap_obj", "swap_att", "add_att"):
        rows = json.loads((SUGARCREPE / f"{name}.json").read_text()).values()
        bags = [
            [Counter(re.findall(r"[a-z0-9']+", row[key].lower())) for key in ("caption", "negative_caption")]
            for row in rows
        ]
        shares[name] = sum(true == false for true, false in bags) / len(bags)
        found = words_alone(bench, [item for item in items if item.task == name])
        assert (found.records, found.same, found.bag) == (len(bags), shares[name], pytest.approx(1 - shares[name] / 2))
    assert {name: round(share, 3) for name, share in shares.items()} == {
        "swap_obj": 0.669,
        "swap_att": 0.613,
        "add_att": 0,
    }
    assert len(items) == 7511
    assert text_words("It's a black-and-white Cat.") == ["it's", "a", "black", "and", "white", "cat"]
