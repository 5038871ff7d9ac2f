"""Checks of probe sets: nothing is trained on, quartets are whole, pairs keep them together, texts tell nothing.

A quartet is four scenes of a view: a scene, its swap (two textures exchanged), its mirror (these two objects in each
other's places) and the mirror's swap. Which two objects a swap changes is read from the swap; the mirror follows.
"""

from collections import Counter
from collections.abc import Hashable, Iterator

from menagerie.envs.scene import Scene
from menagerie.envs.slots import SLOTS
from menagerie.generators.audit.findings import Finding, compositions_of, every, none
from menagerie.generators.captions.hard_negatives.swaps import SWAPS, with_exchanged
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.splits.recipe import ENTROPIES
from menagerie.generators.storage.split_file import Records, Split

LEAST_VIEW = 20_000  # a split for training has at most 10 000 views, and as many test views after them
BITS = 1e-9  # by which the sum of an entropy may be off
FIRST = "left_first"


def tested(split: Split) -> dict[str, Records]:
    return {name: records for name, records in split.subsets.items() if name not in ("train", "validation")}


def exchanged_in(scene: Scene) -> list[int]:
    """The indices of the two objects whose textures a swap exchanges."""
    swapped = SWAPS["probe"](scene).objects
    return [i for i, obj in enumerate(scene.objects) if obj not in swapped]


def mirror(scene: Scene) -> Scene:
    return with_exchanged(scene, exchanged_in(scene), "slot")


def bag(scene: Scene) -> Hashable:
    """The animals and the textures of a scene, without saying which texture belongs to which animal."""
    return frozenset(obj.animal for obj in scene.objects), frozenset(obj.texture for obj in scene.objects)


def check_probe_trains_nothing(split: Split) -> Iterator[Finding]:
    """Check that train and validation are empty, and that no split for training can have the views."""
    full = (f"{len(split.subsets[name])} scenes in {name}" for name in ("train", "validation") if split.subsets[name])
    yield none("a probe set has nothing in train and validation", full)
    start = split.recipe["first_view"]
    yield Finding("no training can use the views", start >= LEAST_VIEW, f"views from {start}, training's are below")


def check_probe_quartets(split: Split) -> Iterator[Finding]:
    """Check that for each scene the test also has its swap, its mirror and the mirror's swap: in the same view, on the
    same background, with the same sizes and facings."""
    for name, records in tested(split).items():
        claim, known = f"every scene of {name} has its swap and its mirror on its background", set(records.scenes)
        yield every(claim, records.scenes, lambda scene, known=known: {SWAPS["probe"](scene), mirror(scene)} <= known)


def check_probe_pairs(split: Split) -> Iterator[Finding]:
    """Check that records have one group for each pair of animals that swap and mirror exchange, so that no quartet is
    torn."""
    for name, records in tested(split).items():
        pairs = [frozenset(scene.objects[i].animal for i in exchanged_in(scene)) for scene in records.scenes]
        numbers = [] if records.pairs is None else list(records.pairs)
        both = set(zip(pairs, numbers, strict=False))
        whole = len(numbers) == len(pairs) and len(both) == len(set(pairs)) == len(set(numbers))
        detail = f"{len(set(numbers))} numbers of {len(set(pairs))} pairs"
        yield Finding(f"pairs of {name} are pairs of animals, and keep quartets together", whole, detail)


def check_probe_entropies(split: Split) -> Iterator[Finding]:
    """Check that the recorded entropies are those of the scenes and that the textures' assignment is exactly 1 bit."""
    from scipy.stats import entropy  # loads slowly

    recorded = split.recipe[ENTROPIES]
    for name, records in tested(split).items():
        counts = (Counter(map(bag, records.scenes)), Counter((bag(s), compositions_of(s)) for s in records.scenes))
        which, both = (float(entropy(list(number.values()), base=2)) for number in counts)
        found = {"which": which, "binding": both - which}
        detail = ", ".join(f"{what} {bits:.4f} bits, recorded {recorded[what]:.4f}" for what, bits in found.items())
        same = all(abs(recorded[what] - bits) < BITS for what, bits in found.items())
        yield Finding(f"entropies are those of {name}", same and recorded["binding"] == 1.0, detail)


def check_probe_mentions(split: Split) -> Iterator[Finding]:
    """Check that the tests have the same scenes, and captions mention their objects from left to right in one, from
    right to left in the other. Check that in each view every text is as often true as false, so that texts alone tell
    nothing."""
    differ = (name for name, records in tested(split).items() if records.scenes != split.subsets[FIRST].scenes)
    yield none("both tests have the same scenes in the same order", differ)
    for name, r in tested(split).items():
        rows = zip(r.scenes, r.graphs, strict=True)
        strange = (scene.key for scene, graph in rows if not follows(scene, graph.nodes, name == FIRST))
        yield none(f"captions of {name} mention objects in its order", strange)
        views = [scene.view for scene in r.scenes]
        true, false = (Counter(zip(views, texts, strict=True)) for texts in (r.captions, r.negatives))
        odd = (f"view {view}, {text!r}" for (view, text), _ in sorted(true.items() ^ false.items()))
        yield none(f"every text of {name} is as often true as false", odd)


def follows(scene: Scene, nodes: tuple[str, ...], left_first: bool) -> bool:
    """Whether the objects of a graph go from left to right in the scene (`left_first`), or from right to left."""
    at = {phrase(obj): SLOTS[obj.slot].column for obj in scene.objects}
    columns = [at[node] for node in nodes if node in at]
    return len(columns) == len(scene.objects) and columns == sorted(columns, reverse=not left_first)
