"""A small server of a vision-language model: tests decide how well texts fit images, and which answers are wrong."""

import base64
import io
import json
import math
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from PIL import Image

from menagerie.generators.benchmarks.benchmark import Benchmark, Item
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.captions.templates import Caption
from menagerie.models.judges.judge import pixels_key, resize_picture
from tests.helpers.chat_service import ChatService, Request, Sent

RED, GREEN, BLUE = (Caption(f"a {colour} cat", SceneGraph(("cat",))) for colour in ("red", "green", "blue"))


class Colours(Benchmark):
    """Three images, each of one colour; a pair of texts for each, and a pair of images with both of their texts."""

    name = "colours"
    items = (
        Item("1", "text", (0,), (RED, GREEN)),
        Item("2", "text", (1,), (GREEN, RED)),
        Item("3", "text", (2,), (BLUE, GREEN)),
        Item("4", "four-way", (0, 1), (RED, GREEN)),
    )

    def images(self, numbers):
        out = torch.zeros((len(numbers), 3, 32, 32), dtype=torch.uint8)
        for row, number in enumerate(numbers):
            out[row, number] = 200
        return out


BENCH = Colours()

Fit = Callable[[str, str], float]  # how well a text fits the image with this hash, above 0 if it does
GOES_ON = Sent(status=0)
CHOICE = re.compile(r"A: (.*)\nB: (.*)\nAnswer")


def truth(*benchmarks: Benchmark, sure: float = 4.0) -> Fit:
    """Return a `Fit` by which the true texts of benchmarks fit; without an image none does better."""
    true = {
        (pixels_key(resize_picture(bench.picture(image), 224, 1024)), text)
        for bench in benchmarks
        for image, text in true_pairs(bench)
    }
    return lambda image, text: 0.0 if not image else sure if (image, text) in true else -sure


def true_pairs(bench: Benchmark) -> Iterator[tuple[int, str]]:
    """Yield the images of a benchmark with their true texts."""
    for item in bench.items:
        yield from ((image, item.texts[own].text) for k, image in enumerate(item.images) for own in item.own(k))
    for pool in getattr(bench, "pools", ()):
        yield from ((pool.images[i], phrasing.text) for i, text in pool.pairs for phrasing in pool.texts[text])


class VisionService(ChatService):
    """Answers questions by `fit`; `place` is added to the logit of the letter A. `fault` returns what is sent instead,
    or `GOES_ON`."""

    def __init__(
        self, fit: Fit, place: float = 0.0, logprobs: bool = True, fault: Callable[[Request], Sent | None] | None = None
    ) -> None:
        super().__init__(self.reply)
        self.fit, self.place, self.logprobs, self.fault = fit, place, logprobs, fault

    def asked(self, content: dict[str, Any]) -> str:
        """The question, and the reply whose likelihood is requested."""
        first, *rest = content["messages"]
        return "\n".join(
            [part["text"] for part in first["content"] if part["type"] == "text"] + [m["content"] for m in rest]
        )

    def questions(self) -> list[tuple[str, str]]:
        """The questions about benchmarks, each with the hash of its image."""
        return [(seen(r.content), r.caption) for r in self.requests if not r.caption.startswith("Is this grey?")]

    def reply(self, request: Request) -> Sent | None:
        """The answer to a request."""
        sent = self.fault(request) if self.fault else GOES_ON
        if sent is not GOES_ON:
            return sent
        image, content = seen(request.content), request.content
        if content.get("prompt_logprobs") is not None:
            text = content["messages"][-1]["content"]
            value = self.fit(image, text) / 4 - 2
            tokens = [None, {"7": {"decoded_token": "<image>", "logprob": -9.0}}]
            tokens += [{"9": {"decoded_token": f" {word}", "logprob": value}} for word in text.split()]
            return answered("", tokens=tokens)
        if both := CHOICE.search(request.caption):
            words, logit = ("A", "B"), self.fit(image, both[1]) - self.fit(image, both[2]) + self.place
        else:
            text = re.search('"(.*)"', request.caption)
            words, logit = ("Yes", "No"), self.fit(image, text[1]) if text else -1.0
        values = -math.log1p(math.exp(-logit)), -math.log1p(math.exp(logit))
        first = dict(zip(words, values, strict=True)) if content.get("logprobs") and self.logprobs else None
        return answered(words[0] if logit > 0 else words[1], first)


def seen(content: dict[str, Any]) -> str:
    """The hash of the image in a request; empty if there is none."""
    urls = [part["image_url"]["url"] for part in content["messages"][0]["content"] if part["type"] == "image_url"]
    if not urls:
        return ""
    return pixels_key(np.asarray(Image.open(io.BytesIO(base64.b64decode(urls[0].partition(",")[2])))))


def answered(
    text: str, first: dict[str, float] | None = None, tokens: list | None = None, finish: str = "stop"
) -> Sent:
    """An answer of the protocol, with log-probabilities of its first token's alternatives or of the prompt's tokens."""
    choice: dict[str, Any] = {"message": {"content": text}, "finish_reason": finish}
    if first:
        top = [{"token": token, "logprob": value} for token, value in first.items()]
        best = max(top, key=lambda each: each["logprob"])
        choice["logprobs"] = {"content": [best | {"top_logprobs": top}]}
    usage = {"prompt_tokens": 300, "completion_tokens": 1}
    body = {"choices": [choice], "usage": usage, "model": "fake"} | ({"prompt_logprobs": tokens} if tokens else {})
    return Sent(body=json.dumps(body).encode())
