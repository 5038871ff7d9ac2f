"""What free codes get in the tests of a trained model: the most that its form of a score allows, at any width and at
the model's own.

Two tests on the images of one subset: a scene's caption against the swapped one, and for each object the caption of it
alone against those of all compositions that the image doesn't show, on the same background (`recognition`). Their
matrix has all these captions and images; a background counts as a further thing that is shown and mentioned.

At any width: one-hot vectors of compositions and backgrounds, of which those of an image or a caption are summed, are
known to have every record right. At the model's width: a fit, from below.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, product
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float

from menagerie.envs.core.identity import seed_of
from menagerie.envs.scene import Object
from menagerie.studies.frame.measure import Measure, Row
from menagerie.studies.measures.code_fit import TIE
from menagerie.studies.measures.free_codes import Codes, Slots, Tokens, fit_codes
from menagerie.studies.measures.recognition import COMPOSITION, recognition_value
from menagerie.studies.measures.truth_matrix import PRESENT, Text, TruthMatrix, truth_of
from menagerie.studies.runs.data import Material

if TYPE_CHECKING:
    from menagerie.generators.benchmarks.split_tests import SplitTests
    from menagerie.generators.vocabulary import Vocabulary
    from menagerie.models.scorer import Scorer

SWAP = "swap"
ANY_WIDTH, OWN_WIDTH = "any width", "own width"


@dataclass(frozen=True)
class CodesOfTests(Measure):
    """A row for each record of the two tests and each of both widths (`codes`), whose value is 1 if free codes have it
    right, one half for a tie, else 0."""

    form: str
    """vector, or slots."""
    subset: str
    steps: int = 400
    """Steps of the fit."""

    def rows(self, scorer: "Scorer", material: Material, seed: int) -> Iterator[Row]:
        test = material.tests[self.subset]
        tests = CodeMatrix(test, material.words)
        width = width_of(scorer)
        torch.manual_seed(seed_of(seed, "free codes"))
        fitted = fit_codes(self.codes(tests.world, width), tests.world.truth, "infonce", self.steps)
        widths = {ANY_WIDTH: tests.one_hot_scores(), OWN_WIDTH: (width, fitted)}
        for name, (number, scores) in widths.items():
            for row in tests.values(scores):
                yield {"subset": self.subset, "codes": name, "width": number} | row

    def codes(self, world: TruthMatrix, width: int) -> Codes:
        return Slots(world, width) if self.form == "slots" else Tokens(world, width, 1)


class CodeMatrix:
    """Both tests of a subset, as a matrix of captions and images. Texts that differ in their order alone are one."""

    def __init__(self, test: "SplitTests", words: "Vocabulary") -> None:
        self.words, self.data, self.kind = words, test.data, test.data.split.kind
        self.scenes, self.compositions = self.data.records.scenes, list(product(words.animals, words.textures))
        self.captions_of_one_object = {
            background: [self.text(background, [Object(*its, "")]) for its in self.compositions]
            for background in words.backgrounds
        }
        images = [self.text(scene.background, scene.objects) for scene in self.scenes]
        swapped = [self.text(scene.background, self.kind.swap(scene).objects) for scene in self.scenes]
        self.swaps = list(zip(images, swapped, strict=True))
        captions = list(dict.fromkeys([*images, *swapped, *chain(*self.captions_of_one_object.values())]))
        self.number = {text: k for k, text in enumerate(captions)}
        self.world = TruthMatrix(images, captions, truth_of(images, captions))

    def text(self, background: str, objects: Iterable[Object]) -> Text:
        animals, textures = self.words.animals, self.words.textures
        place = len(animals) + self.words.backgrounds.index(background), len(textures), PRESENT
        named = sorted((animals.index(obj.animal), textures.index(obj.texture), PRESENT) for obj in objects)
        return (*named, place)

    def one_hot_scores(self) -> tuple[int, Float[np.ndarray, "captions images"]]:
        """Return the width of sums of one-hot vectors, and their cosines. Captions that are compared mention equally
        many things, so slots with such vectors order them alike."""
        parts = list(dict.fromkeys(chain(*self.world.captions)))
        sides = self.world.captions, self.world.images
        texts, images = (np.array([[part in its for part in parts] for its in side], float) for side in sides)
        lengths = np.sqrt(np.outer(texts.sum(1), images.sum(1)))
        return len(parts), texts @ images.T / lengths

    def values(self, scores: Float[np.ndarray, "captions images"]) -> Iterator[Row]:
        """Yield the rows of both tests; scores that differ by rounding count as equal."""
        rounded = np.round(scores / TIE) * TIE
        records = zip(self.scenes, self.swaps, self.data.records.captions, strict=True)
        for image, (scene, swap, caption) in enumerate(records):
            true, false = (rounded[self.number[text], image] for text in swap)
            about = {"scene": scene.key, "animals": self.kind.cluster(scene)}
            yield {"task": SWAP, "caption": caption, "value": (float(np.sign(true - false)) + 1) / 2} | about
            captions = self.captions_of_one_object[scene.background]
            scores_on_background = rounded[[self.number[text] for text in captions], image]
            named = [(obj.animal, obj.texture) for obj in scene.objects]
            shown = np.array([its in named for its in self.compositions], bool)
            for animal, texture in named:
                score = float(scores_on_background[self.compositions.index((animal, texture))])
                value = recognition_value(score, scores_on_background, shown)
                yield {"task": COMPOSITION, "caption": f"{texture} {animal}", "value": value} | about


@torch.no_grad()
def width_of(scorer: "Scorer") -> int:
    """Return how many numbers a vector has that the scorer compares: of an image, of a patch or of a slot."""
    side = scorer.towers_config.resolution
    embedding = scorer.encode_images(torch.zeros(1, 3, side, side, device=scorer.device))
    return (embedding if isinstance(embedding, torch.Tensor) else embedding[0]).shape[-1]
