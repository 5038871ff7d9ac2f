"""Tests on scenes of several things: one or more true captions against one or more false ones.

The task `swap`, which the split file holds, exchanges the textures of two things. `assignment` permutes the textures of
up to four things in every other way: a scorer that knows the things, but not which texture is whose, has exactly the
chance level. `illusion` tests a phrase whose words are true of two different things, `order` a relation, `paraphrase`
two captions that say the same. Train shows what a foil names as often as what its caption names; otherwise the foil
would give itself away. To add a task, add an entry to `CROWD_TASKS`: a function that returns None for a scene to which
it doesn't apply.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, permutations
from math import comb, factorial
from typing import Any, NamedTuple

from menagerie.envs.core.identity import generator
from menagerie.envs.layouts import holds
from menagerie.envs.scene import Scene, Thing
from menagerie.generators.captions.crowds import (
    LEAST,
    Telling,
    backwards,
    caption_of,
    chain,
    in_order,
    swapped,
    telling_of,
    tested_things,
)
from menagerie.generators.captions.hard_negatives.swaps import exchanged
from menagerie.generators.captions.relations import CONVERSES, PREDICATES
from menagerie.generators.captions.templates import Caption
from menagerie.generators.cells import Cells, cells_of
from menagerie.generators.vocabulary import Vocabulary

ASSIGNMENT = "assignment of "  # starts the names of tasks, which end with the number of things
MOST_ASSIGNED = 4  # things whose textures are assigned in every way


class Question(NamedTuple):
    """Texts about one scene; the first `true` of them are true, all others false."""

    texts: tuple[Caption, ...]
    true: int = 1

    @property
    def chance(self) -> float:
        """The probability that all true texts score above all others, if every order of the texts is equally likely."""
        return 1 / comb(len(self.texts), self.true)


@dataclass(frozen=True)
class CrowdContext:
    """What the tasks need of a crowd split."""

    telling: Telling
    cells: Cells
    coverage: float

    @classmethod
    def of(cls, recipe: Mapping[str, Any], words: Vocabulary) -> "CrowdContext":
        """Make the context from a split's recipe and its vocabulary."""
        return cls(telling_of(recipe), cells_of(recipe, words.animals, words.textures), recipe["coverage"])


def chance_of(task: str) -> float:
    """The chance level of a task of crowds."""
    if task.startswith(ASSIGNMENT):
        return 1 / factorial(int(task.removeprefix(ASSIGNMENT)))
    return 1 / 3 if task == "paraphrase" else 1 / 2


def assigned(things: int, most: int) -> int:
    """The number of things whose textures `assignment` permutes."""
    return min(things, MOST_ASSIGNED, max(most, LEAST))


def swap_all(scene: Scene, context: CrowdContext) -> Question | None:
    """Ask `swap` with captions that mention all things. Return None if the captions of `swap` do so anyway."""
    things = in_order(scene, context.telling)
    if len(things) == len(tested_things(scene, context.telling)):
        return None
    return Question(tuple(caption_of(scene, told, context.telling) for told in (things, swapped(scene, things))))


def two_mentioned(scene: Scene, context: CrowdContext) -> Question | None:
    """Ask `swap` with captions that mention only the two exchanged things. Return None if the captions of `swap` do so
    anyway."""
    things = tested_things(scene, context.telling)
    if len(things) == LEAST:
        return None
    pair = {scene.things[i].slot for i in exchanged(scene)}
    both = tuple(thing for thing in things if thing.slot in pair)
    return Question(tuple(caption_of(scene, told, context.telling) for told in (both, swapped(scene, both))))


def assignment(scene: Scene, context: CrowdContext, number: int) -> Question | None:
    """Draw `number` things and ask with a caption for each permutation of their textures, the true one first. None if
    `number` isn't the scene's (`assigned`), if train doesn't show all cells, or if things share a texture."""
    telling = context.telling
    alone = len({thing.texture for thing in scene.things}) == len(scene.things)
    if context.coverage < 1 or not alone or number != assigned(len(scene.things), telling.most):
        return None
    drawn = generator(telling.seed, "assigned", scene.key).permutation(len(scene.things))[:number].tolist()
    slots = [scene.things[i].slot for i in sorted(drawn)]
    things = [thing for thing in in_order(scene, telling) if thing.slot in slots]
    dealt = permutations(thing.texture for thing in things)
    ways = [tuple(t._replace(texture=new) for t, new in zip(things, textures, strict=True)) for textures in dealt]
    return Question(tuple(caption_of(scene, told, telling) for told in ways))


def illusion(scene: Scene, context: CrowdContext) -> Question:
    """For a scene whose exchanged things are a red cat and a white dog: "a red cat" against "a white cat". The scene
    shows something white and a cat, but no white cat."""
    pair = [scene.things[i] for i in exchanged(scene)]
    first = int(generator(context.telling.seed, "illusion", scene.key).integers(2))
    one, other = pair[first], pair[1 - first]
    either = (one, one._replace(texture=other.texture))
    return Question(tuple(caption_of(scene, (thing,), context.telling) for thing in either))


def order(scene: Scene, context: CrowdContext) -> Question | None:
    """Ask for the caption against one that states a false relation: two things of its chain are exchanged, or a
    predicate is replaced by its converse. Return None if captions state no relation."""
    telling = context.telling
    things = tested_things(scene, telling)
    false = list(reordered(things, chain(things, telling.relations)))
    if not false:
        return None
    drawn = false[generator(telling.seed, "order of things", scene.key).integers(len(false))]
    return Question((caption_of(scene, things, telling), caption_of(scene, drawn[0], telling, drawn[1])))


Stated = tuple[tuple[Thing, ...], tuple[str, ...]]  # things, and the predicates of their chain


def reordered(things: Sequence[Thing], predicates: Sequence[str]) -> Iterator[Stated]:
    """Yield the false chains with two things exchanged, or with one predicate replaced by its converse."""
    for one, other in combinations(range(len(predicates) + 1) if predicates else (), 2):
        changed = list(things)
        changed[one], changed[other] = changed[other], changed[one]
        if any(says_false(*link) for link in zip(changed, predicates, changed[1:], strict=False)):
            yield tuple(changed), tuple(predicates)
    if len(predicates) > 1:  # with a single predicate, turning it is the same as exchanging its things
        for i, name in enumerate(predicates):
            yield tuple(things), (*predicates[:i], CONVERSES[name], *predicates[i + 1 :])


def says_false(subject: Thing, predicate: str, other: Thing) -> bool:
    """Return whether a predicate is known to be false of two things in their slots (`layouts.holds`)."""
    name = next(name for name, both in PREDICATES.items() if predicate in both)
    first, second = (subject, other) if predicate == PREDICATES[name][0] else (other, subject)
    return holds(name, first.slot, second.slot) is False


def paraphrase(scene: Scene, context: CrowdContext) -> Question | None:
    """Ask for two true captions that say the same in two orders, against the swap in one of these orders. Return None
    if the template prescribes the order."""
    telling = context.telling
    if telling.template.mention_order != "random":
        return None
    things = tested_things(scene, telling)
    false, turned = swapped(scene, things), int(generator(telling.seed, "paraphrase", scene.key).integers(2))
    wrong = backwards(scene, false, telling) if turned else caption_of(scene, false, telling)
    return Question((caption_of(scene, things, telling), backwards(scene, things, telling), wrong), true=2)


def replaced(scene: Scene, context: CrowdContext, field: str) -> Question | None:
    """Ask for the caption against one in which an exchanged thing has another animal or texture, which the scene
    doesn't show and which below full coverage is of the same class. Return None if there is none."""
    telling, classes = context.telling, getattr(context.cells, f"{field}s")
    random = generator(telling.seed, "replaced", field, scene.key)
    thing = scene.things[exchanged(scene)[random.integers(2)]]
    shown = {getattr(other, field) for other in scene.things}
    kind = classes[getattr(thing, field)] if context.coverage < 1 else None
    names = [name for name, number in classes.items() if name not in shown and kind in (None, number)]
    if not names:
        return None
    new = thing._replace(**{field: names[random.integers(len(names))]})
    things = tested_things(scene, telling)
    false = tuple(new if other.slot == thing.slot else other for other in things)
    return Question((caption_of(scene, things, telling), caption_of(scene, false, telling)))


CROWD_TASKS: dict[str, Callable[[Scene, CrowdContext], Question | None]] = {
    "swap all": swap_all,
    "two mentioned": two_mentioned,
    **{f"{ASSIGNMENT}{k}": partial(assignment, number=k) for k in range(LEAST, MOST_ASSIGNED + 1)},
    "illusion": illusion,
    "order": order,
    "paraphrase": paraphrase,
    "replace texture": partial(replaced, field="texture"),
    "replace animal": partial(replaced, field="animal"),
}
