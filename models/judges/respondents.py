"""What answers a judge's questions: a vision-language model behind a server of the OpenAI chat-completions protocol,
such as vLLM or SGLang, or an image-text-to-text model of Hugging Face's transformers in this process.

In this process nothing is generated: one pass gives the log-probabilities of the answer's first token, or of a given
reply."""

import base64
import io
import math
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from menagerie.envs.core.errors import UserError
from menagerie.generators.parsers.chat_server import ChatServer, NoAnswer, Rejected, key_in
from menagerie.generators.parsers.parallel_requests import ParallelRequests
from menagerie.generators.parsers.reply import END, log_probability, read_reply
from menagerie.models.judges.judge import Picture
from menagerie.models.judges.questions import YES_NO, Alternatives, Answer, JudgeOptions, Question, means
from menagerie.models.towers.weight_file import check_loaded, loading_from_transformers

TOP = 20  # alternatives of a token: the most that servers give; some give 5
HINTS = (
    "if it gives no log-probabilities, add --judge.no-logprobs; if it has no prompt_logprobs, as vLLM has, ask "
    "--judge.forms yes or choice; if it takes no images, name a model that sees"
)
GREY = np.full((224, 224, 3), 128, np.uint8)


class ChatModel:
    """A model on a server, by its name. Before the first question of each kind it gets a test question, so that a model
    that can't answer such questions raises one error instead of refusing each question."""

    def __init__(self, url: str, name: str, options: JudgeOptions) -> None:
        """Sends nothing; raises for an invalid address, and for a key that the environment doesn't have."""
        self.name, self.options = name, options
        key = key_in(options.key)
        self.server = ChatServer(url, key, options.timeout, options.attempts, per_minute=options.per_minute)
        self.top = TOP
        self.checked: set[tuple[bool, bool]] = set()

    def identity(self) -> Mapping[str, Any]:
        """Return the model's name and settings; the server's address isn't part of them."""
        return {"model": self.name, "logprobs": self.options.logprobs, "tokens": self.options.tokens}

    def answers(
        self, questions: Sequence[Question], picture: Callable[[int], Picture]
    ) -> Iterator[tuple[Question, Answer]]:
        """Yield each question with its answer, several asked at once. Raises if the server can't be asked at all."""
        for image, reply in sorted({(q.image is not None, bool(q.reply)) for q in questions} - self.checked):
            self.check(image, reply)
        asking, lock = ParallelRequests(self.options.at_once), threading.Lock()

        @lru_cache(maxsize=2 * self.options.at_once)
        def url_of(number: int) -> str:
            with lock:  # readers of images aren't made for several threads
                return data_url(picture(number))

        def ask(question: Question) -> tuple[Question, Answer]:
            url = "" if question.image is None else url_of(question.image)
            try:
                answer = self.server.chat(self.request(question, url), asking.stopped, answer_reader(question.reply))
            except Rejected as error:
                answer = Answer(refused=str(error))
            except NoAnswer as error:
                answer = Answer(unanswered=str(error))
            asking.note(not answer.unanswered)
            return question, answer

        return asking.each(ask, questions)

    def request(self, question: Question, url: str = "") -> dict[str, Any]:
        """The JSON of a request about the image in `url`, or about none."""
        parts = [{"type": "image_url", "image_url": {"url": url}}] if url else []
        messages: list[dict[str, Any]] = [
            {"role": "user", "content": [*parts, {"type": "text", "text": question.text}]}
        ]
        settings: dict[str, Any] = {"model": self.name, "temperature": 0, "max_tokens": self.options.tokens}
        if question.reply:  # the server continues it, and says how likely it is (vLLM)
            messages.append({"role": "assistant", "content": question.reply})
            settings |= {"max_tokens": 1, "prompt_logprobs": 0}
            settings |= {"add_generation_prompt": False, "continue_final_message": True}
        elif self.options.logprobs:
            settings |= {"logprobs": True, "top_logprobs": self.top}
        return settings | {"messages": messages}

    def check(self, image: bool, reply: bool) -> None:
        """Send a test question of a kind, about a grey square or without an image; raise if it can't be answered."""
        question = Question(0 if image else None, "Is this grey?", () if reply else YES_NO, "A grey square." * reply)
        url = data_url(GREY) if image else ""
        try:
            answer = self.server.chat(self.request(question, url), threading.Event(), answer_reader(question.reply))
        except Rejected as error:
            if "top_logprobs" in self.request(question) and self.top > 1:
                self.top //= 2  # servers that allow fewer don't say how many
                return self.check(image, reply)
            raise UserError(f"{self.server.url} refuses what {self.name} is asked ({error}); {HINTS}") from error
        except NoAnswer as error:
            raise UserError(f"{self.server.url} gives no answer ({error}); start or mend it, and run again") from error
        if reply and answer.likelihood is None:
            raise UserError(f"{self.server.url} gives no likelihood; {HINTS}")
        self.checked.add((image, reply))


def answer_reader(wanted: str) -> Callable[[Mapping[str, Any]], Answer]:
    """Make a function that reads the answer in a server's JSON, with the likelihood of `wanted` if it isn't empty."""

    def read(content: Mapping[str, Any]) -> Answer:
        reply = read_reply(content)
        return Answer(
            reply.text,
            first_alternatives(content["choices"][0], reply.reasons),
            likelihood_of(wanted, content.get("prompt_logprobs")) if wanted else None,
            reply.refused,
            cut=reply.cut,
            model=str(content.get("model") or ""),
            tokens_in=reply.tokens_in,
            tokens_out=reply.tokens_out,
        )

    return read


def first_alternatives(choice: Mapping[str, Any], reasons: bool) -> Alternatives | None:
    """The log-probabilities of the first token with a letter or a digit, and of its alternatives; if the model
    `reasons`, of the first such one behind `END`. None if the server gives none.

    Several may read alike. The answered token is among the alternatives of most servers, and counts once.
    """
    tokens = (choice.get("logprobs") or {}).get("content") or []
    if reasons:
        ends = [k for k, token in enumerate(tokens) if str(token["token"]).strip() == END]
        tokens = tokens[ends[-1] + 1 :] if ends else []
    first = next((token for token in tokens if re.search(r"[^\W_]", str(token["token"]))), None)
    if first is None:
        return None
    listed = first.get("top_logprobs") or []
    if all(str(each["token"]) != str(first["token"]) for each in listed):
        listed = [*listed, first]
    found = [(str(each["token"]), log_probability(each["logprob"])) for each in listed]
    return tuple((token, value) for token, value in found if value is not None) or None


def likelihood_of(reply: str, tokens: Sequence[Mapping[str, Any] | None] | None) -> float | None:
    """Return the mean log-probability of a reply's tokens, the last of `tokens`, after image and question; None if they
    can't be found, or one has no probability."""
    rest, values = reply.strip(), []
    for alternatives in reversed(tokens or []):
        if not rest or not alternatives:
            break
        token = next(iter(alternatives.values()))  # that of the prompt stands first
        word = str(token["decoded_token"]).strip()
        if not rest.endswith(word):
            return None
        rest = rest[: len(rest) - len(word)].rstrip()
        values.append(log_probability(token["logprob"]))
    return None if rest or not values or None in values else sum(values) / len(values)


def data_url(picture: Picture) -> str:
    """Encode a picture as a data URL of a PNG."""
    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


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
        """Find the log-probability of each word as the first token, summed over all tokens that mean it."""
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
    """Append a reply's tokens to the inputs: 1 in the attention mask, 0 in other tensors of its shape (text)."""
    out, shape = dict(inputs), inputs["input_ids"].shape
    for name, value in inputs.items():
        if value.shape == shape:
            more = reply if name == "input_ids" else torch.full_like(reply, int(name == "attention_mask"))
            out[name] = torch.cat([value, more.to(value.dtype)], dim=1)
    return out


def load_judge_model(place: str, device: str) -> tuple[Any, Any]:
    """Load the model and its processor; raises for a model with a separate decoder."""
    with loading_from_transformers(place) as library:
        given = {"torch_dtype": "auto", "trust_remote_code": False, "output_loading_info": True}
        model, read = library.AutoModelForImageTextToText.from_pretrained(place, **given)
        check_loaded(place, read["missing_keys"], read["unexpected_keys"])
        processor = library.AutoProcessor.from_pretrained(place, trust_remote_code=False)
    if getattr(model.config, "is_encoder_decoder", False):
        raise UserError(f"{place} has an encoder and a decoder; only models that are one decoder can be judges")
    return (model if device != "cpu" else model.float()).to(device).eval(), processor
