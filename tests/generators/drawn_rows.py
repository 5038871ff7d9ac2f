"""Rows for tests of the generator: what was drawn for each scene, object or pair, and what that must not depend on."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace

from menagerie.envs.scene import Object, Scene
from menagerie.envs.slots import place_of
from menagerie.envs.worlds import load_world
from menagerie.generators.captions import templates
from menagerie.generators.captions.contents import exchanged_objects
from menagerie.generators.captions.phrases import phrase
from menagerie.generators.splits.counting import CountingRecipe
from menagerie.generators.splits.dependence import DependenceRecipe
from menagerie.generators.splits.multi_object import MultiObjectRecipe
from menagerie.generators.splits.probe import ProbeRecipe
from menagerie.generators.splits.recipe import SplitRecipe

Row = dict[str, Hashable]  # the outcome of each draw, and what it must not depend on; None for what was not drawn
Rows = Callable[[], list[Row]]
ROLES = {"train": 20, "validation": 20, "test_pairs": 20}  # of pairs, each with the number of a world's animals


def splits(base: SplitRecipe, seeds: int) -> Iterator[tuple[SplitRecipe, dict[str, list[Scene]]]]:
    for seed in range(seeds):
        one = replace(base, seed=seed)
        yield one, one.subsets()


def told(obj: Object, nodes: Sequence[str]) -> tuple[int, bool] | None:
    """Where in a graph's nodes an object is mentioned, and whether with its texture; None if it isn't."""
    for text, textured in ((phrase(obj), True), (phrase(obj._replace(texture="")), False)):
        if text in nodes:
            return nodes.index(text), textured
    return None


def pairs_in(base: SplitRecipe, seeds: int, *names: str) -> Rows:
    """The scenes of two objects in some subsets, told from the first and the second animal in the alphabet."""

    def rows() -> list[Row]:
        found = []
        for one, subsets in splits(base, seeds):
            for name in names:
                seen = set()
                for scene in subsets[name]:
                    if len(scene.objects) == 2:
                        found.append(row_of(one, name, scene, seen))
        return found

    return rows


def row_of(made: SplitRecipe, name: str, scene: Scene, seen: set[Hashable]) -> Row:
    first, second = sorted(scene.objects)
    true, _ = made.texts(name, scene)
    at = [told(obj, true.graph.nodes) for obj in (first, second)]
    row: Row = {
        "background": scene.background,
        "view": scene.view,
        "first": first.animal,
        "second": second.animal,
        "texture of first": first.texture,
        "texture of second": second.texture,
        "answer": (first.texture > second.texture) - (first.texture < second.texture),
        "place": scene.objects[0] == first,
        "phrasing": phrasing_in(true.text, scene, made.wording.phrasings),
        "pair": f"{made.seed} {first.animal} {second.animal}",
        "left out": None if all(at) else at[0] is None,
        "told": "both" if all(at) else "first" if at[0] else "second",
        "textures told": tuple(its is not None and its[1] for its in at) if all(at) else None,
        **denied_in(true.graph.nodes),
    }
    if all(at):
        row |= {"mention": at[0] < at[1], "mention by place": (at[0] < at[1]) == row["place"]}
    swap = made.swap(scene)
    alike = min(bare(scene), bare(swap))
    if alike not in seen:  # a scene and its swap share these draws
        seen.add(alike)
        row |= {"facing in place 1": scene.objects[0].slot, "facing in place 2": scene.objects[1].slot}
        row |= {"size of first": first.size or None, "size of second": second.size or None}
    return row


def bare(scene: Scene) -> tuple[Hashable, ...]:
    objects = tuple((obj.animal, obj.texture, place_of(obj.slot)) for obj in scene.objects)
    return scene.background, scene.view, objects


def denied_in(nodes: Sequence[str]) -> Row:
    """Whether a graph denies an object, and which."""
    denied = [node.split() for node in nodes if node.startswith("no ")]
    if not denied:
        return {"denied": False}
    return {"denied": True, "denied texture": denied[0][1], "denied animal": " ".join(denied[0][2:])}


def phrasing_in(text: str, scene: Scene, phrasings: Sequence[str]) -> int:
    """The number of the phrasing whose words are around the objects: of those that fit, the longest."""
    place = templates.IN_PLACE.get(scene.background, f"in the {scene.background}")
    words = [
        [part.format(place=place, background=scene.background) for part in its.split("{objects}")] for its in phrasings
    ]
    fit = [i for i, (start, end) in enumerate(words) if text.startswith(start) and text.endswith(end)]
    return max(fit, key=lambda i: len(phrasings[i]))


def assigned(base: SplitRecipe, seeds: int) -> Rows:
    """The pairs of train, each with what is drawn for it once: two textures or an order, and whether it is swapped."""
    world = load_world(base.world)

    def rows() -> list[Row]:
        found = []
        for seed in range(seeds):
            for relation in getattr(base, "relations", ["left/right"]):
                made = replace(base, seed=seed)
                roles, drawn = made.roles(world, relation)
                for pair, its in drawn.items():
                    turn = pair != tuple(sorted(pair))
                    row = {"swapped": pair in roles.swapped, "relation": relation, "before": (its[0] < its[1]) != turn}
                    row |= dict(zip(("texture of first", "texture of second"), its[::-1] if turn else its, strict=True))
                    found.append(row | {"textures": " ".join(its), "first": min(pair), "second": max(pair)})
                found += [{name: a} for name in ROLES for pair in getattr(roles, name) for a in pair]
        return found

    return rows


def painted(base: DependenceRecipe) -> Rows:
    """Each object of train: the texture of each animal is a draw of its own."""

    def rows() -> list[Row]:
        return [
            {f"{obj.animal}": obj.texture, "background": s.background, "view": s.view, "place": obj.slot[:4]}
            for s in base.subsets()["train"]
            for obj in s.objects
        ]

    return rows


def counted(base: CountingRecipe, seeds: int) -> Rows:
    """The scenes of tests of numbers; places are a draw of their own for each number of objects."""

    def rows() -> list[Row]:
        return [
            {
                "number": (number := len(scene.objects)),
                f"other number than {number}": len(made.swap(scene).objects),
                f"places of {number}": "+".join(sorted(obj.slot for obj in scene.objects)),
                "animal": scene.objects[0].animal,
                "texture": scene.objects[0].texture,
                "background": scene.background,
                "view": scene.view,
            }
            for made, subsets in splits(base, seeds)
            for name in made.tests
            for scene in subsets[name]
        ]

    return rows


def dealt(base: MultiObjectRecipe, seeds: int, name: str, number: int) -> Rows:
    """Each object of multi-object scenes with a number of objects; its scene is told with the first
    one."""

    def rows() -> list[Row]:
        scenes = [(made, scene) for made, its in splits(base, seeds) for scene in its[name]]
        return [row for made, scene in scenes if len(scene.objects) == number for row in rows_of(made, name, scene)]

    return rows


def rows_of(made: MultiObjectRecipe, name: str, scene: Scene) -> Iterator[Row]:
    nodes = made.texts(name, scene)[0].graph.nodes
    for i, obj in enumerate(scene.objects):
        at = told(obj, nodes)
        yield {
            "animal": obj.animal,
            "texture": obj.texture,
            "place": obj.slot,
            "size": obj.size or None,
            "exchanged": i in exchanged_objects(scene),
            "mentioned": at is not None,
            "textured": at and at[1],
            "mentioned first": at and at[0] == 0 if len(nodes) > 2 else None,
            "background of object": scene.background,
            "view of object": scene.view,
            **({"background": scene.background, "view": scene.view, "number told": len(nodes)} if not i else {}),
        }


def probed(base: ProbeRecipe) -> Rows:
    """One scene of each quartet and view; what was drawn for the view before is something that it must not go with."""

    def rows() -> list[Row]:
        found: dict[Hashable, Row] = {}
        for scene in base.subsets()["left_first"]:
            objects = sorted(scene.objects)
            names = tuple(obj.animal for obj in objects), tuple(sorted(obj.texture for obj in objects))
            texts = base.texts("left_first", scene)
            row: Row = {
                "background": scene.background,
                "facing in place 1": scene.objects[0].slot,
                "facing in place 2": scene.objects[1].slot,
                "size of first": objects[0].size,
                "size of second": objects[1].size,
                "phrasing": phrasing_in(texts[0].text, scene, base.wording.phrasings),
            }
            before = found.get((names, scene.view - 1), {})
            row |= {f"{name} before": value for name, value in before.items() if name in row}
            row |= {"view": scene.view, "first": names[0][0], "second": names[0][1]}
            found.setdefault((names, scene.view), row | {"texture 1": names[1][0], "texture 2": names[1][1]})
        return list(found.values())

    return rows
