"""What the audit asks of attribute-binding splits: pairs and their assignments of textures."""

from collections.abc import Iterator

from envs.scene import Scene
from generators.audit_findings import Finding, first, held_out, nearest
from generators.split_file import Records, Split


def animal_pair(scene: Scene) -> frozenset[str] | None:
    """The unordered pair of animals, or None for a lone animal."""
    return frozenset(thing.animal for thing in scene.things) if len(scene.things) == 2 else None


def pairs_of(records: Records) -> set[frozenset[str]]:
    """The distinct animal pairs of a subset."""
    return {pair for scene in records.scenes if (pair := animal_pair(scene))}


def check_pairs(split: Split) -> Iterator[Finding]:
    """Pairs that are held out as pairs never meet in train, nor in one another's subset."""
    seen = pairs_of(split.subsets["train"])
    held = {name: pairs_of(split.subsets[name]) for name in ("unseen_pairs", "validation")}
    for name, pairs in held.items():
        shared = sorted(map(sorted, pairs & seen))
        yield Finding(f"no animal pair of {name} is in train", not shared, f"{shared[:1] or f'{len(pairs)} pairs'}")
    shared = sorted(map(sorted, held["unseen_pairs"] & held["validation"]))
    yield Finding("unseen_pairs and validation share no animal pair", not shared, f"{shared[:1] or ''}")


def textured(scene: Scene) -> frozenset[tuple[str, str]]:
    """The (animal, texture) combinations of a scene, wherever they stand."""
    return frozenset((thing.animal, thing.texture) for thing in scene.things)


def check_bindings(split: Split) -> Iterator[Finding]:
    """Test bindings of training pairs are not in train; those of `train_pairs` are."""
    train = {textured(scene) for scene in split.subsets["train"].scenes}
    for name in ("seen_pairs", "different_bag"):
        holds, detail = first(scene.key for scene in split.subsets[name].scenes if textured(scene) in train)
        yield Finding(f"no textured pair of {name} is in train", holds, detail)
    holds, detail = first(scene.key for scene in split.subsets["train_pairs"].scenes if textured(scene) not in train)
    yield Finding("every textured pair of train_pairs is in train", holds, detail)


def check_fractions(split: Split) -> Iterator[Finding]:
    """The realised fractions are the nearest to the asked ones; textures are as they should be."""
    assignments: dict[frozenset[str], set] = {}
    for scene in split.subsets["train"].scenes:
        if pair := animal_pair(scene):
            assignments.setdefault(pair, set()).add(textured(scene))
    n_pairs, held = held_out(split)
    swapped = [pair for pair, found in assignments.items() if len(found) == 2]
    yield nearest("training pairs", len(assignments), split.recipe["pairs"], n_pairs - held)
    yield nearest("pairs with hard negatives in train", len(swapped), split.recipe["hard_negatives"], len(assignments))
    odd = [sorted(pair) for pair, found in assignments.items() if not sound_assignment(found)]
    claim = "each training pair has one assignment of two different textures, or that and its swap"
    yield Finding(claim, not odd, f"first: {odd[0]}" if odd else "")


def sound_assignment(found: set[frozenset[tuple[str, str]]]) -> bool:
    """Whether the textured pairs found of one animal pair are one assignment, or it and its swap."""
    one, *others = found
    different = len({texture for _, texture in one}) == 2
    (a, texture_a), (b, texture_b) = one
    return different and others in ([], [frozenset({(a, texture_b), (b, texture_a)})])


CHECKS = (check_pairs, check_bindings, check_fractions)
