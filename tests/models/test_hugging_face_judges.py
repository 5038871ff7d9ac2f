"""An image-text-to-text model of Hugging Face's transformers as a judge, tiny and with random weights."""

import math

import numpy as np
import pytest
import torch
from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.models.evaluation.scoring import score_items
from menagerie.models.judges import questions as ask
from menagerie.models.judges.judge import resize_picture
from menagerie.models.judges.questions import JudgeOptions
from menagerie.models.judges.respondents import HuggingFaceModel
from menagerie.models.library.judged import find_judges
from menagerie.models.library.load import find_source, load_scorer
from menagerie.models.library.sources import HuggingFace
from tests.helpers.hugging_face import make_folder, make_llava, transformers
from tests.helpers.vision_service import BENCH

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}<image>{% else %} {{ part['text'] }}{% endif %}{% endfor %}{% endfor %}"
    "{% if add_generation_prompt %} : {% endif %}"
)


@pytest.fixture(scope="module", params=["plain", "chat"])
def folder(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("llava")
    make_llava(folder, TEMPLATE if request.param == "chat" else None)
    return folder


def scores_of(folder, tmp_path, form, blind=False):
    judges = find_judges(f"hf:{folder}", JudgeOptions(forms=(form,), blind=blind, answers=tmp_path / "answers"))
    judge = judges[-1].load()
    return score_items(judge, BENCH), judge


def log_probabilities(folder, text, picture, reply=()):
    """By the library alone: one row for each token of question and reply, what comes behind it."""
    model = transformers.LlavaForConditionalGeneration.from_pretrained(folder).eval()
    processor = transformers.AutoProcessor.from_pretrained(folder)
    prompt = f"[EOS]<image> {text} : " if processor.chat_template else f"<image>{text}"
    inputs = processor(text=[prompt], images=[picture], return_tensors="pt")
    ids = torch.cat([inputs["input_ids"], torch.tensor([reply], dtype=torch.long)], dim=1)
    with torch.no_grad():
        out = model(input_ids=ids, pixel_values=inputs["pixel_values"], attention_mask=torch.ones_like(ids))
    return out.logits[0].double().log_softmax(-1), processor.tokenizer


def test_score_of_yes_is_the_log_odds_of_the_first_token(folder, tmp_path):
    scores, judge = scores_of(folder, tmp_path, "yes")
    picture = Image.fromarray(resize_picture(BENCH.picture(0), 224, 1024))
    values, tokenizer = log_probabilities(folder, ask.YES.format("a red cat"), picture)
    yes, no = (
        math.log(sum(values[-1, tokenizer.vocab[w]].exp().item() for w in words))
        for words in (["Yes", "yes"], ["No", "no"])
    )
    assert scores[0][0, 0] == pytest.approx(yes - no, abs=1e-5)
    assert len({value for matrix in scores for value in matrix.flat}) > 1
    assert judge.totals()["undecided"] == 0
    again, other = scores_of(folder, tmp_path, "yes")
    assert all(map(np.array_equal, again, scores))
    assert other.totals()["kept"] == other.totals()["questions"]
    assert other.respondent.loaded is None, "all is answered, so nothing is loaded"


def test_likelihood_is_the_mean_over_the_tokens_of_the_reply(folder, tmp_path):
    scores, _ = scores_of(folder, tmp_path, "likelihood")
    picture = Image.fromarray(resize_picture(BENCH.picture(0), 224, 1024))
    tokenizer = transformers.AutoProcessor.from_pretrained(folder).tokenizer
    reply = [tokenizer.vocab[word] for word in ["a", "red", "cat"]]
    values, _ = log_probabilities(folder, ask.DESCRIBE, picture, reply)
    mean = sum(values[k - 4, token].item() for k, token in enumerate(reply)) / 3
    assert scores[0][0, 0] == pytest.approx(mean, abs=1e-5)


@pytest.mark.parametrize("form", ["yes", "likelihood"])
def test_nan_log_probabilities_give_no_verdict(form, folder, tmp_path, monkeypatch):
    """As of a model whose half precision overflows."""
    monkeypatch.setattr(HuggingFaceModel, "log_probabilities", lambda self, inputs: torch.full((99, 99), torch.nan))
    _, judge = scores_of(folder, tmp_path, form)
    assert judge.totals()["undecided"] == judge.totals()["items"] == 4


def test_blind_judge_ignores_the_image(folder, tmp_path):
    scores, _ = scores_of(folder, tmp_path, "choice", blind=True)
    assert scores[3][0].tolist() == scores[3][1].tolist()


def test_clip_is_no_judge_and_judges_are_no_scorers(folder, tmp_path):
    make_folder("clip", tmp_path)
    for name in (str(tmp_path), f"hf:{tmp_path}"):
        assert find_judges(name, JudgeOptions()) == []
        assert isinstance(find_source(name), HuggingFace)
    for name in (folder, f"hf:{folder}", "chat:http://127.0.0.1:9/v1#m"):
        with pytest.raises(UserError, match="answers questions, and has neither layers nor embeddings"):
            load_scorer(name)


def test_identity_of_a_judge_covers_files_and_questions(folder):
    def identity(**options):
        return find_judges(str(folder), JudgeOptions(**options))[0].identity()

    assert identity() == identity(timeout=1.0, at_once=3)
    assert len({identity(), identity(side=448), identity(forms=("choice",)), identity(unanswered="tie")}) == 4
