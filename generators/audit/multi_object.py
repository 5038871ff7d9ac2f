"""Checks of multi-object splits: which compositions train and tests show, and that tests have the objects that their
names say.

Compositions are combinations of animal and texture. Which of them train shows is read from train itself.
"""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from menagerie.envs.scene import Scene
from menagerie.generators.audit.findings import Finding, compositions_in, compositions_of, every, none
from menagerie.generators.captions.hard_negatives.swaps import swap_exchanged
from menagerie.generators.rules.hold_out import HELD_OUT
from menagerie.generators.storage.split_file import Split


class Test(NamedTuple):
    """What the name of a test says."""

    kind: str  # seen, unseen, search_feature, search_conjunction, triplets
    number: int

    @property
    def objects(self) -> int:
        return 4 if self.kind == "triplets" else self.number + self.kind.startswith("search")


def read_name(name: str) -> Test | None:
    """The kind and number in a test's name; None for train, validation and tests of rules."""
    kind, _, number = name.rpartition("_")
    return Test(kind, int(number)) if number.isdigit() else None


def check_numbers(split: Split) -> Iterator[Finding]:
    """Check that scenes of a test have its number of objects, and that the objects of a scene share no animal and no
    texture, or as many as their test says."""
    for name, records in split.subsets.items():
        test, claim = read_name(name), f"objects of {name} share as many animals and textures as they should"
        yield every(claim, records.scenes, lambda scene, test=test: shares_as_said(test, scene))
        if test:
            claim = f"every scene of {name} has {test.objects} objects"
            yield every(claim, records.scenes, lambda scene, test=test: len(scene.objects) == test.objects)


def shares_as_said(test: Test | None, scene: Scene) -> bool:
    """Whether the objects of a scene share what its test says: no animal and no texture, or as many as in a conjunction
    search or in triplets."""
    compositions = [obj[:2] for obj in scene.objects]
    animals, textures = (Counter(names) for names in zip(*compositions, strict=True))
    most = animals.most_common(1)[0][1], textures.most_common(1)[0][1]
    if test is not None and test.kind == "triplets":
        shared = sum((animals[animal] - 1) * (textures[texture] - 1) for animal, texture in compositions)
        return shared == test.number and len(set(compositions)) == len(compositions)
    if test is None or test.kind != "search_conjunction":
        return most == (1, 1)
    # k - 1 distractors share the target's animal or texture, half of them each, and nothing with one another.
    sharing = most[0] - 1, most[1] - 1
    groups = sum(n > 1 for n in animals.values()), sum(n > 1 for n in textures.values())
    return sum(sharing) == test.number - 1 and abs(sharing[0] - sharing[1]) <= 1 and max(groups) <= 1


def check_apart(split: Split) -> Iterator[Finding]:
    """Check that no scene of validation or a test is the swap of another one there, and that validation has no scene of
    a test, nor its swap."""
    tested: set[Scene] = set()
    for name, records in split.subsets.items():
        if name != "train":
            swaps = set(map(swap_exchanged, records.scenes))
            yield none(f"no scene of {name} is the swap of another", (s.key for s in records.scenes if s in swaps))
            tested |= {*records.scenes, *swaps} if read_name(name) else set()
    validation = split.subsets["validation"].scenes
    yield every("validation has no scene of a test", validation, lambda scene: scene not in tested)


def check_coverage(split: Split) -> Iterator[Finding]:
    """Check that, for each scene of validation and of tests other than those of rules, train shows all compositions of
    the scene and of its swap; in tests of unseen compositions, all but the four that the swap exchanges. Check that no
    negative of train has a composition that train doesn't show."""
    shown, train = compositions_in(split, "train"), split.subsets["train"]
    for name, records in split.subsets.items():
        if name != "train" and not name.startswith(HELD_OUT):
            unseen = name.startswith("unseen")
            what = (
                "none of the exchanged compositions, and all others"
                if unseen
                else "all compositions, exchanged ones too,"
            )
            claim = f"train shows {what} of every scene of {name}"
            yield every(claim, records.scenes, lambda scene, unseen=unseen: is_known(scene, shown, unseen))
    swaps = (swap_exchanged(s) for s, text in zip(train.scenes, train.negatives, strict=True) if text)
    yield every(
        "negatives of train have compositions that train shows", swaps, lambda swap: compositions_of(swap) <= shown
    )


def is_known(scene: Scene, shown: set[tuple[str, str]], unseen: bool) -> bool:
    """Whether the swap of a scene changes two compositions into two others, and train shows these four and all other
    compositions of the scene; with `unseen`, whether train shows none of the four, and all others."""
    before, after = compositions_of(scene), compositions_of(swap_exchanged(scene))
    exchanged, others = before ^ after, before & after
    return len(exchanged) == 4 and others <= shown and (not exchanged & shown if unseen else exchanged <= shown)
