"""The wording of captions as fields: what reads as English, parses back, and is audited."""

from dataclasses import asdict

import pytest

from menagerie.envs.scene import Object, Scene
from menagerie.envs.worlds import load_world
from menagerie.generators.captions.phrases import noun_phrase, plural, with_article
from menagerie.generators.captions.templates import Content, caption, template_of, write_caption
from menagerie.generators.parsers.world_grammar import caption_reading, parse_caption
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.recipe_file import read_recipe
from menagerie.generators.storage.split_file import recorded_fields, split_name
from tests.helpers.splits import hard_negative

PUG, SIZED = load_world("pug"), load_world("pug-sizes")
STATED = {"template": "statement-conjunction", "phrasings": ("{objects} {place}",), "mention_order": "slots"}
OWN = ("{place} i see that {objects}", "{objects} {place}", "this is the {background} where {objects}")


def pair(first="red", second="asphalt", size="", view=0):
    return Scene("desert", (Object("cat", first, "left", size), Object("orca", second, "right", size and "big")), view)


def text_of(scene, **fields):
    return caption(scene, 0, template_of({"template": "conjunction", "mention_order": "slots"} | fields)).text


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({}, "a red cat and an asphalt orca in the desert"),
        ({"article": "the"}, "the red cat and the asphalt orca in the desert"),
        ({"conjunction": "as well as"}, "a red cat as well as an asphalt orca in the desert"),
        (STATED, "the cat is red and the orca is asphalt in the desert"),
        (STATED | {"conjunction": "while"}, "the cat is red while the orca is asphalt in the desert"),
        (STATED | {"article": "a"}, "a cat is red and an orca is asphalt in the desert"),
        (STATED | {"phrasings": OWN[:1]}, "in the desert i see that the cat is red and the orca is asphalt"),
        ({"template": "relation"}, "a red cat to the left of an asphalt orca in the desert"),
        ({"template": "relation", "article": "the"}, "the red cat to the left of the asphalt orca in the desert"),
        (
            STATED | {"template": "statement-relation"},
            "the red cat is to the left of the asphalt orca in the desert",
        ),
    ],
)
def test_captions_of_every_wording_read_as_english(fields, text):
    assert text_of(pair(), **fields) == text
    assert parse_caption(text, PUG) == caption(pair(), 0, template_of({"template": "conjunction"} | fields)).graph


def test_sentences_of_every_form_read_as_english():
    template = template_of(STATED)
    scene, sized = pair(), pair(size="small")

    def written(*objects, denied=()):
        return write_caption(Content(scene, objects, denied=denied), template)

    cat, orca = scene.objects
    cats = [cat._replace(slot=slot) for slot in ("lower left", "lower right", "upper left")]
    forms = {
        written(cat): "the cat is red in the desert",
        written(cat._replace(texture="")): "the cat is there in the desert",
        written(cat, denied=(orca,)): "the cat is red and no orca is asphalt in the desert",
        written(denied=(orca,)): "no orca is asphalt in the desert",
        written(*cats): "three cats are red in the desert",
    }
    for made, text in forms.items():
        assert made.text == text
        assert parse_caption(text, PUG) == made.graph
    made = caption(sized, 0, template)
    assert made.text == "the small cat is red and the big orca is asphalt in the desert"
    assert made.graph.nodes == ("small red cat", "big asphalt orca", "desert") == parse_caption(made.text, SIZED).nodes
    assert parse_caption(forms[written(*cats)], PUG).nodes == ("three red cats", "desert")


@pytest.mark.parametrize(
    "text",
    [
        "a red cat",
        "in the city",
        "a red cat in the city and the desert",
        "a red cat a white lion in the city",
        "a purple cat in the city",
        "the red cat and a white orca in the desert",
        "the cat is red and a orca is white in the desert",
        "a red cat is white in the desert",
        "the cats are red in the desert",
        "two cats is red in the desert",
        "the cat are red in the desert",
        "the cat is red or the orca is white in the desert",
        "the cat is red in the desert in grass",
    ],
)
def test_what_is_no_caption_is_not_read(text):
    assert parse_caption(text, PUG) is None


def test_a_reading_has_the_words_that_a_graph_leaves_out():
    reading = caption_reading("the cat is red while the orca is white in the desert", PUG)
    assert (reading.article, reading.joints) == ("the", ("while",))
    assert caption_reading("a red cat above an asphalt orca in the desert", PUG).joints == ("above",)
    assert caption_reading("two red cats in the desert", PUG).article == ""


def test_a_fixed_order_mentions_the_first_slot_first_in_negatives_too():
    template = template_of({"template": "conjunction", "mention_order": "slots"})
    for view in range(20):
        true, false = caption(pair(view=view), 0, template), hard_negative(pair(view=view), 0, template)
        assert true.graph.nodes == ("red cat", "asphalt orca", "desert")
        assert false.graph.nodes == ("asphalt cat", "red orca", "desert")


def test_a_recipe_file_sets_the_wording_and_old_identities_stay(tmp_path):
    (tmp_path / "r.toml").write_text(
        'kind = "binding"\nworld = "tiny"\nconjunction = "while"\narticle = "a"\nmention_order = "slots"\n'
        'template = "statement-conjunction"\nphrasings = ["{place} {objects}"]\n'
    )
    recipe = read_recipe(str(tmp_path / "r.toml"))
    assert recipe == BindingRecipe(
        world="tiny", conjunction="while", article="a", phrasings=("{place} {objects}",), **STATED_NAME
    )
    assert recorded_fields(recipe).items() >= {"conjunction": "while", "article": "a", "mention_order": "slots"}.items()
    assert split_name(BindingRecipe()) == "binding-p0.2-n0-s0-b8a9fa89.h5"
    assert template_of(asdict(BindingRecipe())) is template_of({"template": "conjunction"})


STATED_NAME = {"template": "statement-conjunction", "mention_order": "slots"}


def test_phrases_have_the_right_articles_plurals_and_numbers():
    assert [with_article(noun) for noun in ("unicorn", "ewe", "red owl")] == ["a unicorn", "a ewe", "a red owl"]
    several = {"field mouse": "field mice", "moose": "moose", "snow goose": "snow geese", "lynx": "lynxes"}
    several |= {"pony": "ponies", "donkey": "donkeys", "caribou": "caribou", "rhinoceros": "rhinoceroses"}
    assert {noun: plural(noun) for noun in several} == several
    assert noun_phrase("red", "cat", 1) == "red cat"
    assert noun_phrase("grass", "giant tortoise", 3) == "three grass giant tortoises"
    assert noun_phrase("", "goldfish", 2) == "two goldfish"
