"""Effects of loss, fusion and tokens: the sentences and tables on the page of `studies/loss_or_architecture.py`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from menagerie.studies.analysis.factorial import effects
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.frame.contrasts import Effects, Levels, contrasts, sign_of_effect
from menagerie.studies.frame.parts import Part, Sentence
from menagerie.studies.frame.records import Records
from menagerie.studies.pages.loss_or_architecture_choices import PRIOR, ComparedRuns

if TYPE_CHECKING:
    from menagerie.studies.frame.estimate import Estimate

EQUAL_IMAGES = "equal images"
SWAP, IMAGE_SCORE = "swap", "image score"
MEASURES = {SWAP: lambda its: its, IMAGE_SCORE: lambda its: its.four_way_items("image")}
"""What effects are measured on: swaps of unseen pairs, and their image score, which a prior hardly changes."""


def effect_sentences(swaps: Records, choice: ComparedRuns, levels: Levels, several: bool) -> Iterator[Part]:
    """Yield sentences for each split: the effect of each factor in points, and the interactions with a clear sign."""
    its = swaps.where(lambda arm: arm.id in choice.arms)
    for split, points in contrasts(its, levels, "split", len(levels)).items():
        place = split.capitalize() + f" with {negatives_in_words(choice.negatives)}" * several
        text = f"{place}, accuracy on swaps of unseen pairs (chance 50 %). "
        main = ", ".join(f"{' → '.join(levels[name])} {points[(name,)]}" for name in levels)
        if len(levels) == 1:
            yield Sentence(f"{text}Effect in points: {main}.")
            continue
        several_factors = {effect: each for effect, each in points.items() if len(effect) > 1}
        pairs = [f"{' × '.join(effect)} {each}" for effect, each in several_factors.items() if sign_of_effect(each)]
        yield Sentence(f"{text}Effects in points: {main}; interactions: {', '.join(pairs) or 'none is clear'}.")
        changes = clear_single_effects(its, levels).get(split)
        yield Sentence(f"{place}, one factor changed alone, in points: {'; '.join(changes or ['none is clear'])}.")


def effect_figures(swaps: Records, equal_images: Sequence[ComparedRuns], levels: Levels) -> Iterator[Effects]:
    """Yield a figure of all effects for each number of negatives."""
    words = {effect: " × ".join(effect) for effect in effects(tuple(levels), len(levels))}
    several = len(equal_images) > 1
    for choice in equal_images:
        its = swaps.where(lambda arm, choice=choice: arm.id in choice.arms)
        its = contrasts(its, levels, "split", len(levels))
        name = f"effects-{choice.negatives}-negatives" if several else "effects"
        titles = {split: split.capitalize() + f", {negatives_in_words(choice.negatives)}" * several for split in its}
        yield Effects(name, its, words, title=titles.get, says="The same as a figure, at equal images.")


def negatives_in_words(number: int) -> str:
    return f"{number} negative{'s' * (number > 1)}"


def single_effects(its: Records, levels: Levels, name: str) -> "dict[tuple[str, ...], Estimate]":
    """Estimate a factor's effect on accuracy for each split and levels of the other factors."""
    by = ("split", *(other for other in levels if other != name), name)
    return {key[:-1]: found for key, found in its.estimates(by, against={name: levels[name][0]}).items()}


def clear_single_effects(its: Records, levels: Levels) -> dict[str, list[str]]:
    """Return, for each split, the changes of a single factor with a clear sign."""
    texts: dict[str, list[str]] = {}
    for name, both in levels.items():
        for (split, *where), found in single_effects(its, levels, name).items():
            if sign_of_effect(found):
                texts.setdefault(split, []).append(f"{' → '.join(both)} {found} ({', '.join(where)})")
    return texts


def single_effect_table(
    swaps: Records, chosen: Sequence[ComparedRuns], levels: Levels
) -> tuple[list[str], list[list[str]]]:
    """Return a table with a row for each split, factor and levels of the others, with and without the prior."""
    rows = []
    for choice in (each for each in chosen if not each.name or each.name.startswith(PRIOR)):
        its = swaps.where(lambda arm, choice=choice: arm.id in choice.arms)
        for name, both in levels.items():
            found, four_way_items = (single_effects(change(its), levels, name) for change in MEASURES.values())
            for key, points in found.items():
                place = [key[0], str(choice.negatives), choice.name or EQUAL_IMAGES, " → ".join(both)]
                rows.append([*place, ", ".join(key[1:]) or DASH, str(points), str(four_way_items.get(key, DASH))])
    return ["split", "negatives", "compared", "change", "where", *MEASURES], rows


def all_effects_table(
    swaps: Records, chosen: Sequence[ComparedRuns], levels: Levels
) -> tuple[list[str], list[list[str]]]:
    """Return a table with a row for each split, choice, measure and effect."""
    rows = []
    for choice in chosen:
        its = swaps.where(lambda arm, choice=choice: arm.id in choice.arms)
        for measure, change in MEASURES.items():
            for split, found in contrasts(change(its), levels, "split", len(levels)).items():
                place = [split, str(choice.negatives), choice.name or EQUAL_IMAGES, measure]
                rows += [[*place, " × ".join(effect), str(points)] for effect, points in found.items()]
    return ["split", "negatives", "compared", "measure", "effect", "points"], rows
