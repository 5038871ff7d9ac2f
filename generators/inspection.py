"""A split file in numbers: its recipe, its subsets, and the part of its world that train shows."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import comb

from menagerie.envs.core.errors import choose
from menagerie.envs.core.identity import changed_fields
from menagerie.envs.scene import Scene
from menagerie.generators.splits.recipe import ENTROPIES
from menagerie.generators.storage.records import Records
from menagerie.generators.storage.split_file import LEFT_OUT, Split


def describe_split(split: Split) -> dict[str, str]:
    """The split's properties, and the part of its world that train shows: name -> short text. Raises if it has no
    train."""
    choose(f"subset of {split.path}", "train", split.subsets)
    recipe, v, train = split.recipe, split.vocabulary, split.subsets["train"].scenes
    words = f"{len(v.animals)} animals, {len(v.textures)} textures, {len(v.backgrounds)} backgrounds"
    words += f", {len(v.sizes)} sizes" if v.sizes else ""
    changed = [
        f"{name} {' '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in changed_fields(split.made_by).items()
        if name not in ("world", "seed", "hold_out")
    ]
    facts = {
        "kind": recipe["kind"],
        "world": f"{recipe['world']}: {words}",
        "recipe": ", ".join(changed) or "all fields have their defaults",
        "seed": str(recipe["seed"]),
        "resolution": f"{split.resolution} × {split.resolution} pixels",
        "pictures": split.identity,
        "hold-out rules": "; ".join(recipe["hold_out"]) or "none",
        **pairs_in_train(split),
        "textures in train": value_shares(train, v.textures, "texture"),
    }
    if v.sizes:
        facts["sizes in train"] = value_shares(train, v.sizes, "size")
    if left := recipe.get(LEFT_OUT):
        numbers = (f"{len(scenes)} of {name}" for name, scenes in sorted(left.items()))
        facts["left out"] = f"too much hidden: {', '.join(numbers)}"
    if bits := recipe.get(ENTROPIES):
        said = f"{bits['which']:.4g} bits say which animals and textures"
        facts["entropies"] = f"{said}, {bits['binding']:g} bit which has which"
    return facts


def pairs_in_train(split: Split) -> dict[str, str]:
    """How many animal pairs train shows, and how many of them with their swap if the kind counts these, as texts under
    a label: overall or, if captions state relations, for each."""
    train, kind, found = split.subsets["train"].scenes, split.kind, {}
    known, every = set(train), comb(len(split.vocabulary.animals), 2)
    both = [s for s in train if len(s.objects) == 2 and s != (other := kind.swap(s)) and other in known]
    for relation in split.recipe.get("relations", (None,)):
        swapped = f", {len(animal_pairs(both, relation))} of them {kind.swapped_pairs}" if kind.swapped_pairs else ""
        text = f"{len(animal_pairs(train, relation))} of the world's {every} animal pairs are in train{swapped}"
        found[f"coverage, {relation}" if relation else "coverage"] = text
    return found


def animal_pairs(scenes: Iterable[Scene], relation: str | None) -> set[frozenset[str]]:
    """The pairs of animals that scenes in a relation show; those of all scenes if it is None."""
    animals = (frozenset(obj.animal for obj in s.objects) for s in scenes if relation in (None, s.relation))
    return {pair for pair in animals if len(pair) == 2}


def value_shares(scenes: Sequence[Scene], names: Sequence[str], attribute: str) -> str:
    """The share of objects with each texture or size (`attribute`), as text."""
    counts = Counter(getattr(obj, attribute) for scene in scenes for obj in scene.objects)
    return ", ".join(f"{name} {counts[name] / max(counts.total(), 1):.1%}" for name in names)


def subset_rows(split: Split) -> list[dict[str, str]]:
    """A row of texts by column for every subset, train first."""
    names = sorted(split.subsets, key=lambda name: (name != "train", name))
    return [subset_row(name, split.subsets[name]) for name in names]


def subset_row(name: str, records: Records) -> dict[str, str]:
    scenes = records.scenes
    views = {scene.view for scene in scenes}
    first, last = min(views, default="–"), max(views, default="–")
    singles = sum(len(scene.objects) == 1 for scene in scenes)
    return {
        "subset": name,
        "scenes": str(len(scenes)),
        "distinct images": str(len(set(scenes))),
        "distinct captions": str(len(set(records.captions))),
        "animal pairs": str(len(animal_pairs(scenes, None))),
        "with hard negative": str(sum(map(bool, records.negatives))),
        "single animals": f"{singles / len(scenes):.0%}" if scenes else "–",
        "views": f"{first}" if first == last else f"{first}–{last}",
    }
