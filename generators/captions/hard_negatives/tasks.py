"""Tasks of tests: one or more true captions of a scene against one or more false ones.

`swap`, which split files hold, exchanges the textures or the places of two objects. `replace ...` and `add ...` test
recognition (SugarCrepe's taxonomy). The false captions of `add ...` are half-truths: the true one with a false detail
(Kargi et al. 2026). `one animal` tests binding with captions that mention one of two (OC-CLIP, figure 6).

`assignment` permutes the textures of up to four objects in every other way: a scorer that knows the objects, but not
which texture is whose, has exactly the chance level. The other tasks of many objects are in docs/splits.md, section 8.
Train shows what a false caption names as often as what its caption names; otherwise it would give itself away.

To add a task, add an entry to `TASKS`, and its name to the kinds of splits that have it (`SplitRecipe.tasks`).
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import combinations, permutations, product
from typing import NamedTuple

from menagerie.envs.core.identity import generator
from menagerie.envs.layouts import MOST
from menagerie.envs.relations import RELATIONS, truth
from menagerie.envs.scene import Object, Scene
from menagerie.generators.captions.contents import exchanged_objects
from menagerie.generators.captions.relations import chain, converses
from menagerie.generators.captions.spec import LEAST, CaptionSpec, absent_objects, swap_exchanged_textures
from menagerie.generators.captions.templates import Caption, content_of, mention_order, write_caption

TaskCaptions = tuple[Caption, ...]
"""The captions of a test, the true ones first."""
EXCHANGES = "exchanges of"  # starts the names of tasks by their numbers of pairs
MOST_ASSIGNED = 4  # objects whose textures are assigned in every way


def write_captions(scene: Scene, spec: CaptionSpec, *objects: Sequence[Object]) -> TaskCaptions:
    """Write a caption of each sequence of objects, in the phrasing of the scene."""
    return tuple(spec.caption(scene, its) for its in objects)


def swap(scene: Scene, spec: CaptionSpec) -> TaskCaptions | None:
    """Exchange the two objects' textures, or their places if captions state a relation; None for equal textures."""
    one, other = spec.order(scene)
    if spec.template.relation:
        return write_captions(scene, spec, (one, other), (other._replace(slot=one.slot), one._replace(slot=other.slot)))
    return exchange_values(scene, spec, "texture")


def exchange_values(scene: Scene, spec: CaptionSpec, field: str) -> TaskCaptions | None:
    """Exchange the textures or sizes of two objects: "a small red cat and a big white caribou" against "a big red cat
    and a small white caribou"; None if they are equal."""
    one, other = spec.order(scene)
    values = getattr(one, field), getattr(other, field)
    if values[0] == values[1]:
        return None
    false = one._replace(**{field: values[1]}), other._replace(**{field: values[0]})
    return write_captions(scene, spec, (one, other), false)


def name_one(scene: Scene, spec: CaptionSpec) -> TaskCaptions:
    """For a red cat and a white caribou: "a red cat" against "a white cat"."""
    obj, other = mention_order(scene, spec.seed)
    return write_captions(scene, spec, (obj,), (obj._replace(texture=other.texture),))


def replace_value(scene: Scene, spec: CaptionSpec, field: str) -> TaskCaptions | None:
    """Replace a texture or an animal by one that the scene doesn't show, or a size by any other. None if there is none.

    In a multi-object scene, of an exchanged object, and below full coverage by one of the same class.
    """
    if spec.multi_object:
        random, objects = generator(spec.seed, "replaced", field, scene.key), spec.tested_objects(scene)
        slot = scene.objects[exchanged_objects(scene)[random.integers(2)]].slot
        chosen = next(i for i, obj in enumerate(objects) if obj.slot == slot)
        classes, present = getattr(spec.coverage, f"{field}s"), scene.objects
        kind = classes[getattr(objects[chosen], field)] if spec.recipe["coverage"] < 1 else None
        names = [name for name in classes if kind in (None, classes[name])]
    else:
        random, objects = generator(spec.seed, "replace", field, scene.key), spec.order(scene)
        chosen = int(random.integers(len(objects)))
        names, present = spec.words.names(field), objects if field != "size" else [objects[chosen]]
    others = absent_names(present, field, names)
    if not others:
        return None
    new = objects[chosen]._replace(**{field: others[random.integers(len(others))]})
    return write_captions(scene, spec, objects, (*objects[:chosen], new, *objects[chosen + 1 :]))


def replace_relation(scene: Scene, spec: CaptionSpec) -> TaskCaptions:
    """State another of the split's relations."""
    names = [name for name in spec.recipe["relations"] if name != scene.relation]
    others = [predicate for name in names for predicate in RELATIONS[name].predicates]
    predicate = others[generator(spec.seed, "replace", "relation", scene.key).integers(len(others))]
    objects = spec.order(scene)
    return spec.caption(scene, objects), spec.caption(scene, objects, (predicate,))


def add_animal(scene: Scene, spec: CaptionSpec) -> TaskCaptions:
    """Add a third animal that the scene doesn't show, in any texture and size."""
    random, words = generator(spec.seed, "add", scene.key), spec.words
    absent = absent_names(scene.objects, "animal", words.animals)
    added = Object(absent[random.integers(len(absent))], words.textures[random.integers(len(words.textures))], "")
    added = added._replace(size=words.sizes[random.integers(len(words.sizes))]) if words.sizes else added
    return write_captions(scene, spec, spec.order(scene), (*spec.order(scene), added))


def add_attribute(scene: Scene, spec: CaptionSpec) -> TaskCaptions:
    """For a red cat and a white caribou: "a cat and a white caribou" against "a grass cat and a white caribou"."""
    random = generator(spec.seed, "add", "texture", scene.key)
    objects, absent = spec.order(scene), absent_names(scene.objects, "texture", spec.words.textures)
    bare, added = objects[random.integers(len(objects))], absent[random.integers(len(absent))]
    either = ([t._replace(texture=texture) if t == bare else t for t in objects] for texture in ("", added))
    return write_captions(scene, spec, *either)


def add_relation(scene: Scene, spec: CaptionSpec) -> TaskCaptions:
    """For a red cat above a white caribou: "a red cat" against "a red cat under a white caribou"."""
    objects = spec.order(scene)
    (predicate,) = chain([obj.slot for obj in objects], 1)
    return spec.caption(scene, objects[:1]), spec.caption(scene, objects, (converses()[predicate],))


def negate_object(scene: Scene, spec: CaptionSpec, pure: bool) -> TaskCaptions:
    """For a red cat and a white caribou: "a red cat and no grass pig" against "a red cat and no white caribou"; if
    `pure`: "no grass pig" against "no white caribou"."""
    obj, present = mention_order(scene, spec.seed)
    others = absent_objects(scene, spec.words)
    absent = others[generator(spec.seed, "negation", scene.key).integers(len(others))]
    content = content_of(scene, spec.seed, spec.template, () if pure else (obj,))
    return tuple(write_caption(content._replace(denied=(denied,)), spec.template) for denied in (absent, present))


def swap_with(scene: Scene, spec: CaptionSpec, pair_only: bool) -> TaskCaptions | None:
    """Exchange two textures in captions that mention all objects, or only these two. None if those of `swap` do so."""
    pair = {scene.objects[i].slot for i in exchanged_objects(scene)}
    objects = tuple(obj for obj in spec.order(scene) if obj.slot in pair or not pair_only)
    if len(objects) == len(spec.tested_objects(scene)):
        return None
    return write_captions(scene, spec, objects, swap_exchanged_textures(scene, objects))


def assignment(scene: Scene, spec: CaptionSpec, number: int) -> TaskCaptions | None:
    """Draw `number` objects and write a caption for each permutation of their textures, the true one first. None if
    `number` isn't the scene's, if train doesn't show all compositions, or if objects share a texture."""
    several = min(len(scene.objects), MOST_ASSIGNED, max(spec.most, LEAST))
    different = len({obj.texture for obj in scene.objects}) == len(scene.objects)
    if spec.recipe["coverage"] < 1 or not different or number != several:
        return None
    drawn = generator(spec.seed, "assigned", scene.key).permutation(len(scene.objects))[:number].tolist()
    slots = [scene.objects[i].slot for i in drawn]
    objects = [obj for obj in spec.order(scene) if obj.slot in slots]
    ways = permutations(obj.texture for obj in objects)
    textured = ([t._replace(texture=new) for t, new in zip(objects, way, strict=True)] for way in ways)
    return write_captions(scene, spec, *textured)


def exchange_in_pairs(scene: Scene, spec: CaptionSpec, number: int) -> TaskCaptions | None:
    """Exchange the textures of each pair of objects of the same classes, or don't, in every way: 2^number captions, the
    true one first. None if the caption's objects aren't this number of pairs."""
    pairs: dict[tuple[int, int], list[Object]] = {}
    objects = spec.tested_objects(scene)
    for obj in objects:
        pairs.setdefault(spec.coverage.classes_of(obj[:2]), []).append(obj)
    if len(pairs) != number or any(len(pair) != 2 for pair in pairs.values()):
        return None
    turned = {one.slot: other.texture for pair in pairs.values() for one, other in (pair, pair[::-1])}
    texts = []
    for ways in product((False, True), repeat=len(pairs)):
        slots = {obj.slot for pair, exchanged in zip(pairs.values(), ways, strict=True) if exchanged for obj in pair}
        texts.append([t._replace(texture=turned[t.slot]) if t.slot in slots else t for t in objects])
    return write_captions(scene, spec, *texts)


def illusion(scene: Scene, spec: CaptionSpec) -> TaskCaptions:
    """For a scene whose exchanged objects are a red cat and a white dog: "a red cat" against "a white cat". The scene
    shows something white and a cat, but no white cat."""
    pair = [scene.objects[i] for i in exchanged_objects(scene)]
    first = int(generator(spec.seed, "illusion", scene.key).integers(2))
    return write_captions(scene, spec, (pair[first],), (pair[first]._replace(texture=pair[1 - first].texture),))


def repeat_name(scene: Scene, spec: CaptionSpec, field: str, changed: str) -> TaskCaptions | None:
    """For a scene of a red cat, a grass cat and a white dog: "a red cat and a grass cat" against "a red cat and a white
    cat". Both captions name one animal (or, by `field`, one texture) twice, and all their words are true of the image.
    None if no two objects share it while a third has another, or if train doesn't show all compositions."""
    shown = {obj[:2] for obj in scene.objects}
    false = [
        (pair, tuple(new if obj == old else obj for obj in pair))
        for pair in combinations(spec.order(scene), 2)
        for old, other in product(pair, scene.objects)
        if getattr(pair[0], field) == getattr(pair[1], field)
        and (new := old._replace(**{changed: getattr(other, changed)}))[:2] not in shown
    ]
    if spec.recipe["coverage"] < 1 or not false:
        return None
    return write_captions(scene, spec, *false[generator(spec.seed, "repeated", field, scene.key).integers(len(false))])


def misstate_relation(scene: Scene, spec: CaptionSpec) -> TaskCaptions | None:
    """State a false relation: two objects of the caption's chain are exchanged, or a predicate is replaced by its
    converse. None if captions state no relation."""
    objects = spec.tested_objects(scene)
    false = list(false_chains(objects, chain([obj.slot for obj in objects], spec.template.relations)))
    if not false:
        return None
    drawn = false[generator(spec.seed, "order of things", scene.key).integers(len(false))]
    return spec.caption(scene, objects), spec.caption(scene, *drawn)


def false_chains(
    objects: tuple[Object, ...], predicates: tuple[str, ...]
) -> Iterator[tuple[tuple[Object, ...], tuple[str, ...]]]:
    """Yield the objects and predicates of false chains: two objects exchanged, or a predicate turned round."""
    for one, other in combinations(range(len(predicates) + 1) if predicates else (), 2):
        changed = list(objects)
        changed[one], changed[other] = changed[other], changed[one]
        if any(known_false(*link) for link in zip(changed, predicates, changed[1:], strict=False)):
            yield tuple(changed), predicates
    if len(predicates) > 1:  # with a single predicate, turning it is the same as exchanging its objects
        for i, name in enumerate(predicates):
            yield objects, (*predicates[:i], converses()[name], *predicates[i + 1 :])


def known_false(subject: Object, predicate: str, other: Object) -> bool:
    """Return whether a predicate is false of two objects in their slots; else it is true, or neither is certain."""
    name = next(name for name, its in RELATIONS.items() if predicate in its.predicates)
    first, second = (subject, other) if predicate == RELATIONS[name].predicates[0] else (other, subject)
    return truth(name, first.slot, second.slot) is False


def paraphrase(scene: Scene, spec: CaptionSpec) -> TaskCaptions | None:
    """Two true captions that say the same in two orders, against the swap in one of these orders. None if the template
    prescribes the order."""
    if spec.template.mention_order != "random":
        return None
    objects = spec.tested_objects(scene)
    false, turned = swap_exchanged_textures(scene, objects), generator(spec.seed, "paraphrase", scene.key).integers(2)
    wrong = spec.backwards(scene, false) if turned else spec.caption(scene, false)
    return spec.caption(scene, objects), spec.backwards(scene, objects), wrong


def absent_names(objects: Sequence[Object], field: str, names: Sequence[str]) -> list[str]:
    """Return those of `names` that are the `field` of no object."""
    return [name for name in names if name not in {getattr(obj, field) for obj in objects}]


def negates(spec: CaptionSpec) -> bool:
    """Whether captions of train negate: of its kinds a model that never saw "no" in training can't be tested on it."""
    return spec.recipe.get("negated", 0.0) > 0


def mentions_some(spec: CaptionSpec) -> bool:
    """Whether captions of train leave out objects: else one that does would be of a kind that training didn't have."""
    return spec.recipe.get("mentioned", 1.0) < 1


class Task(NamedTuple):
    """A task, and what it needs of a split whose kind has it."""

    write: Callable[[Scene, CaptionSpec], TaskCaptions | None]
    """Writes the captions of a scene; None for a scene to which the task doesn't apply, which isn't counted."""
    least: tuple[str, int] = ("animals", 0)
    """The names of a world that it needs, and how many: often one more than a scene of two shows."""
    suits: Callable[[CaptionSpec], bool] = lambda spec: True
    """Whether it applies to the captions of a split."""
    true_texts: int = 1
    """The number of true captions, which come first."""


TASKS: dict[str, Task] = {
    "swap": Task(swap),
    "swap size": Task(partial(exchange_values, field="size"), ("sizes", 2)),
    "one animal": Task(name_one),
    "swap all": Task(partial(swap_with, pair_only=False)),
    "two mentioned": Task(partial(swap_with, pair_only=True)),
    **{f"assignment of {k}": Task(partial(assignment, number=k)) for k in range(LEAST, MOST_ASSIGNED + 1)},
    **{f"{EXCHANGES} {k}": Task(partial(exchange_in_pairs, number=k)) for k in range(1, MOST // 2 + 1)},
    "illusion": Task(illusion),
    "repeated animal": Task(partial(repeat_name, field="animal", changed="texture")),
    "repeated texture": Task(partial(repeat_name, field="texture", changed="animal")),
    "order": Task(misstate_relation),
    "paraphrase": Task(paraphrase, true_texts=2),
    "replace texture": Task(partial(replace_value, field="texture"), ("textures", 3)),
    "replace animal": Task(partial(replace_value, field="animal"), ("animals", 3)),
    "replace size": Task(partial(replace_value, field="size"), ("sizes", 2)),
    "replace relation": Task(replace_relation, suits=lambda spec: len(spec.recipe.get("relations", ())) > 1),
    "add animal": Task(add_animal, ("animals", 3)),
    "add attribute": Task(add_attribute, ("textures", 3)),
    "add relation": Task(add_relation, suits=mentions_some),
    "negation": Task(partial(negate_object, pure=False), suits=negates),
    "pure negation": Task(partial(negate_object, pure=True), suits=negates),
}
ONLY_OF_SEVERAL = ("swap all", "two mentioned", "assignment", EXCHANGES, "illusion", "repeated", "order", "paraphrase")
PAIR_TASKS = tuple(name for name in TASKS if not name.startswith(ONLY_OF_SEVERAL))
"""Tasks of splits of pairs, in the order of reports."""
HALF_TRUTHS = tuple(name for name in TASKS if name.startswith("add "))


def tasks_named(*names: str) -> dict[str, Task]:
    """The tasks of these names, in the table's order."""
    return {name: task for name, task in TASKS.items() if name in names}


def applies(task: Task, spec: CaptionSpec) -> bool:
    """Return whether a task applies to a split of one of its kinds: to its names and its captions."""
    names, least = task.least
    return len(getattr(spec.words, names)) >= least and task.suits(spec)


def choices(task: str, scenes: Sequence[Scene], spec: CaptionSpec) -> list[TaskCaptions | None]:
    """The captions of a task for every scene; None for a scene to which it doesn't apply."""
    return [TASKS[task].write(scene, spec) for scene in scenes]
