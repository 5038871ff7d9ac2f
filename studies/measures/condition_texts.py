"""The texts of a scene that conditions on an ideal CLIP compare, by name: true and false ones, and denials."""

from collections.abc import Sequence

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.identity import generator
from menagerie.envs.relations import RELATIONS
from menagerie.envs.scene import Object, Scene
from menagerie.generators.captions.templates import Caption, Content, Template, phrasing_number, write_caption
from menagerie.generators.splits.probe_scenes import objects_from_left, quartet

LEFT, RIGHT = RELATIONS["left/right"].predicates
SEED = 0  # of the draw of absent animals
Named = dict[str, Caption]


def named_texts_of_all(scenes: Sequence[Scene], template: Template, seed: int) -> list[Named]:
    """Return the texts of each scene, by their names."""
    animals = sorted({obj.animal for scene in scenes for obj in scene.objects})
    return [named_texts(scene, animals, template, seed) for scene in scenes]


def named_texts(scene: Scene, animals: Sequence[str], template: Template, seed: int) -> Named:
    """Return the named texts of a scene; comments have them for a red cat on the left and a white dog on the right,
    where a pig and a bear are absent. Absent animals are the same for a scene, its swap and its mirror."""
    number = phrasing_number(min(quartet(scene)) if len(template.phrasings) > 1 else scene, seed, template)

    def say(objects: tuple[Object, ...], *predicates: str, denied: tuple[Object, ...] = ()) -> Caption:
        return write_caption(Content(scene, objects, predicates, denied, number), template)

    one, other = objects_from_left(scene)
    new_one, new_other = absent_pair(one, other, animals)
    swapped = one._replace(texture=other.texture), other._replace(texture=one.texture)
    joint = (LEFT,) * template.relation  # a template with relations states one in "both" and "both swapped" too
    return {
        "one": say((one,)),  # a red cat
        "other": say((other,)),  # a white dog
        "one absent": say((new_one,)),  # a red pig
        "other absent": say((new_other,)),  # a white bear
        "one wrong": say(swapped[:1]),  # a white cat
        "other wrong": say(swapped[1:]),  # a red dog
        "both": say((one, other), *joint),  # a red cat and a white dog
        "both swapped": say(swapped, *joint),  # a white cat and a red dog
        "placed": say((other, one), RIGHT),  # a white dog to the right of a red cat
        "turned": say((one, other), RIGHT),  # a red cat to the right of a white dog
        "one, not absent": say((one,), denied=(new_other,)),  # a red cat and no white bear
        "one, not other": say((one,), denied=(other,)),  # a red cat and no white dog
        "other, not absent": say((other,), denied=(new_one,)),  # a white dog and no red pig
        "other, not one": say((other,), denied=(one,)),  # a white dog and no red cat
        "no absent": say((), denied=(new_other,)),  # no white bear
        "no other": say((), denied=(other,)),  # no white dog
        "no absent one": say((), denied=(new_one,)),  # no red pig
        "no one": say((), denied=(one,)),  # no red cat
    }


def absent_pair(one: Object, other: Object, animals: Sequence[str]) -> tuple[Object, Object]:
    """Return the two objects with their animals replaced by two that the scene doesn't show."""
    both = sorted((one.animal, other.animal))
    left = [name for name in animals if name not in both]
    if len(left) < 2:
        raise UserError(
            f"conditions compare with two absent animals: a probe set needs 4 animals, and this one has {len(animals)}"
        )
    first, second = generator(SEED, "absent", *both).permutation(len(left))[:2]
    new = dict(zip(both, (left[first], left[second]), strict=True))
    return one._replace(animal=new[one.animal]), other._replace(animal=new[other.animal])
