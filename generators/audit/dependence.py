"""What the audit asks of splits of steered dependence: which textures train shows on which animal, and how often."""

from collections.abc import Iterator

from generators.audit.binding import pairs_of
from generators.audit.findings import Finding, first, nearest, trainable
from generators.storage.split_file import Records, Split

# Quotas are whole numbers: so far may the realised value be from the asked one.
TOLERANCE = 0.01


def painted(records: Records) -> set[tuple[str, str]]:
    """All (animal, texture) of a subset."""
    return {(thing.animal, thing.texture) for scene in records.scenes for thing in scene.things}


def check_painted(split: Split) -> Iterator[Finding]:
    """Train shows every animal in what `seen_textures` tests and never in what `unseen_textures` does."""
    train = painted(split.subsets["train"])
    for name in ("unseen_textures", "validation"):
        leaked = (f"{texture} {animal}" for animal, texture in sorted(painted(split.subsets[name]) & train))
        yield Finding(f"no animal of {name} is in train in that texture", *first(leaked))
    strange = (f"{texture} {animal}" for animal, texture in sorted(painted(split.subsets["seen_textures"]) - train))
    yield Finding("every animal of seen_textures is in train in that texture", *first(strange))


def check_dependence_pairs(split: Split) -> Iterator[Finding]:
    """Validation's pairs are apart; the realised fraction of training pairs is the nearest to the asked one."""
    train, validation = pairs_of(split.subsets["train"]), pairs_of(split.subsets["validation"])
    tests = pairs_of(split.subsets["seen_textures"]) | pairs_of(split.subsets["unseen_textures"])
    shared = sorted(map(sorted, validation & (train | tests)))
    yield Finding("no animal pair of validation is in train or a test", not shared, f"{shared[:1] or ''}")
    yield nearest("training pairs", len(train), split.recipe["pairs"], trainable(split, 0))


def check_lone(split: Split) -> Iterator[Finding]:
    """Every animal is in train alone, on every background and in every size."""
    v = split.vocabulary
    alone = (scene for scene in split.subsets["train"].scenes if len(scene.things) == 1)
    lone = {(scene.background, scene.things[0].animal, scene.things[0].size) for scene in alone}
    missing = len(v.backgrounds) * len(v.animals) * max(len(v.sizes), 1) - len(lone)
    yield Finding("every animal is in train alone on every background", not missing, f"{missing} missing")


def check_information(split: Split) -> Iterator[Finding]:
    """The normalised mutual information of texture and animal, over all things of train, is as asked."""
    from sklearn.metrics import normalized_mutual_info_score

    things = [thing for scene in split.subsets["train"].scenes for thing in scene.things]
    animals, textures = zip(*((thing.animal, thing.texture) for thing in things), strict=True)
    found = normalized_mutual_info_score(animals, textures, average_method="arithmetic")
    asked = split.recipe["information"]
    detail = f"{found:.4f}, asked {asked:.4f} (arithmetic mean of both entropies)"
    yield Finding("information of texture and animal: as asked", abs(found - asked) <= TOLERANCE, detail)


CHECKS = (check_painted, check_dependence_pairs, check_lone, check_information)
