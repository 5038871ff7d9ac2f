"""COCO-order and Flickr30k-order of ARO (Yuksekgonul et al. 2023): a caption against four shuffles of itself.

Captions are those of Karpathy's test splits. Of the four shuffles, the first moves nouns among nouns and adjectives
among adjectives; the second moves all other words; the third moves words within each group of three; the fourth moves
whole groups of three. All texts are cleaned and cut to 30 words as in ARO. A shuffle may equal the caption. Officially
the first of equal scores wins, which is the caption, so such a tie counts as right. ARO's shuffles vary with the
versions of its libraries. Ours depend on the record, `SEED` and the tagger, whose tokens form the groups of three;
results keep the texts that were used.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from menagerie.envs.core.identity import generator
from menagerie.generators.benchmarks.benchmark import first_of_best
from menagerie.generators.benchmarks.photographs import ItemBenchmark, Photograph, Record
from menagerie.generators.benchmarks.registry import BenchmarkSpec, benchmark_spec
from menagerie.generators.benchmarks.retrieval import (
    BENCHMARK_RETRIEVAL_COCO,
    BENCHMARK_RETRIEVAL_FLICKR30K,
    karpathy_test,
)
from menagerie.generators.parsers.spacy_rules import Tagger
from menagerie.generators.sources.kept_out import COCO, FLICKR, PhotographId, file_numbers
from menagerie.generators.sources.place import Place
from menagerie.generators.sources.rows import read_entries

SEED = 1
NOUNS, ADJECTIVES = ("NN", "NNS", "NNP", "NNPS"), ("JJ", "JJR", "JJS")
DROPPED = re.compile(r'[.!"()*#:;~]')
MOST_WORDS = 30
GROUP = "order"

Tokens = Sequence[tuple[str, str]]
Shuffle = Callable[[Tokens, np.random.Generator], list[str]]


def caption_and_shuffles(caption: str, record: str, tag: Tagger | None) -> tuple[str, ...]:
    """The caption and its four shuffles, all cleaned; without a tagger, only the caption."""
    if tag is None:
        return (clean_text(caption),)
    tokens = tag(caption)
    drawn = (shuffle(tokens, generator(SEED, "word order", shuffle.__name__, record)) for shuffle in SHUFFLES)
    return (clean_text(caption), *(clean_text(" ".join(words)) for words in drawn))


def clean_text(text: str) -> str:
    """Convert to lower case, remove some punctuation, and cut to 30 words; a text that would become empty is kept."""
    words = DROPPED.sub(" ", text.lower()).split()[:MOST_WORDS]
    return " ".join(words) or text


def nouns_and_adjectives(tokens: Tokens, rng: np.random.Generator) -> list[str]:
    """Shuffle nouns among nouns, and adjectives among adjectives."""
    words = [word for word, _ in tokens]
    for kind in (NOUNS, ADJECTIVES):
        words = shuffle_at(words, [k for k, (_, tag) in enumerate(tokens) if tag in kind], rng)
    return words


def all_others(tokens: Tokens, rng: np.random.Generator) -> list[str]:
    """Shuffle the words that are neither nouns nor adjectives."""
    places = [k for k, (_, tag) in enumerate(tokens) if tag not in (*NOUNS, *ADJECTIVES)]
    return shuffle_at([word for word, _ in tokens], places, rng)


def shuffle_in_threes(tokens: Tokens, rng: np.random.Generator) -> list[str]:
    """Shuffle the words within each group of three."""
    return [three[k] for three in threes(tokens) for k in rng.permutation(len(three))]


def whole_threes(tokens: Tokens, rng: np.random.Generator) -> list[str]:
    """Shuffle the groups of three."""
    parts = list(threes(tokens))
    return [word for k in rng.permutation(len(parts)) for word in parts[k]]


SHUFFLES: tuple[Shuffle, ...] = (nouns_and_adjectives, all_others, shuffle_in_threes, whole_threes)


def threes(tokens: Tokens) -> Iterator[list[str]]:
    """Yield the words in groups of three; the last may be shorter."""
    words = [word for word, _ in tokens]
    return (words[start : start + 3] for start in range(0, len(words), 3))


def shuffle_at(words: Sequence[str], places: Sequence[int], rng: np.random.Generator) -> list[str]:
    """Shuffle the words at the positions `places`; all other words stay."""
    moved = dict(zip(places, rng.permutation(places).tolist(), strict=True))
    return [words[moved.get(k, k)] for k in range(len(words))]


def word_orders(name: str, retrieval: BenchmarkSpec, collection: str) -> BenchmarkSpec:
    """The spec of a word-order benchmark: each caption of a retrieval benchmark makes a record, as its first text. A
    file of orders that others drew, as MTEB's, comes first if it is there."""
    (images,) = retrieval.images
    given = f"aro/{name.replace('-', '_')}.json"

    def build(place: Place) -> ItemBenchmark:
        if ready := place.path(given).is_file():
            texts_of = given_orders(place.path(given))
        else:
            captions = karpathy_test(place, retrieval.one_of)
            named = ((file, f"{file} {k}", text) for file, its in captions for k, text in enumerate(its))
            texts_of = ((file, caption_and_shuffles(text, record, place.tag)) for file, record, text in named)
        seen, records = Counter[str](), []
        for file, texts in texts_of:
            records.append(Record(f"{file} {seen[file]}", GROUP, (Photograph(file),), texts, file))
            seen[file] += 1
        made = ItemBenchmark(name, images, records, place, first_of_best)
        made.made_texts = not ready
        return made

    def shown(path: Path) -> Iterable[PhotographId]:
        if path.name == Path(given).name:
            return file_numbers(collection, path, (file for file, _ in given_orders(path)))
        return retrieval.photographs(path) if retrieval.photographs else ()

    return benchmark_spec(name, build, retrieval.images, one_of=(*retrieval.one_of, given), photographs=shown)


def given_orders(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield an image, its caption and four orders of its words for each entry of a file, as `import-hf` makes it."""
    for entry in read_entries(path, list):
        yield entry.file_name("image"), entry.texts("captions", 1 + len(SHUFFLES))


BENCHMARK_COCO_ORDER = word_orders("coco-order", BENCHMARK_RETRIEVAL_COCO, COCO)
BENCHMARK_FLICKR_ORDER = word_orders("flickr-order", BENCHMARK_RETRIEVAL_FLICKR30K, FLICKR)
