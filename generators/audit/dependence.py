"""Checks of dependence splits: which textures train shows on which animal, and how often."""

from collections.abc import Iterator

from menagerie.generators.audit.binding import pairs_of
from menagerie.generators.audit.findings import Finding, first, nearest, trainable
from menagerie.generators.storage.split_file import Records, Split

# Largest difference of realised and requested information: quotas are whole numbers.
TOLERANCE = 0.01


def painted(records: Records) -> set[tuple[str, str]]:
    """All (animal, texture) of a subset."""
    return {(thing.animal, thing.texture) for scene in records.scenes for thing in scene.things}


def check_painted(split: Split) -> Iterator[Finding]:
    """Train shows every animal in its textures of `seen_textures`, never in those of `unseen_textures`."""
    train = painted(split.subsets["train"])
    for name in ("unseen_textures", "validation"):
        leaked = (f"{texture} {animal}" for animal, texture in sorted(painted(split.subsets[name]) & train))
        yield Finding(f"no animal of {name} is in train in that texture", *first(leaked))
    strange = (f"{texture} {animal}" for animal, texture in sorted(painted(split.subsets["seen_textures"]) - train))
    yield Finding("every animal of seen_textures is in train in that texture", *first(strange))


def check_dependence_pairs(split: Split) -> Iterator[Finding]:
    """Validation has its own pairs; the realised fraction of training pairs is the nearest to the requested one."""
    train, validation = pairs_of(split.subsets["train"]), pairs_of(split.subsets["validation"])
    tests = pairs_of(split.subsets["seen_textures"]) | pairs_of(split.subsets["unseen_textures"])
    shared = sorted(map(sorted, validation & (train | tests)))
    yield Finding("no animal pair of validation is in train or a test", not shared, f"{shared[:1] or ''}")
    yield nearest("training pairs", len(train), split.recipe["pairs"], trainable(split, 0))


def check_information(split: Split) -> Iterator[Finding]:
    """The normalised mutual information of texture and animal, over all things of train, is the requested one."""
    from sklearn.metrics import normalized_mutual_info_score

    things = [thing for scene in split.subsets["train"].scenes for thing in scene.things]
    animals, textures = zip(*((thing.animal, thing.texture) for thing in things), strict=True)
    realised = normalized_mutual_info_score(animals, textures, average_method="arithmetic")
    requested = split.recipe["information"]
    detail = f"{realised:.4f}, requested {requested:.4f} (arithmetic mean of both entropies)"
    yield Finding("information of texture and animal: as requested", abs(realised - requested) <= TOLERANCE, detail)


CHECKS = (check_painted, check_dependence_pairs, check_information)
