"""The columns of a subset of a split, made of its planned scenes."""

from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Shaped

from menagerie.envs.scene import Scene
from menagerie.generators.captions.contents import swapped_content
from menagerie.generators.captions.templates import Content
from menagerie.generators.splits.recipe import SplitRecipe, recorded_fields
from menagerie.generators.storage.false_captions import FalseCaptions
from menagerie.generators.storage.records import DENIED, NO_OBJECT, Records
from menagerie.generators.vocabulary import Vocabulary, none_in


def make_columns(
    subset: str, scenes: Sequence[Scene], recipe: SplitRecipe, vocabulary: Vocabulary
) -> tuple[dict[str, np.ndarray], int]:
    """Make the columns of a subset, and count its records. Rows of counterfactuals follow, except in train, where a
    swapped scene that isn't in train has no row, and a hard negative is left out if it reveals what is kept for tests
    (`false_captions`)."""
    row_of = {scene: row for row, scene in enumerate(scenes)}
    contents = [recipe.content(subset, scene) for scene in scenes]
    other, further = np.full(len(scenes), -1, np.int32), []
    for row, (scene, content) in enumerate(zip(scenes, contents, strict=True)):
        if len(scene.objects) == 1 and not content.negative:
            continue
        swapped = recipe.swap(scene)
        if swapped not in row_of and subset != "train":
            row_of[swapped] = len(scenes) + len(further)
            further.append((row, swapped_content(content, recipe.swap)._replace(scene=swapped)))
        other[row] = row_of.get(swapped, -1)
    rows = [*scenes, *(content.scene for _, content in further)]
    table = vocabulary.encode(rows) | encode_contents([*contents, *(content for _, content in further)], vocabulary)
    table["counterfactual"] = np.concatenate([other, np.array([row for row, _ in further], np.int32)])
    if subset == "train":
        train = Records(recorded_fields(recipe), vocabulary, table, len(scenes))
        allowed = FalseCaptions(train).allows
        for row in np.flatnonzero(table["negative"][: len(scenes)]).tolist():
            table["negative"][row] = allowed(recipe.swap(scenes[row]))
    if (pairs := recipe.exchanged_pairs(scenes)) is not None:
        table["pair"] = np.concatenate([pairs, np.full(len(further), -1)]).astype(np.int32)
    return table, len(scenes)


def encode_contents(contents: Iterable[Content], vocabulary: Vocabulary) -> dict[str, Shaped[np.ndarray, "n ..."]]:
    """The columns that say, beyond the scenes, what captions say: the phrasing, the mentioned objects in their order by
    their places in the scene, bits of the mentioned objects whose textures are stated, whether there is a hard
    negative, and, if any caption denies an object, which one."""
    contents = list(contents)
    most = max((len(content.scene.objects) for content in contents), default=1)
    mentioned = np.full((len(contents), most), NO_OBJECT, np.uint8)
    textured = np.zeros(len(contents), np.uint8)
    for row, content in enumerate(contents):
        slots = [obj.slot for obj in content.scene.objects]
        for place, obj in enumerate(content.objects):
            mentioned[row, place] = slots.index(obj.slot)
            textured[row] |= bool(obj.texture) << place
    table = {
        "phrasing": np.array([content.phrasing for content in contents], np.uint8),
        "mentioned": mentioned,
        "textured": textured,
        "negative": np.array([content.negative for content in contents], np.uint8),
    }
    if any(content.denied for content in contents):
        objects = [(content.denied or (None,))[0] for content in contents]
        known = [{name: i for i, name in enumerate(vocabulary.names(field))} for field in DENIED]
        empty = [none_in(vocabulary.animals)] * 3
        table["denied"] = np.array(
            [
                [at.get(getattr(obj, field), 0) for at, field in zip(known, DENIED, strict=True)] if obj else empty
                for obj in objects
            ],
            np.uint16 if max(empty) > 255 or len(vocabulary.textures) > 255 else np.uint8,
        )
    return table
