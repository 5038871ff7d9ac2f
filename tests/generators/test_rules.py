"""Rules agree with an independent evaluation, and wrong ones are refused with a remedy."""

import operator
import pickle
import random
from contextlib import suppress
from dataclasses import FrozenInstanceError, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from menagerie.envs.core.errors import UserError
from menagerie.envs.scene import Object, Scene
from menagerie.envs.worlds import load_world
from menagerie.generators.rules.parser import parse_rule

PUG = load_world("pug")
TINY = load_world("tiny")


def scene(objects: str, background="desert", view=0) -> Scene:
    """ "red cat@left, white lion@right" as a scene."""
    parts = [obj.strip().replace("@", " ").split(" ") for obj in objects.split(",")]
    deep = {"front": "front middle", "back": "back middle"}
    made = (Object(" ".join(words[1:-1]), words[0], deep.get(words[-1], words[-1])) for words in parts)
    return Scene(background, tuple(made), view)


def matches(rule: str, *of, **more) -> bool:
    return parse_rule(rule, PUG).matches(scene(*of, **more))


RED_CAT = "red cat@left, white lion@right"
WHITE_CAT = "white cat@left, red lion@right"
UPPER_CAT = "red cat@above, white orca@under"
LOWER_CAT = "red cat@under, white orca@above"
LONE_CAT = "red cat@center"
THREE = "red cat@center, red lion@left, white cat@right"
DEEP = "red cat@front, red lion@back"


@pytest.mark.parametrize(
    ("rule", "true", "false"),
    [
        # The examples of the language.
        ("texture=red & animal=cat", [RED_CAT, LONE_CAT, THREE], [WHITE_CAT, "white lion@center"]),
        ("pair={cat,lion}", [RED_CAT, WHITE_CAT, "red lion@left, red cat@above"], [UPPER_CAT, LONE_CAT, THREE]),
        ("relation=above & second=orca", [UPPER_CAT], [LOWER_CAT, RED_CAT, LONE_CAT, "red cat@left, red orca@right"]),
        ("count=2 & texture[0]=texture[1]", ["red cat@left, red lion@right"], [RED_CAT, LONE_CAT, THREE]),
        ("not (animal=cat or background={city, desert})", [], [LONE_CAT, "red lion@center"]),
        # Names.
        ("animal=giant tortoise", ["red giant tortoise@center"], [LONE_CAT]),
        ("animal = ' giant   tortoise '", ["red giant tortoise@center"], [LONE_CAT]),
        ('animal={"giant tortoise" ,cat}', ["red giant tortoise@center", LONE_CAT], ["red lion@center"]),
        # One object in a chain; parentheses speak for themselves.
        ("(texture=red) & (animal=cat)", [RED_CAT, WHITE_CAT], ["white cat@center"]),
        ("(texture=red) & animal=cat", [RED_CAT, WHITE_CAT], ["white cat@center"]),
        ("(texture=red & animal=cat)", [RED_CAT], [WHITE_CAT]),
        ("texture=red & background=desert & slot=left & animal=cat", [RED_CAT], [WHITE_CAT, LONE_CAT]),
        ("texture=red & (slot=right) & animal=cat", [RED_CAT], [WHITE_CAT, LONE_CAT]),
        ("not animal=cat", ["red lion@center"], [RED_CAT, LONE_CAT]),
        ("animal!=cat", [RED_CAT, "red lion@center"], [LONE_CAT, "red cat@left, white cat@right"]),
        ("texture=red & animal!={cat, orca}", [WHITE_CAT], [RED_CAT, LONE_CAT]),
        ("!texture=red & animal=cat", ["white cat@center"], [RED_CAT, WHITE_CAT]),
        ("!!animal=cat", [RED_CAT], ["red lion@center"]),
        # Relations, and who is first.
        ("relation={left, under} & first=cat", [RED_CAT, LOWER_CAT], [UPPER_CAT, "red lion@left, red cat@right"]),
        ("(relation=under) & second=orca", [UPPER_CAT], [LOWER_CAT]),
        ("relation=behind & first=lion", [DEEP], ["red lion@front, red cat@back"]),
        ("relation=left & first=lion & second=cat", [THREE], [RED_CAT, LONE_CAT]),
        # Precedence: not, then and, then or; a side of `or` has an object of its own.
        ("animal=orca or animal=cat and texture=red", [RED_CAT, UPPER_CAT], [WHITE_CAT]),
        ("(animal=orca or animal=cat) and view=1", [], [RED_CAT, UPPER_CAT]),
        ("not animal=orca and animal=cat", [RED_CAT], [UPPER_CAT, "red lion@center"]),
        ("not animal=orca or animal=cat", [RED_CAT, UPPER_CAT, "red lion@center"], ["red orca@center"]),
        ("not (animal=orca or animal=cat)", ["red lion@center"], [RED_CAT, UPPER_CAT]),
        ("texture=white or animal=cat", [LONE_CAT, "white lion@center"], ["red lion@center"]),
        (" count=1&animal=cat|count=2 ", [LONE_CAT, RED_CAT], [THREE, "red lion@center"]),
    ],
)
def test_a_rule_matches_the_scenes_that_it_describes(rule, true, false):
    assert [objects for objects in true + false if matches(rule, objects)] == true


def test_rules_read_fields_of_the_scene():
    assert matches("background=city", LONE_CAT, "city")
    assert not matches("background=city", LONE_CAT)
    assert matches("not (animal=cat or background={city, desert})", "red lion@center", "ocean floor")
    assert not matches("not (animal=cat or background={city, desert})", LONE_CAT, "ocean floor")
    assert matches("background=ocean floor & view={3, 4}", LONE_CAT, "ocean floor", view=4)
    assert not matches("view!=4", LONE_CAT, view=4)


def test_equal_rules_are_equal_values():
    text = "(" * 50 + "animal=cat & relation=under" + ")" * 50
    rule = parse_rule(text, PUG)
    assert rule.text == text
    assert {rule} == {parse_rule(text, PUG), pickle.loads(pickle.dumps(rule))}
    assert rule != parse_rule("animal=lion & relation=under", PUG)
    with pytest.raises(FrozenInstanceError):
        rule.text = "animal=lion"


def test_names_with_keywords_are_quoted():
    world = replace(PUG, animals=("black and white cat", "not"))
    rule = parse_rule("animal={'black and white cat', \"not\"} and texture=red", world)
    assert rule.matches(scene("red black and white cat@center"))
    assert rule.matches(scene("red not@center"))
    assert not rule.matches(scene("white not@center"))


@pytest.mark.parametrize(
    ("rule", "place", "problem"),
    [
        ("", 1, "the rule is empty; write one such as"),
        ("texture=rde", 9, "unknown texture 'rde'; did you mean 'red'?"),
        ("animal=cat & first=loin", 20, "unknown animal 'loin'; did you mean 'lion'?"),
        ("background={city,\ndessert}", 19, "unknown background 'dessert'; did you mean 'desert'?"),
        ("relation=north", 10, "known: left, right, above, under, front, behind, none"),
        ("animal=cat & textur=red", 14, "unknown field 'textur'; did you mean 'texture'?"),
        ("=cat", 1, "expected a field (animal, texture,"),
        ("animal=cat or", 14, "expected a field"),
        ("animal", 7, "expected one of = != < <= > >=, got the end"),
        ("animal==cat", 8, "expected a name for animal, got '='"),
        ("animal={cat,}", 13, "expected a name for animal, got '}'"),
        ("count=", 7, "expected a whole number for count, got the end"),
        ("animal=cat)", 11, "expected '&', '|' or the end, got ')'"),
        ("animal=cat texture=red", 19, "'&' or '|' is missing before 'texture'"),
        ("animal=cat AND texture=red", 23, "'&' or '|' is missing before 'texture'"),
        ("animal=cat; view=1", 11, "';' means nothing; join comparisons by & or |"),
        ('animal="cat', 8, 'the quote " is never closed'),
        ("animal[0=cat", 9, "expected ']', got '='"),
        ("animal[8]=cat", 8, "index is a whole number from 0 to 7, got '8'"),
        ("background[0]=city", 11, "background is of the whole scene and takes no index"),
        ("texture[0]=animal[1]", 12, "texture can't be compared with animal"),
        ("pair=animal[1]", 6, "pair can't be compared with animal"),
        ("count=0", 7, "count is a whole number from 1 to 8, got '0'"),
        ("count=two", 7, "count is a whole number from 1 to 8, got 'two'"),
        ("count=²", 7, "got '²'"),
        ("view=2147483648", 6, "view is a whole number from 0 to 2147483647"),
        ("view=" + "9" * 5000, 6, "view is a whole number"),
        ("count<{1, 2}", 7, "expected a whole number for count, got '{'"),
        ("view<3", 5, "'<' compares count only; use = or !="),
        ("pair=cat", 6, "pair is a set of two animals, such as {cat, lion}"),
        ("view=0 or relation={left, right} & second=cat", 11, "'second' needs one of left and right, not both"),
        ("relation=under & first=cat & relation=above", 1, "'first' needs one of above and under, not both"),
        ("(" * 51 + "animal=cat" + ")" * 51, 52, "a rule nests at most 50 parentheses and nots"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_wrong_rule_is_refused_in_one_line(rule, place, problem):
    with pytest.raises(UserError) as error:
        parse_rule(rule, PUG)
    message = str(error.value)
    assert message.startswith(f"rule {rule!r}, character {place}: ")
    assert problem in message
    assert len(message.splitlines()) == 1


def test_names_are_those_of_the_world():
    parse_rule("pair={rabbit, gecko} | background=arena", PUG)
    with pytest.raises(UserError, match="unknown animal 'rabit'; did you mean 'rabbit'"):
        parse_rule("animal=rabit", TINY)
    for rule, kind in (("animal=gecko", "animal"), ("background=arena", "background"), ("texture=asphalt", "texture")):
        with pytest.raises(UserError, match=f"unknown {kind} '.*'; (known|did you mean)"):
            parse_rule(rule, TINY)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["animal", "relation", "=", "!=", "(", ")", "{", "}", "[", "]", ",", "&", "not", "or", "cat", "0"]
        )
    )
)
def test_any_text_is_a_rule_or_refused(words):
    with suppress(UserError):
        parse_rule(" ".join(words), PUG).matches(scene(RED_CAT))


# An independent evaluation: each strategy draws a text and a function that evaluates the text's meaning.

NAMES = {"animal": TINY.animals[:3], "texture": TINY.textures[:2], "slot": ("left", "back middle", "above", "center")}
SIGNS = {"=": operator.eq, "!=": operator.ne}
ORDERS = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, **SIGNS}
# The slots of the first and of the second object.
FIRST = {
    "left/right": ("left", "right"),
    "above/under": ("above", "under"),
    "front/behind": ("front middle", "back middle"),
}
ENDS = {
    word: slots[::step] for name, slots in FIRST.items() for word, step in zip(name.split("/"), (1, -1), strict=True)
}


def some_scenes(number):
    """Scenes of one to four objects, half of them with one relation, some with two; animals may recur."""
    chance = random.Random(0)
    places = [*FIRST.values(), *FIRST.values(), ("center",), ("above", "left"), ("center", "left", "right")]
    places.append((*FIRST["left/right"], *FIRST["above/under"]))
    for _ in range(number):
        names = [chance.choice(TINY.backgrounds), chance.randrange(2)]
        slots = chance.choice(places)
        objects = [Object(chance.choice(NAMES["animal"]), chance.choice(NAMES["texture"]), slot) for slot in slots]
        yield Scene(names[0], tuple(objects), names[1])


SCENES = list(some_scenes(80))


@st.composite
def any_of(draw, names):
    """ "= cat" or "!= {cat, lion}", and what it means of a value."""
    sign = draw(st.sampled_from(list(SIGNS)))
    chosen = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2))
    shown = [draw(st.sampled_from((str(name), f"'{name}'"))) for name in chosen]
    text = shown[0] if len(shown) == 1 and draw(st.booleans()) else "{" + ", ".join(shown) + "}"
    return f"{sign}{text}", lambda value: (value in chosen) == (sign == "=")


@st.composite
def of_one_object(draw):
    """ "animal=cat": true of an object."""
    field = draw(st.sampled_from(list(NAMES)))
    text, true = draw(any_of(NAMES[field]))
    return field + text, lambda obj: true(getattr(obj, field))


@st.composite
def of_numbered_objects(draw):
    """ "animal[0]=cat" or "texture[0]=texture[1]": true of a scene and its two ends."""
    field, i, j = draw(st.tuples(st.sampled_from(list(NAMES)), st.integers(0, 2), st.integers(0, 2)))
    if draw(st.booleans()):
        text, true = draw(any_of(NAMES[field]))
        return (
            f"{field}[{i}]{text}",
            lambda scene, ends: i < len(scene.objects) and true(getattr(scene.objects[i], field)),
        )
    sign = draw(st.sampled_from(list(SIGNS)))
    return (
        f"{field}[{i}] {sign} {field}[{j}]",
        lambda scene, ends: (
            max(i, j) < len(scene.objects)
            and SIGNS[sign](getattr(scene.objects[i], field), getattr(scene.objects[j], field))
        ),
    )


@st.composite
def of_the_scene(draw):
    """ "background=city", "count<2", "view=1", "pair={cat, lion}", "first=cat": true of a scene and its two ends."""
    field = draw(st.sampled_from(["background", "view", "count", "pair", "first", "second"]))
    if field == "count":
        sign, number = draw(st.sampled_from(list(ORDERS))), draw(st.integers(1, 4))
        return f"count{sign}{number}", lambda scene, ends: ORDERS[sign](len(scene.objects), number)
    if field == "pair":
        sign, one, other = draw(st.tuples(st.sampled_from(list(SIGNS)), *[st.sampled_from(NAMES["animal"])] * 2))
        return (
            f"pair{sign}{{{one},{other}}}",
            lambda scene, ends: (
                len(scene.objects) == 2
                and ([t.animal for t in scene.objects] in ([one, other], [other, one])) == (sign == "=")
            ),
        )
    if field in ("first", "second"):
        text, true = draw(any_of(NAMES["animal"]))
        return field + text, lambda scene, ends: ends is not None and true(ends[field == "second"].animal)
    text, true = draw(any_of(TINY.backgrounds if field == "background" else (0, 1)))
    return field + text, lambda scene, ends: true(getattr(scene, field))


@st.composite
def of_the_relation(draw):
    """ "relation={left, under}" without both of a relation, the words that it names, and its truth."""
    sign = draw(st.sampled_from(list(SIGNS)))
    drawn = [draw(st.sampled_from(words)) for words in (*(name.split("/") for name in FIRST), ("none",))]
    words = draw(st.lists(st.sampled_from(drawn), min_size=1, max_size=2))

    def true(name):
        return bool({*(name or "none").split("/")} & set(words)) == (sign == "=")

    return f"relation{sign}{{{','.join(words)}}}", true, words if sign == "=" else []


def relations_in(scene):
    """The names of the relations in a scene; without any, None alone."""
    there = {obj.slot for obj in scene.objects}
    return [name for name, slots in FIRST.items() if there.issuperset(slots)] or [None]


def ends_of(scene, words, name):
    """The first and the second object of a relation, as the rule's words or else the relation have it."""
    if name is None:
        return None
    object_in, (first, second) = {obj.slot: obj for obj in scene.objects}, name.split("/")
    return [object_in[slot] for slot in ENDS[second if second in words else first]]


@st.composite
def conjunctions(draw, inner):
    """A chain of comparisons and `inner` groups in any order, and its truth."""
    of_object = draw(st.lists(of_one_object(), max_size=2))
    of_scene = draw(st.lists(of_numbered_objects() | of_the_scene(), max_size=2))
    related = draw(st.lists(of_the_relation(), max_size=1))
    groups = draw(st.lists(inner, max_size=2, min_size=not (of_object or of_scene or related)))
    texts = draw(st.permutations([part[0] for part in (*of_object, *of_scene, *related, *groups)]))

    words = [word for part in related for word in part[2]]

    def true_of(scene, name):
        scene_parts = all(part[1](scene, ends_of(scene, words, name)) for part in of_scene)
        return scene_parts and all(part[1](name) for part in related)

    def true(scene):
        return (
            any(true_of(scene, name) for name in relations_in(scene))
            and all(part[1](scene) for part in groups)
            and (not of_object or any(all(part[1](obj) for part in of_object) for obj in scene.objects))
        )

    return draw(st.sampled_from(("&", " and ", " & "))).join(texts), true


@st.composite
def alternatives(draw, inner):
    """Chains joined by `or`."""
    parts = draw(st.lists(conjunctions(inner), min_size=1, max_size=2))
    return draw(st.sampled_from(("|", " or "))).join(text for text, _ in parts), lambda scene: any(
        true(scene) for _, true in parts
    )


@st.composite
def groups(draw, inner):
    """An expression in parentheses, or negated, or both."""
    text, true = draw(alternatives(inner))
    if draw(st.booleans()):
        return f"({text})", true
    return draw(st.sampled_from(("!", "not ", "! "))) + f"({text})", lambda scene: not true(scene)


NEGATED = of_one_object().map(
    lambda part: (f"not {part[0]}", lambda scene: not any(part[1](obj) for obj in scene.objects))
)


@settings(max_examples=200, deadline=None)
@given(alternatives(st.recursive(NEGATED, groups, max_leaves=4)))
def test_rules_agree_with_an_independent_evaluation(drawn):
    text, true = drawn
    rule = parse_rule(text, TINY)
    assert [rule.matches(scene) for scene in SCENES] == [true(scene) for scene in SCENES]
