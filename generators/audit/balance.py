"""Checks that answers depend on the picture alone: not on place, order of mention, texture, background or view.

In every scene of two different animals three signs are read, relative to the animal whose name is first in the alphabet
and to one texture:

- a: that animal, not the other thing, has that texture;
- p: that animal is in the first place (left, or above);
- m: the caption mentions that animal first.

Their products give the rest. ap: the texture is in the first place. pm: the thing in the first place is mentioned
first. am: the texture is mentioned first. For each product that a coin decides (see `statistics`), its sum over a
subset is a contrast, and so is its sum over each background, each view and each texture. In counting splits, contrasts
tell how often each number occurs, overall and by background, view or texture, and how often each place is taken. All
contrasts over all subsets form one test: by chance the strongest exceeds its bound in at most one of 2000 sound splits.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import prod, sqrt
from typing import NamedTuple

from menagerie.envs.scene import Scene
from menagerie.envs.slots import COUNTING
from menagerie.generators.audit.findings import Finding, rules_for
from menagerie.generators.audit.statistics import Contrast, bound, coin_of, is_open, signed
from menagerie.generators.audit.texts import mentioned_phrases
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.hard_negatives.swaps import exchanged
from menagerie.generators.storage.split_file import Records, Split

CONTRAST_RATE = 1 / 2000
"""Largest probability with which this finding fails by chance for a correct split. The finding of `cues` has the same,
so one of the two fails by chance for at most 1 in 1000 splits."""

# Product of signs -> the statement that is true when the product is 1.
SIGNS = {
    "a": "the first animal in the alphabet has {texture}",
    "p": "the first animal in the alphabet is in the first place",
    "m": "the first animal in the alphabet is mentioned first",
    "ap": "{texture} is in the first place",
    "am": "{texture} is mentioned first",
    "pm": "the first place is mentioned first",
    "apm": "{texture} is mentioned first if the first animal in the alphabet is in the first place, else last",
}


TOGETHER = "all tests"


class Turned(NamedTuple):
    """A scene, the value of a product of its signs, and its group: all scenes that share the random draw that decided
    this value."""

    scene: Scene
    sign: int
    group: Hashable

    @property
    def turned(self) -> "Turned":
        """The same scene and group with the opposite sign."""
        return self._replace(sign=-self.sign)


def check_balance(split: Split) -> Iterator[Finding]:
    """Check that place, order of mention, texture, background and view give no answer away."""
    contrasts = list(all_contrasts(split))
    strongest = max(contrasts, key=lambda contrast: contrast.strength, default=None)
    claim = "answers depend on no place, order of mention, texture, background or view"
    if strongest is None:
        yield Finding(claim, True, "no scene of two and no number to tell")
        return
    limit = bound(len(contrasts), CONTRAST_RATE)
    detail = f"{len(contrasts)} contrasts, the strongest {strongest.strength:.1f}, bound {limit:.1f}"
    detail += f": {strongest.text}"
    yield Finding(claim, strongest.strength <= limit, detail)


def all_contrasts(split: Split) -> Iterator[Contrast]:
    """The contrasts of all subsets. Train has at most those of the order of mention, because its scenes aren't drawn.

    Contrasts over all tests together find biases too weak to be found in each test.
    """
    if split.recipe["kind"] == "counting":
        tests = {name: records.scenes for name, records in split.subsets.items() if name != "train"}
        for name, scenes in (tests | {TOGETHER: [scene for records in tests.values() for scene in records]}).items():
            yield from number_contrasts(name, scenes)
        return
    together: dict[str, list[Turned]] = defaultdict(list)
    for name, records in split.subsets.items():
        for product, rows in products(split, name, records).items():
            yield from stratified(SIGNS[product], name, product, rows, split.vocabulary.textures)
            together[product] += rows if name != "train" else []
    for product, rows in together.items():
        yield from stratified(SIGNS[product], TOGETHER, product, rows, split.vocabulary.textures)


def strata(scenes: Sequence[Scene]) -> dict[str, list[int]]:
    """The indices of the scenes in each part of a subset: all, each background, each view."""
    parts: dict[str, list[int]] = {"": list(range(len(scenes)))}
    for name in ("background", "view"):
        values = [getattr(scene, name) for scene in scenes]
        parts |= {f", {name} {value}": [] for value in sorted(set(values))}
        for i, value in enumerate(values):
            parts[f", {name} {value}"].append(i)
    return parts


def signs_of(scene: Scene, graph: SceneGraph) -> dict[str, int]:
    """The signs of a scene of two different animals. "a" is left out if both textures are equal, "m" if the caption
    doesn't mention both animals.

    "a" is relative to the texture of the two that is first in the alphabet.
    """
    one, other = sorted(scene.things, key=lambda thing: thing.animal)
    signs = {"p": 1 if scene.things[0] == one else -1}
    if one.texture != other.texture:
        signs["a"] = 1 if one.texture < other.texture else -1
    mentions = dict(zip(scene.things, mentioned_phrases(graph, scene), strict=True))
    if all(mentions.values()):
        places = [graph.nodes.index(mentions[thing]) for thing in (one, other)]
        signs["m"] = 1 if places[0] < places[1] else -1
    return signs


def compared(kind: str, scene: Scene) -> Scene:
    """A scene as signs are read from it: of a crowd, only the two things whose textures a hard negative exchanges."""
    if kind != "crowd" or len(scene.things) < 2:
        return scene
    return replace(scene, things=tuple(scene.things[i] for i in exchanged(scene)))


def products(split: Split, name: str, records: Records) -> dict[str, list[Turned]]:
    """For each product of signs that a random draw (`Coin`) decides, its value in the scenes of two things for which
    hold-out rules leave the draw open."""
    kind, rules = split.recipe["kind"], rules_for(split, name)
    drawn = split.recipe.get("mention_order", "") in ("", "random")
    rows = [
        (scene, signs_of(scene, graph))
        for scene, graph in zip(map(partial(compared, kind), records.scenes), records.graphs, strict=True)
        if len({thing.animal for thing in scene.things}) == len(scene.things) == 2
    ]
    decided = [product for product in SIGNS if (drawn if "m" in product else name != "train")]
    coins = {product: coin_of(product, kind, name) for product in decided}
    open_rows = {coin: [is_open(coin, rules, scene) for scene, _ in rows] for coin in set(coins.values()) if coin}
    return {
        product: [
            Turned(scene, prod(signs[sign] for sign in product), (coin.group.__name__, coin.group(scene)))
            for (scene, signs), is_open in zip(rows, open_rows[coin], strict=True)
            if is_open and signs.keys() >= set(product)
        ]
        for product, coin in coins.items()
        if coin
    }


def stratified(
    what: str, name: str, product: str, rows: Sequence[Turned], textures: Sequence[str]
) -> Iterator[Contrast]:
    """Yield the contrast of a product over all rows and over each part of them; if the product has the sign "a", also
    those relative to each texture."""
    for part, inside in strata([row.scene for row in rows]).items():
        signs = ((rows[i].group, rows[i].sign) for i in inside)
        yield signed(what.format(texture="the first texture in the alphabet"), name + part, signs)
    if "a" not in product:
        return
    for texture in textures:
        # Relative to the scene's other texture the sign is reversed.
        shown = [(row, {thing.texture for thing in row.scene.things}) for row in rows]
        kept = [row if texture == min(both) else row.turned for row, both in shown if texture in both]
        yield from stratified(what.format(texture=texture), name, "", kept, ())


def number_contrasts(name: str, scenes: Sequence[Scene]) -> Iterator[Contrast]:
    """The contrasts of a counting subset. Each number should occur in a quarter of all scenes, and of each part's
    scenes; each place should hold a thing as often as the numbers imply."""
    parts = strata(scenes)
    for texture in sorted({scene.things[0].texture for scene in scenes}):
        parts[f", texture {texture}"] = [i for i, scene in enumerate(scenes) if scene.things[0].texture == texture]
    for part, inside in parts.items():
        chosen = [scenes[i] for i in inside]
        for number in range(1, len(COUNTING) + 1):
            yield share_of_number(number, name + part, chosen)
    for slot in COUNTING:
        yield share_of_slot(slot, name, scenes)


def share_of_number(number: int, subset: str, scenes: Sequence[Scene]) -> Contrast:
    """The contrast between a number's share and a quarter. Scenes that have animal, texture, background and view in
    common form a group.

    Each scene could have been drawn with any of four numbers. A group contributes 1 if it has this number, less a
    quarter for each of its scenes, so its contribution lies in an interval of width 1.
    """
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for scene in scenes:
        groups[scene.background, scene.view, *scene.things[0][:2]].append(len(scene.things))
    quarter = 1 / len(COUNTING)
    total = sum(numbers.count(number) - quarter * len(numbers) for numbers in groups.values())
    open_groups = sum(len(numbers) < len(COUNTING) for numbers in groups.values())
    holding = sum(len(scene.things) == number for scene in scenes)
    return Contrast(f"the number {number}", subset, holding, len(scenes), total, sqrt(open_groups) / 2)


def share_of_slot(slot: str, subset: str, scenes: Sequence[Scene]) -> Contrast:
    """The contrast between how often a place holds a thing and how often the numbers imply it."""
    holding = [any(thing.slot == slot for thing in scene.things) for scene in scenes]
    expected = sum(len(scene.things) / len(COUNTING) for scene in scenes)
    free = sum(len(scene.things) < len(COUNTING) for scene in scenes)
    return Contrast(f"something {slot}", subset, sum(holding), len(scenes), sum(holding) - expected, sqrt(free) / 2)
