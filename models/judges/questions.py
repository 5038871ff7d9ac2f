"""What vision-language models are asked, with which options, and how their answers are read; free of torch, so that
command lines answer at once.

The question for yes is VQAScore's (Lin et al. 2024, "Evaluating text-to-visual generation with image-to-text
generation"), but scores are the difference of the log-probabilities of "yes" and "no" as the answer's first word.
Choices are asked in both orders."""

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import msgspec

from menagerie.envs.core.options import FIRST, PLACE
from menagerie.envs.core.validation import POSITIVE, SIDE, Range, Several

FormName = Literal["yes", "choice", "likelihood"]


@dataclass(frozen=True)
class JudgeOptions:
    """What models that answer questions (chat:URL#MODEL, image-text-to-text of Hugging Face) are asked, and how."""

    forms: Annotated[tuple[FormName, ...], FIRST, Several(least=1)] = ("yes",)
    """Questions, a row each: yes (does the image show this?), choice (which of two captions, in both orders),
    likelihood (of the caption as the answer)."""
    blind: Annotated[bool, FIRST] = False
    """Also a row for each form of question in which the model never sees the image: what captions alone give away."""
    prior: Annotated[float, Range(0.0, 10.0)] = 0.0
    """For likelihood: weight of the caption's log-probability without the image (VisualGPTScore's alpha)."""
    side: Annotated[int, Range(1, SIDE.high)] = 224
    """Smaller images are enlarged by a whole factor to at least this side, in pixels: servers resize differently."""
    largest: Annotated[int, Range(16, 16384)] = 1024
    """Larger images are reduced to this longer side, in pixels."""
    logprobs: bool = True
    """Ask for log-probabilities; without them an answer is right or wrong, and nothing between."""
    tokens: Annotated[int, Range(1, 100_000)] = 8
    """Length of the longest answer, in tokens; a model that reasons before it answers needs hundreds."""
    unanswered: Literal["refuse", "tie"] = "refuse"
    """What becomes of questions without an answer: the split or benchmark is left out, or their items tie."""
    key: Annotated[str, PLACE] = ""
    """Name of the environment variable that holds the server's key."""
    at_once: Annotated[int, PLACE, POSITIVE] = 16
    """Requests that are sent at the same time."""
    per_minute: Annotated[float, PLACE, Range(0.0, 1e9)] = 0.0
    """Most requests in a minute; 0 sets no limit."""
    timeout: Annotated[float, PLACE, Range(0.01, 86_400.0)] = 120.0
    """Seconds for one request."""
    attempts: Annotated[int, PLACE, Range(1, 1000)] = 5
    """Number of times a request is sent before it fails."""
    answers: Annotated[Path, PLACE] = Path("answers")
    """Folder of the answers that are kept: what was answered is never asked again, by any command."""


VERSION = 3  # of questions, and of how answers are read
YES = 'Does this figure show "{}"? Please answer yes or no.'
CHOICE = "Which caption describes the image?\nA: {}\nB: {}\nAnswer with the letter A or B only."
DESCRIBE = "Describe the image in one sentence."
# Without an image.
BLIND_YES = 'Is a picture likely to show "{}"? Please answer yes or no.'
BLIND_CHOICE = "Which is likelier to be the caption of a picture?\nA: {}\nB: {}\nAnswer with the letter A or B only."
BLIND_DESCRIBE = "Write the caption of a picture in one sentence."
YES_NO, LETTERS = ("yes", "no"), ("A", "B")
REFUSED = re.compile(r"\b(sorry|cannot|can't|can’t|unable|won't|won’t|not able)\b", re.IGNORECASE)
MARKUP = " \t\r\n\"'*([{<`_#"  # before an answer's first word
LEAST = -20.0  # log of the least probability that the alternatives are taken to leave: less is rounding
ALONE = r"(?![ \t]+\w)"  # behind a letter that is no article
VERB = r"(?=[ \t]+(?:captures|depicts|describes|fits|matches|represents|shows)\b)"  # behind one that isn't either

Alternatives = tuple[tuple[str, float], ...]  # tokens with their log-probabilities; several may read alike


class Question(NamedTuple):
    """A question to a model."""

    image: int | None
    """Number of the image in a benchmark; None if the model sees none."""
    text: str
    words: tuple[str, ...] = ()
    """The two answers between which the model chooses."""
    reply: str = ""
    """In place of words: the answer whose likelihood is asked for."""


class Answer(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a model answered."""

    text: str = ""
    """Without the thoughts of a model that reasons."""
    first: Alternatives | None = None
    """The alternatives for the first token with a letter or a digit, including the answered one; None if not given. Of
    a model that reasons it is the first token behind its thoughts."""
    likelihood: float | None = None
    """Mean log-probability per token that the model gives to `Question.reply`; None if the question has none."""
    refused: str = ""
    """Why the server or the model refuses to answer."""
    unanswered: str = ""
    """Why there is no answer: "KIND: DETAIL". Such a question may be asked again."""
    cut: bool = False
    """Whether the answer was cut off at the largest length, or ends in the middle of a thought."""
    model: str = ""
    """What the server calls the model."""
    tokens_in: int = 0
    tokens_out: int = 0


class Verdict(NamedTuple):
    """How much a model prefers the first word to the second, or how likely a reply is. If the answer doesn't say,
    `value` is None, and `problem` gives the reason."""

    value: float | None
    problem: str = ""
    """"refused", "unparsable", "cut off" or "unanswered"."""
    graded: bool = True
    """Whether the value is made of log-probabilities; else each answer counts 1 or -1."""
    bounded: bool = False
    """Whether a word wasn't among the alternatives, so that an upper bound stands for its log-probability."""


def read_verdict(question: Question, answer: Answer) -> Verdict:
    """Return the verdict that an answer gives."""
    if answer.unanswered:
        return Verdict(None, "unanswered")
    if answer.refused:
        return Verdict(None, "refused")
    if question.reply:
        found = answer.likelihood
        return Verdict(None, "unparsable") if found is None or not math.isfinite(found) else Verdict(found)
    return read_words(answer, question.words)


def read_words(answer: Answer, words: tuple[str, ...]) -> Verdict:
    """Return the verdict between two words.

    Log-probabilities count if the answer begins with the likelier word or has no text. Else the word that it begins
    with counts. Of other answers, refusals have no verdict; else the only word in the answer counts, or, if none or
    both are in it, log-probabilities whose likeliest token is neither word.
    """
    text = answer.text.lstrip(MARKUP)
    if answer.cut and not text:
        return Verdict(None, "cut off")
    begins = first_word(text, words)
    opens = begins or first_word(text, words, VERB)
    graded = word_log_odds(answer.first, words) if answer.first else None
    if graded and (not text or (opens and not is_less_likely(answer.first, opens, words))):
        return graded
    if begins:
        return ungraded_verdict(begins, words)
    if REFUSED.search(text):
        return Verdict(None, "refused")
    named = [word for word in words if word_pattern(word).search(text)]
    if len(named) == 1 and not any(mentions(text, word) for word in words if word not in named):
        return ungraded_verdict(named[0], words)
    if graded and not any(means(max(answer.first, key=lambda each: each[1])[0], word) for word in words):
        return graded  # it begins otherwise: "A red cat" is no letter A
    return Verdict(None, "cut off" if answer.cut else "unparsable")


def ungraded_verdict(word: str, words: tuple[str, ...]) -> Verdict:
    """Return the verdict of an answer without log-probabilities that says `word`."""
    return Verdict(1.0 if word == words[0] else -1.0, graded=False)


def word_pattern(word: str, after: str = ALONE) -> re.Pattern[str]:
    """A pattern that finds a word in any case. A letter is found only as a capital, and only with `after` behind it,
    because "A" is an article too."""
    return re.compile(rf"\b{word}\b", re.IGNORECASE) if len(word) > 1 else re.compile(rf"\b{word}\b{after}")


def first_word(text: str, words: tuple[str, ...], after: str = ALONE) -> str:
    """The word with which an answer begins; empty if it is none of these."""
    return next((word for word in words if word_pattern(word, after).match(text)), "")


def mentions(text: str, letter: str) -> bool:
    """Whether a letter may be meant where a word is after it: where the text begins, or in the middle of a sentence. In
    "B: A red cat" the A is an article."""
    return len(letter) == 1 and re.search(rf"(?:^|\w[ \t]+){letter}\b", text) is not None


def word_log_odds(first: Alternatives, words: tuple[str, ...]) -> Verdict | None:
    """Return the difference of two words' log-probabilities among alternatives; None if neither word is there.

    A word that isn't there gets an upper bound: it is at most as likely as the least likely alternative, and as what
    all alternatives leave. No less than `LEAST` is taken to be left.
    """
    found = [logsumexp(value for token, value in first if means(token, word)) for word in words]
    if max(found) == -math.inf:
        return None
    values = [value for _, value in first]
    left = -math.expm1(min(0.0, logsumexp(values)))
    most = min(*values, max(LEAST, math.log(left)) if left > 0 else LEAST)
    one, other = (most if value == -math.inf else value for value in found)
    return Verdict(one - other, bounded=min(found) == -math.inf)


def is_less_likely(first: Alternatives, word: str, words: tuple[str, ...]) -> bool:
    """Whether the likeliest spelling of a word among alternatives is less likely than that of another of `words`."""
    best = {each: max((v for token, v in first if means(token, each)), default=-math.inf) for each in words}
    return bool(best[word] < max(best.values()))


def means(token: str, word: str) -> bool:
    """Whether a token is a word, whatever spaces and punctuation are around it; single letters must be capitals."""
    bare = re.sub(r"[\W_]", "", token)
    return (bare.lower() if len(word) > 1 else bare) == word


def logsumexp(values: Iterable[float]) -> float:
    """log(sum(exp(values))); -inf of nothing."""
    every = list(values)
    top = max(every, default=-math.inf)
    return top if top == -math.inf else top + math.log(sum(math.exp(value - top) for value in every))
