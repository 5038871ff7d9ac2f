"""An image-text-to-text model of Hugging Face's transformers, asked in this process, without a server.

Nothing is generated: one pass gives the log-probabilities of the answer's first token, or of a given reply.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.progress import silence_loggers
from menagerie.models.judges.judge import Picture
from menagerie.models.judges.questions import Answer, Question, means
from menagerie.models.towers.weight_file import check_loaded, without_advice


class HuggingFaceModel:
    """A model in a folder, or by its name on the hub; no code found there is run."""

    def __init__(self, name: str, place: str, weights: str, device: str) -> None:
        """Loads nothing until the first question; `weights` identifies the model's files."""
        self.name, self.place, self.weights, self.device = name, place, weights, device
        self.loaded: tuple[Any, Any] | None = None
        self.tokens: dict[tuple[str, ...], list[list[int]]] = {}

    def identity(self) -> Mapping[str, Any]:
        """Return what identifies the model's files."""
        return {"model": self.weights}

    def answers(
        self, questions: Sequence[Question], picture: Callable[[int], Picture]
    ) -> Iterator[tuple[Question, Answer]]:
        """Yield each question with its answer. Raises `UserError` if the model can't be loaded or asked."""
        if self.loaded is None:
            self.loaded = load_judge_model(self.place, self.device)
        for question in questions:
            image = None if question.image is None else Image.fromarray(picture(question.image))
            ask = self.likelihood if question.reply else self.word_likelihoods
            yield question, ask(question, image)

    def word_likelihoods(self, question: Question, picture: Image.Image | None) -> Answer:
        """Find the log-probability of each of the question's words as the first token; the probabilities of all tokens
        that mean a word are summed."""
        inputs = self.inputs(question.text, picture)
        values = self.log_probabilities(inputs)[-1]
        ids = self.meaning(question.words)
        sums = [(word, values[its].logsumexp(0).item()) for word, its in zip(question.words, ids, strict=True)]
        first = tuple(each for each in sums if math.isfinite(each[1])) or None
        return Answer(first=first, tokens_in=inputs["input_ids"].shape[1], tokens_out=1)

    def likelihood(self, question: Question, picture: Image.Image | None) -> Answer:
        """Find the mean log-probability of the reply's tokens after the question."""
        _, processor = self.loaded
        inputs = self.inputs(question.text, picture)
        reply = processor.tokenizer(question.reply, add_special_tokens=False, return_tensors="pt")["input_ids"]
        reply = reply.to(self.device)
        values = self.log_probabilities(append_reply(inputs, reply))[-reply.shape[1] - 1 : -1]
        mean = values.gather(1, reply.T).mean().item()
        return Answer(likelihood=mean, tokens_in=inputs["input_ids"].shape[1], tokens_out=reply.shape[1])

    def inputs(self, text: str, picture: Image.Image | None) -> dict[str, Tensor]:
        """Make the model's input for a question, up to where the answer begins."""
        model, processor = self.loaded
        content = [*[{"type": "image"}] * (picture is not None), {"type": "text", "text": text}]
        if processor.chat_template:
            messages = [{"role": "user", "content": content}]
            prompt = processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        else:
            prompt = getattr(processor, "image_token", "") * (picture is not None) + text
        begun = bool(processor.tokenizer.bos_token and prompt.startswith(processor.tokenizer.bos_token))
        given = {"images": [picture]} if picture else {}
        made = processor(text=[prompt], **given, return_tensors="pt", add_special_tokens=not begun)
        tensors = {name: value.to(self.device) for name, value in made.items()}
        return {name: value.to(model.dtype) if value.is_floating_point() else value for name, value in tensors.items()}

    @torch.no_grad()
    def log_probabilities(self, inputs: Mapping[str, Tensor]) -> Tensor:
        """Log-probabilities (t, vocabulary) of what follows each token of the only row."""
        return self.loaded[0](**inputs).logits[0].float().log_softmax(-1)

    def meaning(self, words: tuple[str, ...]) -> list[list[int]]:
        """For each word the ids of all tokens that mean it."""
        if words not in self.tokens:
            tokenizer = self.loaded[1].tokenizer
            texts = tokenizer.batch_decode([[number] for number in range(len(tokenizer))])
            ids = [[number for number, text in enumerate(texts) if means(text, word)] for word in words]
            if not all(ids):
                raise UserError(f"{self.name} has no token for {' or for '.join(words)}; ask --judge.forms likelihood")
            self.tokens[words] = ids
        return self.tokens[words]


def append_reply(inputs: Mapping[str, Tensor], reply: Tensor) -> dict[str, Tensor]:
    """Append a reply's tokens to the inputs, with 1 in the attention mask and 0, the type of text, in other tensors of
    the same shape."""
    out, shape = dict(inputs), inputs["input_ids"].shape
    for name, value in inputs.items():
        if value.shape == shape:
            more = reply if name == "input_ids" else torch.full_like(reply, int(name == "attention_mask"))
            out[name] = torch.cat([value, more.to(value.dtype)], dim=1)
    return out


@silence_loggers()
def load_judge_model(place: str, device: str) -> tuple[Any, Any]:
    """Load the model and its processor; raises for a model with a separate decoder."""
    try:
        from transformers import AutoModelForImageTextToText, AutoProcessor
    except ImportError as error:
        raise UserError(f"{place} needs transformers: pip install 'binding-menagerie[huggingface]'") from error
    try:
        given = {"torch_dtype": "auto", "trust_remote_code": False, "output_loading_info": True}
        model, read = AutoModelForImageTextToText.from_pretrained(place, **given)
        check_loaded(place, read["missing_keys"], read["unexpected_keys"])
        processor = AutoProcessor.from_pretrained(place, trust_remote_code=False)
    except UserError:
        raise
    except Exception as error:  # another kind, a missing file or library, no network: each raises its own type
        raise UserError(f"{place} can't be loaded by transformers: {without_advice(error)}") from error
    if getattr(model.config, "is_encoder_decoder", False):
        raise UserError(f"{place} has an encoder and a decoder; only models that are one decoder can be judges")
    return (model if device != "cpu" else model.float()).to(device).eval(), processor
