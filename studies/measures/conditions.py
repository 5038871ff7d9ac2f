"""The share of a probe set's scenes that meet the conditions on an ideal CLIP, as a measure of finished runs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float, UInt8
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.relations import RELATIONS
from menagerie.envs.scene import Object, Scene
from menagerie.generators.benchmarks.benchmark import Benchmark, Item
from menagerie.generators.captions.templates import (
    Caption,
    Content,
    Template,
    phrasing_number,
    template_of,
    write_caption,
)
from menagerie.studies.embeddings.conditions import NEGATED, NEGATION, PARTS, by_embeddings, by_scores
from menagerie.studies.frame.measure import Row
from menagerie.studies.measures.bits import EMBEDDING, MEAN, read_layers, why_no_embeddings
from menagerie.studies.measures.on_probes import ProbeMeasure, probe_axes, unknown_words_reason

if TYPE_CHECKING:
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.models.scorer import Scorer
    from menagerie.models.towers.features import Features
    from menagerie.studies.embeddings.axes import ProbeAxes
    from menagerie.studies.embeddings.measured import Measured
    from menagerie.studies.runs.data import Material

LEFT, RIGHT = RELATIONS["left/right"].predicates
SEED = 0  # of the draw of absent animals
Named = dict[str, Caption]


@dataclass(frozen=True)
class Conditions(ProbeMeasure):
    """Rows of (by, condition, part, measure, value, chance, refused): by scores, and by embeddings if the scorer has
    one vector for each image and each text. Captions are worded as in the scorer's training; a condition is refused if
    its texts have words that no training text has."""

    version: ClassVar[int] = 2  # ties between embeddings

    def rows(self, scorer: "Scorer", material: "Material", seed: int) -> Iterator[Row]:
        data, _ = self.opened(scorer)
        axes, numbers = probe_axes(data)
        recipe = material.train.split.recipe
        texts = named_texts_of_all(data.records.scenes, template_of(recipe), recipe["seed"])
        unsaid = unaskable_conditions(texts, material.texts)
        names = list(dict.fromkeys(name for p in PARTS if p.condition not in unsaid for name in sorted(p.texts)))
        scores = {name: its[numbers] for name, its in scores_by_name(scorer, data, texts, names).items()}
        for found in by_scores(scores, axes, unsaid):
            yield condition_row("scores", *found)
        if not why_no_embeddings(scorer):
            yield from embedding_condition_rows(scorer, data, texts if NEGATION not in unsaid else [], axes, numbers)


def condition_row(by: str, condition: str, part: str, measure: str, its: "Measured") -> Row:
    place = {"by": by, "condition": condition, "part": part, "measure": measure}
    return place | {"value": its.value, "chance": its.chance, "refused": its.refused}


def named_texts_of_all(scenes: Sequence[Scene], template: Template, seed: int) -> list[Named]:
    """Return the texts of each scene, by their names in `menagerie.studies.embeddings.conditions.SAYS`."""
    animals = sorted({obj.animal for scene in scenes for obj in scene.objects})
    return [named_texts(scene, animals, template, seed) for scene in scenes]


def named_texts(scene: Scene, animals: Sequence[str], template: Template, seed: int) -> Named:
    """Return the named texts of a scene. Absent animals are the same for a scene, its swap and its mirror."""
    from menagerie.generators.splits.probe_scenes import objects_from_left, quartet

    number = phrasing_number(min(quartet(scene)) if len(template.phrasings) > 1 else scene, seed, template)

    def say(objects: tuple[Object, ...], *predicates: str, denied: tuple[Object, ...] = ()) -> Caption:
        return write_caption(Content(scene, objects, predicates, denied, number), template)

    one, other = objects_from_left(scene)
    new_one, new_other = absent_pair(one, other, animals)
    swapped = one._replace(texture=other.texture), other._replace(texture=one.texture)
    joint = (LEFT,) * template.relation
    return {
        "one": say((one,)),
        "other": say((other,)),
        "one absent": say((new_one,)),
        "other absent": say((new_other,)),
        "one wrong": say(swapped[:1]),
        "other wrong": say(swapped[1:]),
        "both": say((one, other), *joint),
        "both swapped": say(swapped, *joint),
        "placed": say((other, one), RIGHT),
        "turned": say((one, other), RIGHT),
        "one, not absent": say((one,), denied=(new_other,)),
        "one, not other": say((one,), denied=(other,)),
        "other, not absent": say((other,), denied=(new_one,)),
        "other, not one": say((other,), denied=(one,)),
        "no absent": say((), denied=(new_other,)),
        "no other": say((), denied=(other,)),
        "no absent one": say((), denied=(new_one,)),
        "no one": say((), denied=(one,)),
    }


def absent_pair(one: Object, other: Object, animals: Sequence[str]) -> tuple[Object, Object]:
    """Return the two objects with their animals replaced by two that the scene doesn't show."""
    left = [name for name in animals if name not in (one.animal, other.animal)]
    if len(left) < 2:
        raise UserError(
            f"conditions compare with two absent animals: a probe set needs 4 animals, and this one has {len(animals)}"
        )
    first, second = generator(SEED, "absent", *sorted((one.animal, other.animal))).permutation(len(left))[:2]
    new = dict(zip(sorted((one.animal, other.animal)), (left[first], left[second]), strict=True))
    return one._replace(animal=new[one.animal]), other._replace(animal=new[other.animal])


def unaskable_conditions(texts: Iterable[Named], known: Iterable[str]) -> dict[str, str]:
    """Return the conditions whose texts have words that no training text has, with the words as the reason."""
    every: dict[str, set[str]] = {part.condition: set() for part in PARTS}
    for its in texts:
        for part in PARTS:
            every[part.condition] |= {its[name].text for name in part.texts}
    found = {name: unknown_words_reason(captions, known) for name, captions in every.items()}
    return {name: reason for name, reason in found.items() if reason}


class ProbeScenes(Benchmark):
    """A benchmark of the scenes of a probe set, each with its texts."""

    def __init__(self, data: "SplitDataset", texts: Sequence[tuple[Caption, ...]]) -> None:
        self.data, self.name = data, data.name
        keys = (scene.key for scene in data.records.scenes)
        self.items = [Item(key, "", (k,), its) for k, (key, its) in enumerate(zip(keys, texts, strict=True))]

    def images(self, numbers: Sequence[int]) -> UInt8[Tensor, "n 3 h w"]:
        return self.data.images(numbers)


def scores_by_name(
    scorer: "Scorer", data: "SplitDataset", texts: Sequence[Named], names: Sequence[str]
) -> dict[str, Float[np.ndarray, " n"]]:
    """Return, by the names of texts, the score of each scene with its text of that name."""
    from menagerie.models.evaluation.scoring import score_items

    bench = ProbeScenes(data, [tuple(its[name] for name in names) for its in texts])
    scores = np.concatenate(score_items(scorer, bench))
    return dict(zip(names, scores.T, strict=True))


def embedding_condition_rows(
    scorer: "Scorer", data: "SplitDataset", texts: Sequence[Named], axes: "ProbeAxes", numbers: np.ndarray
) -> Iterator[Row]:
    """Yield the conditions between embeddings of images and, if there are `texts`, between those of texts."""
    from menagerie.models.layers import image_features

    wanted = [(EMBEDDING, MEAN)]
    images = read_layers(lambda some: image_features(scorer, data.images(some), [EMBEDDING]), len(data), wanted)[
        EMBEDDING, MEAN
    ]
    embeddings = {}
    for name in NEGATED if texts else ():
        encode = partial(features_of_captions, scorer, [its[name] for its in texts])
        embeddings[name] = read_layers(encode, len(data), wanted)[EMBEDDING, MEAN][numbers]
    for found in by_embeddings(images[numbers], embeddings, axes):
        yield condition_row("embeddings", *found)


def features_of_captions(scorer: "Scorer", texts: Sequence[Caption], some: range) -> "Features":
    from menagerie.models.layers import text_features
    from menagerie.models.texts import Texts

    captions, graphs = zip(*(texts[k] for k in some), strict=True)
    return text_features(scorer, Texts(captions, graphs), [EMBEDDING])
