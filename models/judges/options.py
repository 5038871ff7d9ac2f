"""How vision-language models are asked to judge images and captions; free of torch, so that command lines answer at
once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

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
    """For likelihood: weight of the caption's log-probability without the image, which is subtracted (VisualGPTScore's
    alpha)."""
    side: Annotated[int, Range(1, SIDE.high)] = 224
    """Smaller images are enlarged by a whole factor to at least this side, in pixels: servers resize differently."""
    largest: Annotated[int, Range(16, 16384)] = 1024
    """Larger images are reduced to this longer side, in pixels."""
    logprobs: bool = True
    """Ask for log-probabilities; without them an answer is right or wrong, and nothing between."""
    tokens: Annotated[int, Range(1, 100_000)] = 8
    """Length of the longest answer, in tokens; a model that reasons before it answers needs hundreds."""
    unanswered: Literal["refuse", "tie"] = "refuse"
    """What becomes of questions without an answer: the split or benchmark is left out until they have one, or their
    items tie."""
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
