"""Binary tests on a scene of two things: a true caption against a false one.

`swap` asks for binding, `replace animal` and `replace texture` for recognition (SugarCrepe's
taxonomy), `one animal` for binding by captions that mention one of the two (OC-CLIP, figure 6).
Add one by adding an entry to `TASKS`.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from envs.scene import Scene
from generators.captions import Caption, caption, conjunction, hard_negative, mention_order
from generators.seeds import generator
from generators.tables import Vocabulary


class Choice(NamedTuple):
    """A true caption and a false one."""

    true: Caption
    false: Caption


def swap(scene: Scene, seed: int, vocabulary: Vocabulary) -> Choice:
    """The two textures exchanged: the same words."""
    return Choice(caption(scene, seed), hard_negative(scene, seed))


def one_animal(scene: Scene, seed: int, vocabulary: Vocabulary) -> Choice:
    """ "a red cat" against "a white cat", of a red cat and a white caribou."""
    thing, other = mention_order(scene, seed)
    false = thing._replace(texture=other.texture)
    return Choice(conjunction(scene, (thing,)), conjunction(scene, (false,)))


def replace_texture(scene: Scene, seed: int, vocabulary: Vocabulary) -> Choice:
    """One thing in a texture that the scene doesn't show."""
    absent = [texture for texture in vocabulary.textures if texture not in {t.texture for t in scene.things}]
    return _replaced(scene, seed, "texture", absent)


def replace_animal(scene: Scene, seed: int, vocabulary: Vocabulary) -> Choice:
    """One thing as an animal that the scene doesn't show."""
    absent = [animal for animal in vocabulary.animals if animal not in {t.animal for t in scene.things}]
    return _replaced(scene, seed, "animal", absent)


def _replaced(scene: Scene, seed: int, field: str, absent: Sequence[str]) -> Choice:
    """One of the two things, at random, with something absent for its animal or texture."""
    random = generator(seed, "replace", field, scene.key)
    things = list(mention_order(scene, seed))
    chosen = int(random.integers(len(things)))
    things[chosen] = things[chosen]._replace(**{field: absent[random.integers(len(absent))]})
    return Choice(caption(scene, seed), conjunction(scene, tuple(things)))


Task = Callable[[Scene, int, Vocabulary], Choice]
TASKS: dict[str, Task] = {
    "swap": swap,
    "one animal": one_animal,
    "replace texture": replace_texture,
    "replace animal": replace_animal,
}


def possible(task: str, vocabulary: Vocabulary) -> bool:
    """Whether a world has enough words for a task: replacing needs a third one."""
    needs = {"replace texture": vocabulary.textures, "replace animal": vocabulary.animals}
    return len(needs.get(task, (0, 0, 0))) > 2


def choices(task: str, scenes: Sequence[Scene], seed: int, vocabulary: Vocabulary) -> list[Choice]:
    """The choice of a task for every scene."""
    return [TASKS[task](scene, seed, vocabulary) for scene in scenes]
