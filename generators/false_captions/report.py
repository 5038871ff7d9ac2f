"""What false captions cover and give away: a row for each source and way."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from menagerie.generators.false_captions.located import plain_words
from menagerie.generators.false_captions.made import Made
from menagerie.generators.false_captions.record import FalseCaption

FOLDS = 5
UNSEEN = 0.4  # factor of a shorter sequence's share where a longer one wasn't seen, as in Brants et al. 2007
FEWEST = 50  # images with pairs below which what the text tells isn't measured


def report_rows(source: str, made: Made, benchmarks: Collection[str] | None = None) -> list[dict[str, Any]]:
    """A row for each way: captions with a false one, changes refused by reason, what the text alone tells, and how many
    are word for word a text of `benchmarks`, if these are given."""
    known, rows = {*map(plain_words, benchmarks or ())}, []
    for way in dict.fromkeys([*(one.how for one in made.captions), *(way for way, _ in made.refused)]):
        its = [one for one in made.captions if one.how == way]
        pairs = {(one.image, one.caption): one for one in reversed(its)}
        reasons = Counter({reason: number for (name, reason), number in made.refused.items() if name == way})
        row = {"source": source, "way": way, "captions": made.considered, "with one": len(pairs), "false": len(its)}
        row |= told_by_text(list(pairs.values())) | {"refused": dict(reasons.most_common())}
        both = sum(plain_words(one.text) in known for one in its)
        rows.append(row | {"in benchmarks": None if benchmarks is None else both})
    return rows


def told_by_text(pairs: Sequence[FalseCaption]) -> dict[str, float | None]:
    """How often the text alone names the true one of two, in shares with ties half: by trigrams of true captions, and
    by naive Bayes over words and pairs of words of both. Each image's pairs are judged by those of other images; 0.5
    tells nothing. None for too few images."""
    right: dict[str, list[float]] = {"trigrams": [], "naive Bayes": []}
    images = sorted({one.image for one in pairs})
    if len(images) < FEWEST:
        return dict.fromkeys(right)
    folds = np.random.default_rng(0).permutation(len(images)) % FOLDS
    place = {image: k for k, image in enumerate(images)}
    fold_of = np.array([folds[place[one.image]] for one in pairs])
    texts = np.array([[plain_words(one.caption), plain_words(one.text)] for one in pairs], dtype=object)
    for fold, (name, score) in product(range(FOLDS), (("trigrams", trigram_scores), ("naive Bayes", bayes_scores))):
        true, false = (score(texts[fold_of != fold], side) for side in texts[fold_of == fold].T)
        right[name] += ((true > false) + (true == false) / 2).tolist()
    return {name: float(np.mean(shares)) for name, shares in right.items()}


def trigram_scores(known: np.ndarray, texts: Iterable[str]) -> Float[np.ndarray, " n"]:
    """Log likelihoods of texts by the trigrams of true captions; `known` has pairs of a true and a false one."""
    counts = Counter(sequence for text, _ in known for sequence in sequences(text))
    return np.array([sum(np.log(share(one, counts)) for one in sequences(text) if len(one) == 3) for text in texts])


def sequences(text: str) -> Iterator[tuple[str, ...]]:
    """Yield all sequences of up to three words, beginning and end of the text among them."""
    words = ["", "", *text.split(), "."]
    return (tuple(words[end - length : end]) for end in range(3, len(words) + 1) for length in range(4))


def share(sequence: tuple[str, ...], counts: Mapping[tuple[str, ...], int]) -> float:
    """How often the last word followed the others, by shorter sequences if it never did."""
    for shorter in range(3):
        if seen := counts.get(sequence[shorter:], 0):
            return UNSEEN**shorter * seen / max(counts.get(sequence[shorter:-1], 0), seen)
    return UNSEEN**3 / (counts[()] + 1)


def bayes_scores(known: np.ndarray, texts: Iterable[str]) -> Float[np.ndarray, " n"]:
    """Log odds that texts are true ones."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB

    words = CountVectorizer(ngram_range=(1, 2), token_pattern=r"\S+")
    given = words.fit_transform([*known[:, 0], *known[:, 1]])
    model = MultinomialNB().fit(given, np.repeat([1, 0], len(known)))
    return np.diff(model.predict_log_proba(words.transform(texts)), axis=1)[:, 0]


def print_report(rows: Iterable[Mapping[str, Any]]) -> None:
    """Print each row in two lines."""
    for row in rows:
        told = ", ".join(f"{name} {format_share(row[name])}" for name in ("trigrams", "naive Bayes"))
        both = row["in benchmarks"]
        known = "" if both is None else f", {both} of them word for word in benchmarks"
        covered = format_share(row["with one"] / row["captions"] if row["captions"] else None, 1)
        print(
            f"{row['source']}, {row['way']}: {row['with one']} of {row['captions']} captions have one ({covered}), "
            f"{row['false']} in all{known}; text alone names the true one: {told}"
        )
        print("  refused: " + ("; ".join(f"{number} {reason}" for reason, number in row["refused"].items()) or "none"))


def format_share(share: float | None, digits: int = 0) -> str:
    """A share in per cent; "-" if it is unknown."""
    return "-" if share is None else f"{share:.{digits}%}"


def texts_in_benchmarks(root: Path) -> set[str]:
    """The texts of benchmarks whose annotation files are all below a data root; images needn't be there. Raises for
    files that can't be read."""
    from menagerie.generators.benchmarks.registry import load_benchmarks
    from menagerie.generators.sources.place import Place

    place, found = Place(root, allow_missing=True, tag=None), set[str]()
    for spec in load_benchmarks(()):
        one_of = [place.path(file).is_file() for file in spec.one_of]
        there = [*(place.path(file).is_file() for file in spec.files), *([any(one_of)] if one_of else [])]
        if there and all(there):
            benchmark = spec.build(place)
            found.update(text for record in (*benchmark.records, *benchmark.dropped) for text in record.texts)
    return found
