"""Where a scorer uses the bit which animal has which texture: activation patching, as a measure of finished runs.

A scene A and its swap B differ in texture pixels alone, their captions a and b in texture words, and in "a" or "an".
While a tower encodes A or a, the tokens of a part P are replaced, at one layer, by those of B or b. What moves is

    of images  s(A with P of B, a) - s(A with P of B, b)        of texts  s(A, a with P of b) - s(B, a with P of b)

From nothing to everything exchanged both move by D = s(B, a) - s(B, b) - s(A, a) + s(A, b), which no preference for an
image or a caption changes, and which is below 0 where the score binds. "alone" is what P moves, divided by D; "share"
is Shapley's value, the mean over all orders in which parts are exchanged: the shares of a layer add up to 1. "head" is
what the output of one head moves, at all tokens. A scene and its swap are both measured, so what is missing when all
but P is exchanged has the same mean as "alone". Activation patching: Zhang and Nanda (2309.16042).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, count
from math import factorial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int, Int64, UInt8
from torch import Tensor, nn

from menagerie.envs.core.errors import UserError
from menagerie.envs.scene import Object
from menagerie.models.layers import grid_of, image_features, pixels_of, towers_of
from menagerie.models.towers.attention import SelfAttention
from menagerie.models.towers.features import STEM, Places, image_places, text_places
from menagerie.models.towers.tokenizers import WordTokenizer
from menagerie.studies.analysis.intervals import Estimate, statistic_interval
from menagerie.studies.frame.measure import Row
from menagerie.studies.measures.probe_set import BLOCK, IMAGE, TEXT, ProbeAxes, ProbeMeasure, probe_axes
from menagerie.studies.measures.probes import bits, one_core, place_margins, standardise, texture_margins

if TYPE_CHECKING:
    from menagerie.generators.captions.templates import Caption
    from menagerie.generators.storage.dataset import SplitDataset
    from menagerie.models.scorer import Scorer
    from menagerie.studies.runs.data import Material

LEFT, RIGHT, OBJECTS = "left object", "right object", "objects"
PARTS = {IMAGE: (LEFT, RIGHT, "background", "CLS"), TEXT: ("textures", "articles", "nouns", "others", "end")}
ALONE, SHARE, HEAD, POOL, PRESENT = "alone", "share", "head", "head at pool", "present"
SCENES = 200  # whose activations are exchanged, spread evenly over the probe set
ROUNDING = 1e-6  # of scores
SMALL = 0.05  # scenes with |D| below this share of the median |D| are left out of medians
Place = tuple[str, str, str]
"""Layer, part and kind of a number."""
Masks = Sequence[Bool[Tensor, "..."]]


@dataclass(frozen=True)
class PatchedTower:
    """A tower of a scorer, with n inputs and as many swapped ones."""

    side: str
    places: Places
    whose: Sequence[Int64[Tensor, "rows t"]]
    """For each pass of the tower, the number of each token's part, in `PARTS`; -1 for padding. An input has one row or
    several, one after the other."""
    inputs: tuple[Any, Any]
    encode: Callable[[Any], Any]
    choose: Callable[[Any], Float[Tensor, " n"]]
    """Maps what `encode` gives to the numbers that move."""

    @property
    def numbers(self) -> dict[str, int]:
        """The parts that have tokens, with their numbers."""
        return {name: p for p, name in enumerate(PARTS[self.side]) if any((its == p).any() for its in self.whose)}

    @property
    def pools(self) -> list[Bool[Tensor, "rows t 1"]]:
        """Which tokens are CLS, or the end of a text; empty if none is."""
        last = len(PARTS[self.side]) - 1
        return [(its == last)[..., None] for its in self.whose] if PARTS[self.side][last] in self.numbers else []

    def layers(self) -> Iterator[tuple[str, nn.Module, bool]]:
        """Yield the name of each layer, a module, and whether it is the module's input."""
        yield STEM, self.places.blocks[0], True
        yield from ((f"block {k}", block, False) for k, block in enumerate(self.places.blocks, 1))

    def encode_changed(self, inputs: Any, module: nn.Module, before: bool, change: Callable[..., Tensor]) -> Any:
        """Encode inputs. What enters or leaves the module in pass k becomes `change(k, states)`, batch first."""
        passes, first = count(), self.places.batch_first

        def changed(states: Any) -> Any:
            if isinstance(states, tuple):
                return changed(states[0]), *states[1:]
            its = change(next(passes), states if first else states.transpose(0, 1))
            return its if first else its.transpose(0, 1)

        register = module.register_forward_pre_hook if before else module.register_forward_hook
        with register(lambda *given: changed(given[-1])):
            return self.encode(inputs)

    def states(self, inputs: Any, module: nn.Module, before: bool) -> list[Float[Tensor, "rows t d"]]:
        """Return what enters or leaves a module in each pass; raises `UserError` unless each pass has its tokens."""
        seen: list[Tensor] = []
        self.encode_changed(inputs, module, before, lambda _, states: seen.append(states) or states)
        if [its.shape[:2] for its in seen] != [its.shape for its in self.whose]:
            raise UserError(f"tokens of its {self.side} tower can't be told apart")
        return seen

    def exchange(self, module: nn.Module, before: bool, masks: Mapping[Any, Masks]) -> dict[Any, Float[Tensor, " n"]]:
        """Return what is chosen for each of `masks`, which says in each pass what is taken from the swapped inputs."""
        own, swapped = self.inputs
        other = self.states(swapped, module, before)

        def exchanged(mask: Masks) -> Any:
            return self.encode_changed(own, module, before, lambda k, states: torch.where(mask[k], other[k], states))

        return {name: self.choose(exchanged(mask)) for name, mask in masks.items()}


def moves_in(tower: PatchedTower) -> tuple[Float[Tensor, " n"], dict[Place, Float[Tensor, " n"]]]:
    """Return D, and what each part and head of each layer moves. Raises `UserError` for a layer at which exchanging
    nothing or everything doesn't give what the scene itself or its swap gives."""
    (first, last), found = (tower.choose(tower.encode(its)) for its in tower.inputs), {}
    parts = tower.numbers
    sets = [frozenset(some) for size in range(len(parts) + 1) for some in combinations(parts, size)]
    parted = {
        some: [torch.isin(its, its.new_tensor([parts[part] for part in some]))[..., None] for its in tower.whose]
        for some in sets
    }
    for layer, module, before in tower.layers():
        moved = {some: value - first for some, value in tower.exchange(module, before, parted).items()}
        if max(moved[sets[0]].abs().max(), (moved[sets[-1]] - last + first).abs().max()) > 10 * ROUNDING:
            raise UserError(f"{layer} of its {tower.side} tower doesn't hold all that its score is made of")
        found |= {(layer, part, ALONE): moved[frozenset([part])] for part in parts}
        found |= {(layer, part, SHARE): shapley_value(moved, part) for part in parts}
        if tower.side == IMAGE:
            found[layer, OBJECTS, ALONE] = moved[frozenset([LEFT, RIGHT])]
            found[layer, OBJECTS, SHARE] = found[layer, LEFT, SHARE] + found[layer, RIGHT, SHARE]
        if not before and isinstance(attention := getattr(module, "attn", None), SelfAttention):
            of = torch.arange(attention.embed_dim, device=first.device) // attention.head_dim
            heads = {f"head {h + 1}": of == h for h in range(attention.num_heads)}
            for kind, there in ((HEAD, [True] * len(tower.whose)), (POOL, tower.pools)):
                masks = {name: [mask & its for its in there] for name, mask in heads.items()} if there else {}
                values = tower.exchange(attention.out_proj, True, masks)
                found |= {(layer, name, kind): value - first for name, value in values.items()}
    return last - first, found


def shapley_value(moved: Mapping[frozenset[str], Float[Tensor, " n"]], part: str) -> Float[Tensor, " n"]:
    """Return what a part adds to the parts before it, in the mean over all orders of parts."""
    n = max(map(len, moved))
    weights = [factorial(k) * factorial(n - k - 1) / factorial(n) for k in range(n)]
    return sum(weights[len(its)] * (moved[its | {part}] - moved[its]) for its in moved if part not in its)


def moved_rows(
    side: str, towers: Iterable[PatchedTower], pairs: Int[np.ndarray, " n"], textures: Int[np.ndarray, " n"]
) -> Iterator[Row]:
    """Yield a row (side, layer, part, kind, value, median, refused, moves, wholes) for each place. `moves` and `wholes`
    (D) are means by animal pair; `pairs` and `textures` number the pair of animals and of textures of each input of all
    towers in turn. `value` is the ratio of the means, `median` that of the ratios of scenes."""
    wholes, found = zip(*map(moves_in, towers), strict=True)
    whole, number = torch.cat(wholes).double().cpu().numpy(), np.bincount(pairs)
    of_pairs, kept = np.bincount(pairs, whole) / number, np.abs(whole) > SMALL * np.median(np.abs(whole))
    refused = unbound_reason(whole, textures, pairs)
    for layer, part, kind in found[0]:
        move = torch.cat([its[layer, part, kind] for its in found]).double().cpu().numpy()
        moves = np.bincount(pairs, move) / number
        row = row_of(side=side, layer=layer, part=part, kind=kind, refused=refused, moves=moves, wholes=of_pairs)
        if not refused:
            row |= {"value": moves.sum() / of_pairs.sum(), "median": np.median(move[kept] / whole[kept])}
        yield row


def row_of(**given: Any) -> Row:
    empty = dict.fromkeys(("side", "layer", "part", "kind"), "") | {"value": None, "median": None, "refused": ""}
    return empty | {"moves": [], "wholes": []} | given


def unbound_reason(whole: Float[np.ndarray, " n"], first: Int[np.ndarray, " n"], pairs: Int[np.ndarray, " n"]) -> str:
    """Return why nothing can be located, given n values of D; empty if their mean is below 0 by the upper bound of its
    interval for new animal pairs, and for new pairs of textures or, of several seeds, new seeds (`first`). With random
    weights D depends on the textures more than on the animals."""
    cells, of = np.unique(np.stack([first, pairs], 1), axis=0, return_inverse=True)
    sums, counts = (np.bincount(of.reshape(-1), its)[:, None] for its in (whole, np.ones(len(whole))))
    low, high = statistic_interval(lambda means: means[:, 0], sums, counts, *cells.T.tolist())
    its = Estimate(float(whole.mean()), low, high, len(whole), len({*pairs}), len({*first}), np.nan)
    bounds = its.lacks or f"{low:.2g}, {high:.2g}"
    known = its.conclusive and high < -ROUNDING
    return "" if known else f"the score doesn't tell a scene from its swap, mean D = {its.value:.2g} [{bounds}]"


def ratio_over_pairs(above: Float[np.ndarray, "seeds pairs"], below: Float[np.ndarray, "seeds pairs"]) -> Estimate:
    """Estimate the ratio of two means over seeds and animal pairs."""
    table = np.stack([above, below], -1) / (abs(np.mean(below)) or 1.0)  # derivatives are taken at a mean near 1
    seeds, pairs = np.indices(table.shape[:2]).reshape(2, -1).tolist()

    def ratio(means: Float[np.ndarray, "rows 2"]) -> Float[np.ndarray, " rows"]:
        return means[:, 0] / means[:, 1]

    flat, each = table.reshape(-1, 2), ratio(table.mean(1))
    bounds = statistic_interval(ratio, flat, np.ones_like(flat), seeds, pairs)
    spread = float(each.std(ddof=1)) if len(each) > 1 else np.nan
    value = float(ratio(flat.mean(0)[None])[0]) or 0.0  # not -0
    return Estimate(value, *bounds, len(flat), table.shape[1], len(table), spread, times=1, digits=2)


@dataclass(frozen=True)
class Patching(ProbeMeasure):
    """Rows of `moved_rows` for each tower; and rows of the kind "present", whose value is the bits that a probe reads
    from the mean token of a part: `bits` of `probe_binding`, of objects `place_bits`. A tower in which nothing can be
    located, or of which too little is known, has rows with the reason."""

    version: ClassVar[int] = 2  # heads at CLS and at the end of texts

    def rows(self, scorer: "Scorer", material: "Material", seed: int) -> Iterator[Row]:
        return self.read(scorer)

    @torch.no_grad()
    def read(self, scorer: "Scorer") -> Iterator[Row]:
        """Yield the rows of a scorer in evaluation mode, whatever trained it."""
        both = self.opened(scorer)
        axes, numbers = probe_axes(both[0])
        some, *of = exchanged_scenes(axes, numbers)
        every = scenes_in_order(axes, numbers, np.arange(len(numbers)))
        for side in (IMAGE, TEXT):
            try:
                yield from moved_rows(side, (patched_tower(scorer, both, side, its) for its in in_blocks(some)), *of)
                found = [part_means(patched_tower(scorer, both, side, its), len(its)) for its in in_blocks(every)]
            except UserError as reason:
                yield row_of(side=side, refused=str(reason))
                continue
            for layer, part in found[0]:
                states = np.concatenate([its[layer, part] for its in found]).reshape(*numbers.shape, -1)
                value = bits_present(states, axes, by_place=part == OBJECTS)
                yield row_of(side=side, layer=layer, part=part, kind=PRESENT, value=value)


def part_means(tower: PatchedTower, n: int) -> dict[tuple[str, str], Float[np.ndarray, "n d"]]:
    """Return the mean token of each part of each layer, in the first pass; of both objects side by side."""
    whose, found = tower.whose[0].reshape(n, -1, 1), {}
    for layer, *at in tower.layers():
        states = tower.states(tower.inputs[0], *at)[0].reshape(*whose.shape[:2], -1)
        for name, p in tower.numbers.items():
            mean = (states * (whose == p)).sum(1) / (whose == p).sum(1).clamp_min(1)
            found.setdefault((layer, OBJECTS if name in (LEFT, RIGHT) else name), []).append(mean)
    return {place: torch.cat(means, 1).float().cpu().numpy() for place, means in found.items()}


def scenes_in_order(
    axes: ProbeAxes, numbers: Int[np.ndarray, "v p q"], order: Int[np.ndarray, " v"]
) -> Int[np.ndarray, "n 3"]:
    """Return, for each scene, its number, that of its swap, and which object captions mention first: that on the left
    in views of even order, else that on the right."""
    orders = np.broadcast_to(order[:, None, None] % 2, numbers.shape)
    return np.stack([numbers, numbers[:, :, axes.swaps], orders], -1).reshape(-1, 3)


def exchanged_scenes(
    axes: ProbeAxes, numbers: Int[np.ndarray, "v p q"]
) -> tuple[Int[np.ndarray, "n 3"], Int[np.ndarray, " n"], Int[np.ndarray, " n"]]:
    """Return the scenes whose activations are exchanged, each in both orders of mention: in one alone a score may tell
    swaps by which texture is left and mentioned first. And the numbers of each one's pairs of animals and textures."""
    some = np.unique(np.linspace(0, numbers.size - 1, SCENES).astype(int))
    both = [scenes_in_order(axes, numbers, np.full(len(numbers), order))[some] for order in (0, 1)]
    of = axes.groups[:, None], np.minimum(axes.swaps, np.arange(len(axes.swaps)))
    known = (np.tile(np.broadcast_to(its, numbers.shape).reshape(-1)[some], 2) for its in of)
    return np.concatenate(both), *(np.unique(its, return_inverse=True)[1] for its in known)


def in_blocks(scenes: Int[np.ndarray, "n 3"]) -> list[Int[np.ndarray, "some 3"]]:
    return np.array_split(scenes, -(-len(scenes) // BLOCK))


@one_core
def bits_present(states: Float[np.ndarray, "v p q d"], axes: ProbeAxes, by_place: bool) -> float:
    return bits((place_margins if by_place else texture_margins)(standardise(states), axes)).value


def patched_tower(
    scorer: "Scorer", both: "Sequence[SplitDataset]", side: str, some: Int[np.ndarray, "n 3"]
) -> PatchedTower:
    """Return a tower on some scenes and their swaps (`scenes_in_order`). Raises `UserError` if its layers or tokens
    aren't known."""
    towers, grid, pair = towers_of(scorer), grid_of(scorer), scorer.pair_similarity
    places = towers and (image_places(towers.image) if side == IMAGE else text_places(towers.text))
    if places is None or grid is None:
        raise UserError(f"its {side} tower is no transformer whose layers are known")
    *scenes, orders = some.T
    pixels = tuple(pixels_of(scorer, both[0].images(its)) for its in scenes)
    told = ([both[order].captions([int(i)], [0])[0] for i, order in zip(its, orders, strict=True)] for its in scenes)
    texts = tuple(read_apart(scorer, captions) for captions in told)
    if side == IMAGE:
        true, false = map(scorer.encode_texts, texts)
        tokens = image_features(scorer, pixels[0][:1], STEM)[STEM].shape[1]
        whose = [parts_of_patches(both[0].masks(scenes[0]), grid, tokens).to(scorer.device)]
        encode, choose = scorer.encode_images, lambda its: pair(its, true) - pair(its, false)
        return PatchedTower(side, places, whose, pixels, encode, choose)
    scene, swap = map(scorer.encode_images, pixels)
    objects = [obj for i in scenes[0] for obj in both[0].records.scenes[i].objects]
    whose = parts_of_words(towers.tokenizer, objects, *(ids_read(scorer, places, its) for its in texts))
    encode, choose = scorer.encode_texts, lambda its: pair(scene, its) - pair(swap, its)
    return PatchedTower(side, places, whose, texts, encode, choose)


def read_apart(scorer: "Scorer", texts: "Sequence[Caption]") -> Any:
    """Read texts so that none shares a row of the text tower with another, as graphs share rows of equal phrases."""
    read = scorer.read(*zip(*texts, strict=True))
    if not hasattr(read, "phrase_of_node"):
        return read
    number = torch.arange(read.phrase_of_node.numel(), device=scorer.device).view_as(read.phrase_of_node)
    return read._replace(phrases=read.phrases[read.phrase_of_node.flatten()], phrase_of_node=number)


def ids_read(scorer: "Scorer", places: Places, texts: Any) -> list[Int64[Tensor, "rows context"]]:
    """Return the ids that the text tower reads in each pass."""
    found: list[Tensor] = []
    with places.reads.register_forward_pre_hook(lambda _, given: found.append(given[0])):
        scorer.encode_texts(texts)
    return found


def parts_of_patches(masks: UInt8[Tensor, "n h w"], grid: tuple[int, int], tokens: int) -> Int64[Tensor, "n t"]:
    """Return the part of each token. An object's patches have pixels of it or beside it, as edges are smoothed; a patch
    of both is that one's of which it has more."""
    near = F.max_pool2d(torch.stack([masks == 1, masks == 2], 1).float(), 3, 1, 1)
    share, whose = F.adaptive_avg_pool2d(near, grid).flatten(2).max(1)
    return F.pad(torch.where(share > 0, whose, 2), (tokens - whose.shape[1], 0), value=3)


def parts_of_words(
    tokenizer: Any, objects: Sequence[Object], true: Sequence[Tensor], false: Sequence[Tensor]
) -> list[Int64[Tensor, "rows t"]]:
    """Return the part of each token for each pass, given the ids of captions and of those of swaps. Articles are apart,
    for they tell which texture follows. Raises `UserError` for tokens of parts of words, or that can't be exchanged."""
    if not isinstance(tokenizer, WordTokenizer):
        raise UserError("words of its texts can't be told from its tokens")
    said = (" ".join(obj.texture for obj in objects), "a an", " ".join(obj.animal for obj in objects))
    known = [torch.tensor([tokenizer.ids[word] for word in {*words.split()} & {*tokenizer.words}]) for words in said]
    found = []
    for ids, swapped in zip(true, false, strict=True):
        masks = [torch.isin(ids, its.to(ids)) for its in known]
        whose = torch.stack([*masks, ids != tokenizer.vocab_size - 1, ids >= 0]).int().argmax(0)  # the first that holds
        if ids.shape != swapped.shape or ((ids != swapped) & (whose > 1)).any():
            raise UserError("its captions differ from those of swaps in more than textures and articles")
        found.append(whose.masked_fill(ids == 0, -1))
    return found
