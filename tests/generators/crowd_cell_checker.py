"""Which combinations of animal and texture a crowd split shows and asks for, for `tests.generators.crowd_checker`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import permutations
from math import log

from tests.generators.crowd_file import File, cells, four_cells, uneven


def shown_cells(file: File) -> set[tuple[str, str]]:
    return {cell for record in file.subsets["train"] for cell in cells(record.scene)}


def shown_with(shown: set[tuple[str, str]], name: str) -> frozenset[str]:
    """What train shows with an animal, or with a texture."""
    return frozenset(b for a, b in shown if a == name) | frozenset(a for a, b in shown if b == name)


def check_coverage(file: File) -> Iterator[str]:
    """The cells in train are those of `coverage`: animals and textures have classes, and a class of animals is shown in
    so many classes of textures, one after the other in a circle."""
    share, classes, shown = file.recipe["coverage"], file.recipe["classes"], shown_cells(file)
    total = len(file.names["animals"]) * len(file.names["textures"])
    steps = round(share * classes)
    if len(shown) != total * steps / classes:
        yield f"train shows {len(shown)} of {total} cells, and coverage is {share}"
    if steps == classes:
        return
    rows, columns = ({name: shown_with(shown, name) for name in file.names[kind]} for kind in ("animals", "textures"))
    for kind, sets in (("animals", rows), ("textures", columns)):
        sizes = set(Counter(sets.values()).values())
        if sizes != {len(sets) / classes}:
            yield f"{kind}: not {classes} classes of one size, but {len(set(sets.values()))}, of {sizes}"
    if len(set(rows.values())) == len(set(columns.values())) == classes and not in_circle(rows, columns, steps):
        yield "classes of animals aren't shown in classes of textures that follow one another"


def in_circle(rows: dict[str, frozenset[str]], columns: dict[str, frozenset[str]], steps: int) -> bool:
    """Whether the classes of animals can be ordered so that each class of textures has `steps` neighbours of them."""
    groups = [frozenset(name for name, seen in rows.items() if seen == one) for one in set(rows.values())]
    first, *rest = groups
    found = {frozenset(column) for column in columns.values()}
    return any(
        found == {frozenset().union(*(order[(h - d) % len(order)] for d in range(steps))) for h in range(len(order))}
        for order in ((first, *some) for some in permutations(rest))
    )


def check_information(file: File) -> Iterator[str]:
    """Cells are equally frequent: the normalised mutual information is that of the coverage."""
    things = [cell for record in file.subsets["train"] for cell in cells(record.scene)]
    animals, textures = len(file.names["animals"]), len(file.names["textures"])
    expected = -2 * log(file.recipe["coverage"]) / (log(animals) + log(textures))
    found = 2 * (1 - entropy(things) / (entropy([a for a, _ in things]) + entropy([t for _, t in things])))
    if abs(found - expected) > 0.005 + 0.1 * len(set(things)) / len(things):
        yield f"train: textures and animals have the information {found:.4f}, not {expected:.4f}"
    counts = Counter(things)
    yield from uneven("train: cells", [counts[cell] for cell in sorted(set(things))], len(file.left("train")))


def entropy(drawn: Sequence[object]) -> float:
    return -sum(n / len(drawn) * log(n / len(drawn)) for n in Counter(drawn).values())


def check_exchanged(file: File) -> Iterator[str]:
    """All four cells of a swap are seen, or in `unseen_n` none, all other things' are seen; if some cells are unseen,
    the exchanged animals are of one class, and so are the textures."""
    shown = shown_cells(file)
    for name, records in file.subsets.items():
        if name == "train":
            continue
        for scene in (record.scene for record in records):
            four = four_cells(scene)
            seen = not four & shown if name.startswith("unseen") else four <= shown
            if len(four) != 4 or not seen or not set(cells(scene)) - four <= shown:
                yield f"{name}: cells that should be seen aren't, or the reverse: {scene}"
            kinds = ({shown_with(shown, cell[k]) for cell in four} for k in (0, 1))
            if file.recipe["coverage"] < 1 and any(len(sets) > 1 for sets in kinds):
                yield f"{name}: exchanged things of several classes: {scene}"


CELL_CHECKS = (check_coverage, check_information, check_exchanged)
