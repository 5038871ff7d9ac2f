"""Judges against a local server: one that knows the truth, one that likes a letter, and ones that fail in every way."""

import json

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.benchmarks.benchmark import apply_rule, group_chosen, images_chosen, texts_chosen
from menagerie.generators.benchmarks.matrix import Pool
from menagerie.generators.parsers import chat_server
from menagerie.models.evaluation.scoring import score_items
from menagerie.models.judges.judge import resize_picture
from menagerie.models.judges.questions import LETTERS, YES_NO, Answer, JudgeOptions, read_words
from menagerie.models.judges.respondents import answer_reader
from menagerie.models.library.judged import find_judges
from tests.helpers.chat_service import Sent
from tests.helpers.vision_service import BENCH, BLUE, GOES_ON, GREEN, RED, VisionService, answered, truth

FORMS = ("yes", "choice", "likelihood")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(chat_server, "FIRST_WAIT", 0.01)


def judge_of(service, tmp_path, form="yes", blind=False, **options):
    given = {"timeout": 5.0, "attempts": 3, "at_once": 4, "answers": tmp_path / "answers", **options}
    judges = find_judges(f"chat:{service.url}#fake/model", JudgeOptions(forms=(form,), blind=blind, **given))
    return judges[-1].load()


def outcomes(scores):
    return [apply_rule(texts_chosen, each) for each in scores]


@pytest.mark.parametrize("form", FORMS)
def test_judge_that_knows_the_truth_is_always_right(form, tmp_path):
    with VisionService(truth(BENCH)) as service:
        judge = judge_of(service, tmp_path, form)
        scores = score_items(judge, BENCH)
        assert all(outcome.official == 1 for outcome in outcomes(scores))
        assert form == "choice" or group_chosen(scores[3]).official == images_chosen(scores[3]).official == 1
        counts = judge.totals()
        assert counts["items"] == 4
        assert counts["undecided"] == counts["kept"] == counts.get("ungraded", 0) == 0
        assert counts["questions"] == len(service.questions()) == len(set(service.questions())) == 6
        assert counts["tokens_in"] == 300 * 6


@pytest.mark.parametrize(("place", "logprobs"), [(50.0, True), (50.0, False)])
def test_judge_that_always_says_a_scores_at_chance(place, logprobs, tmp_path):
    """Also where it knows the truth, but likes the letter more than its log-probabilities can show."""
    with VisionService(lambda image, text: 0.0, place, logprobs) as service:
        judge = judge_of(service, tmp_path, "choice")
        found = outcomes(score_items(judge, BENCH, BENCH.items[:3]))
    assert [outcome.neutral for outcome in found] == [0.5] * 3
    assert [outcome.official for outcome in found] == [0.5] * 3, "the place says nothing of the texts"
    assert judge.totals()["by_place"] == judge.totals()["choices"] == 3


def test_equal_answers_about_both_texts_tie_by_the_official_rule(tmp_path):
    """They are a verdict: both texts fit, or neither."""
    with VisionService(lambda image, text: 1.0, logprobs=False) as service:
        judge = judge_of(service, tmp_path)
        found = outcomes(score_items(judge, BENCH, BENCH.items[:3]))
    assert [(outcome.official, outcome.neutral) for outcome in found] == [(0, 0.5)] * 3
    assert judge.totals()["undecided"] == 0


def test_preference_for_the_first_text_cancels(tmp_path):
    with VisionService(truth(BENCH), place=10.0) as service:
        judge = judge_of(service, tmp_path, "choice")
        assert all(outcome.official == 1 for outcome in outcomes(score_items(judge, BENCH)))
    assert judge.totals()["by_place"] == 3


@pytest.mark.parametrize("form", FORMS)
def test_blind_judge_gets_no_image_and_scores_at_chance(form, tmp_path):
    with VisionService(truth(BENCH)) as service:
        found = outcomes(score_items(judge_of(service, tmp_path, form, blind=True), BENCH, BENCH.items[:3]))
    assert [outcome.neutral for outcome in found] == [0.5] * 3
    assert all("image" not in text and not image for image, text in service.questions())


def test_without_log_probabilities_only_signs_count(tmp_path):
    """Some answers have none: in items with any of these all are right or wrong alone."""

    def without(request):
        return answered("Yes.") if "blue" in request.caption else GOES_ON

    with VisionService(truth(BENCH), fault=without) as service:
        judge = judge_of(service, tmp_path)
        scores = score_items(judge, BENCH)
    assert scores[2].tolist() == [[1, -1]]
    assert scores[0].tolist() == [[pytest.approx(4), pytest.approx(-4)]]
    assert judge.totals()["ungraded"] == 1


def failing(request):
    """Every question fails in a way of its own, some for good."""
    if request.caption.startswith("Is this grey?"):
        return GOES_ON
    if "blue" in request.caption:
        return Sent(status=400, body=b"this image is not allowed")
    if "red" in request.caption:
        return answered("Let me think about what I can see", finish="length")
    if request.number == 0:
        return Sent(status=429, headers=(("Retry-After", "0"),))
    return Sent(body=b"{}", cut=True) if request.number == 1 else GOES_ON


def test_failed_questions_are_counted_and_never_asked_twice(tmp_path):
    with VisionService(truth(BENCH), fault=failing) as service:
        judge = judge_of(service, tmp_path, at_once=1)
        scores = score_items(judge, BENCH)
        counts = judge.totals()
        assert all(outcome.tied for outcome in outcomes(scores)), "each item has a question that is refused or cut off"
        assert [outcome.official for outcome in outcomes(scores)] == [0.5, 0.5, 0.5, 0.25], "as if guessed"
        assert {name: counts[name] for name in ("items", "undecided", "refused", "cut off")} == {
            **{"items": 4, "undecided": 4},
            **{"refused": 1, "cut off": 2},
        }
        before = len(service.questions())
        again = judge_of(service, tmp_path)
        anew = score_items(again, BENCH)
        assert all(np.array_equal(*pair, equal_nan=True) for pair in zip(anew, scores, strict=True))
        assert len(service.questions()) == before, "refusals and answers without a verdict are kept"
        assert again.totals()["kept"] == again.totals()["questions"] == 6


@pytest.mark.parametrize("form", FORMS)
def test_answers_before_a_servers_death_are_kept(form, tmp_path):
    alive = []

    def dying(request):
        alive.append(request)
        return GOES_ON if len(alive) <= 4 else None

    with VisionService(truth(BENCH), fault=dying) as service:
        with pytest.raises(UserError, match=r"3 of 6 questions have no answer .*run it again") as error:
            score_items(judge_of(service, tmp_path, form, at_once=1), BENCH)
        asked = service.questions()[:3]
    assert "\n" not in str(error.value)
    file = next((tmp_path / "answers").glob("*/answers.jsonl"))
    file.write_bytes(file.read_bytes() + b'{"key": "half a li')  # as a killed process leaves it
    with VisionService(truth(BENCH)) as service:
        judge = judge_of(service, tmp_path, form)
        assert all(outcome.official == 1 for outcome in outcomes(score_items(judge, BENCH)))
        assert len(service.questions()) == 3
        assert not set(service.questions()) & set(asked)
        assert judge.totals()["kept"] == 3


@pytest.mark.parametrize("order", ["one after the other", "at once"])
def test_processes_share_answers_to_the_same_questions(order, tmp_path):
    """The second would be told the opposite; it has read the file before the first answers."""
    with VisionService(truth(BENCH)) as one, VisionService(truth(BENCH, sure=-4.0)) as other:
        (first, second), found = (judge_of(service, tmp_path) for service in (one, other)), []
        assert len(second.store) == len(first.store) == 0
        if order == "at once":  # the first asks all while the second waits for its first answer
            other.fault = lambda request: GOES_ON if len(first.store) or score_items(first, BENCH) else None
            found = [score_items(second, BENCH)]
        found += [score_items(first, BENCH), score_items(second, BENCH)]
    assert all(outcome.official == 1 for scores in found for outcome in outcomes(scores))
    assert len(other.questions()) == 6 * (order == "at once")


def test_unanswered_questions_can_count_as_ties(tmp_path):
    def silent(request):
        return GOES_ON if request.caption.startswith("Is this grey?") else None

    with VisionService(truth(BENCH), fault=silent) as service:
        judge = judge_of(service, tmp_path, unanswered="tie", attempts=1, at_once=2)
        assert all(outcome.tied for outcome in outcomes(score_items(judge, BENCH)))
        assert judge.totals()["unanswered"] == 6
        assert len(service.questions()) < 6, "a server that is gone isn't asked about everything"


@pytest.mark.parametrize(
    ("refuses", "form"), [("logprobs", "yes"), ("prompt_logprobs", "likelihood"), ("image_url", "choice")]
)
def test_unsupported_requests_are_named_before_the_first_question(refuses, form, tmp_path):
    def fault(request):
        return Sent(status=400, body=b"not supported") if f'"{refuses}"' in json.dumps(request.content) else GOES_ON

    with VisionService(truth(BENCH), fault=fault) as service:
        with pytest.raises(UserError, match=r"refuses what fake/model is asked .*not supported.*--judge.no-logprobs"):
            score_items(judge_of(service, tmp_path, form), BENCH)
        assert service.questions() == []
        if refuses == "logprobs":
            judge = judge_of(service, tmp_path, form, logprobs=False)
            assert all(outcome.official == 1 for outcome in outcomes(score_items(judge, BENCH)))


def test_prior_is_subtracted_from_the_likelihood(tmp_path):
    def fit(image, text):
        return 8.0 if not image and "green" in text else 0.0  # a caption that is likely by itself

    with VisionService(fit) as service:
        plain = score_items(judge_of(service, tmp_path, "likelihood"), BENCH, BENCH.items[:1])
        less = score_items(judge_of(service, tmp_path, "likelihood", prior=0.5), BENCH, BENCH.items[:1])
    assert plain[0].tolist() == [[-2, -2]]
    assert less[0].tolist() == [[-1, -2]]


def test_pools_are_scored_pair_by_pair(tmp_path):
    texts = tuple((text,) for text in (RED, GREEN, BLUE))
    pool = Pool("", (), (0, 1, 2), (*texts[:2], (BLUE, BLUE)), ())

    def without(request):
        return answered("Yes.") if "green" in request.caption and request.number == 1 else GOES_ON

    with VisionService(truth(BENCH), fault=without) as service:
        judge = judge_of(service, tmp_path, at_once=1)  # the second about green is of the second image
        scores = judge.pool(BENCH, pool)
        assert scores[[0, 2]].argmax(1).tolist() == [0, 2]
        assert len(service.questions()) == 9
        assert judge.totals()["items"] == 9
        assert judge.totals()["undecided"] == 1, "one has no log-probabilities, which the others have"
        known = np.isclose(np.abs(scores), 4, atol=1e-4)
        assert known.sum() == 8
        assert np.isnan(scores[~known]).all()
        with pytest.raises(UserError, match="choices are between a few texts"):
            judge_of(service, tmp_path, "choice").pool(BENCH, pool)


def said(text, first):
    """An answer with the log-probabilities of different alternatives."""
    return Answer(text, tuple(first.items()))


def alternatives(top):
    """A token of a server's answer, the likeliest of its alternatives: of different ones, or of pairs."""
    every = [{"token": t, "logprob": float(value)} for t, value in (top.items() if isinstance(top, dict) else top)]
    return {**max(every, key=lambda each: each["logprob"]), "top_logprobs": every}


def reply_of(text, tokens=(), finish="stop", **message):
    """What is read of a server's answer; each token has the alternatives that stand for it."""
    every = list(map(alternatives, tokens))
    choice = {"message": {"content": text, **message}, "finish_reason": finish, "logprobs": {"content": every}}
    return answer_reader("")({"choices": [choice]})


THINKS = {"<think>": -1e-4, "No": -11.0, "Yes": -12.0}
SAYS_YES = {"Yes": -0.1, "No": -2.5}
THOUGHT = {"type": "thinking", "thinking": [{"type": "text", "text": "No, it is blue."}]}


@pytest.mark.parametrize(
    ("text", "tokens", "finish", "message", "expected"),
    [
        ("Yes", [THINKS], "stop", {"reasoning_content": "Is it red? No, blue"}, 1.0),
        ("Yes", [THINKS], "stop", {"reasoning": "Is it red? No, blue"}, 1.0),
        (None, [THINKS], "length", {"reasoning_content": "Is it red"}, "cut off"),
        (None, [THINKS], "length", {}, "cut off"),
        ("<think>Is it red? No, blue... yes it is.</think>\n\nYes", [THINKS], "stop", {}, 1.0),
        ("<think>There is no red cat, I cannot see one.</think>\n\nNo", [], "stop", {}, -1.0),
        ("Is it red? Yes, it is.\n</think>\n\nNo", [{"Is": -0.1, "Yes": -3.0}], "stop", {}, -1.0),
        ("\n<think>\nThe figure shows", [THINKS], "length", {}, "cut off"),
        ("<think>Yes", [THINKS], "stop", {}, "cut off"),
        ("<think>Yes</think>", [THINKS], "stop", {}, "unparsable"),
        ("Yes", [THINKS, {"No": 0.0}, {"</think>": 0.0}, {"\n\n": 0.0}, SAYS_YES], "stop", {"reasoning": "No"}, 2.4),
        ("Yes", [SAYS_YES], "stop", {"reasoning_content": None, "reasoning": "\n\n"}, 2.4),
        ([{"type": "text", "text": "Ye"}, {"type": "text", "text": "s"}], [SAYS_YES], "stop", {}, 2.4),
        ([THOUGHT, {"type": "text", "text": "Yes"}], [THINKS], "stop", {}, 1.0),
        ([{"type": "text", "text": "Yes"}], [], "stop", {}, 1.0),
        ([THOUGHT], [THINKS], "length", {}, "cut off"),
    ],
)
def test_thoughts_before_an_answer_are_ignored(text, tokens, finish, message, expected):
    verdict = read_words(reply_of(text, tokens, finish, **message), YES_NO)
    assert (verdict.problem or verdict.value) == (expected if isinstance(expected, str) else pytest.approx(expected))


@pytest.mark.parametrize(
    ("text", "tokens", "words", "expected"),
    [
        ("Yes", [], YES_NO, 1),
        (" yes, it does.", [], YES_NO, 1),
        ("**No**", [], YES_NO, -1),
        ("It shows a cat, so the answer is no.", [], YES_NO, -1),
        ("yes and no", [], YES_NO, 1),
        ("Either yes or no", [], YES_NO, "unparsable"),
        ("I'm sorry, there is no image.", [], YES_NO, "refused"),
        ("", [], YES_NO, "unparsable"),
        ("B: a red cat", [], LETTERS, -1),
        ("(A)", [], LETTERS, 1),
        ("The answer is B.", [], LETTERS, -1),
        ("A red cat", [], LETTERS, "unparsable"),
        ("a", [], LETTERS, "unparsable"),
        ("I cannot see an image", [], LETTERS, "refused"),
        ("A is right, not B.", [], LETTERS, "unparsable"),
        ("A describes the image better than B.", [], LETTERS, "unparsable"),
        ("Neither A nor B.", [], LETTERS, "unparsable"),
        ("A red cat is shown, so B.", [], LETTERS, "unparsable"),
        ("The answer is B: A red cat", [], LETTERS, -1),
        ("The answer is A: A red cat", [], LETTERS, 1),
        ("Caption A describes it, unlike B.", [], LETTERS, "unparsable"),
        ("Yes", [{"Yes": np.log(0.3), " yes": np.log(0.1), "No": np.log(0.2), "x": np.log(0.4)}], YES_NO, np.log(2)),
        ("Yes", [{"Yes": np.log(0.9)}], YES_NO, np.log(9)),  # "no" is at most what is left
        ("A red cat", [{"A": -0.1, "B": -2.0}], LETTERS, "unparsable"),
        ("Well", [{"Well": -0.1, "A": -4.0, "B": -3.0}], LETTERS, -1),
        ("**Yes**", [{"**": -0.05, "No": -3.5, "Yes": -4.0}, SAYS_YES], YES_NO, 2.4),
        ("\n\nYes", [{"\n\n": -0.05, "No": -3.5, "Yes": -4.0}, SAYS_YES], YES_NO, 2.4),
        ("`Yes`", [{"`": -0.05, "No": -3.5}], YES_NO, 1),
        ("Yes", [{"Y": -0.05, "No": -3.5}], YES_NO, 1),
        ("Yes", [{"Yes": np.log(0.4), "No": np.log(0.35), "no": np.log(0.15)}], YES_NO, np.log(0.4 / 0.5)),
        ("No", [{"Yes": -0.7, "No": -0.7}], YES_NO, 0),
        ("Yes", [[("Yes", -0.6), ("No", -2.0), ("No", -6.0)]], YES_NO, 1.38185),
        ("B", [[("B", -0.6), ("A", -2.0), ("A", -6.0)]], LETTERS, -1.38185),
        ("Yes", [[("Yes", np.log(0.4)), ("No", np.log(0.3)), ("No", np.log(0.3))]], YES_NO, np.log(0.4 / 0.6)),
        ("Yes", [{"Yes": -0.1, "x": -3.0, "No": -9999.0}], YES_NO, -0.1 - np.log(1 - np.exp(-0.1) - np.exp(-3.0))),
        ("Yes", [{"Yes": 0.0, "x": -30.0, "No": -3.4028235e38}], YES_NO, 30),
        ("A describes the image better than B.", [{"A": -0.01, "B": -5.0}], LETTERS, 4.99),
        ("B describes the image better than A.", [{"B": -0.01, "A": -5.0}], LETTERS, -4.99),
        ("Caption A describes it, not B.", [{"Caption": -0.3, "A": -1.6, "B": -4.0}], LETTERS, 2.4),
        ("A red cat is shown, unlike in B", [{"A": -0.01, "B": -5.0}], LETTERS, "unparsable"),
    ],
)
def test_verdict_is_that_of_the_word_in_the_answer(text, tokens, words, expected):
    verdict = read_words(reply_of(text, tokens), words)
    assert (verdict.problem or verdict.value) == (expected if isinstance(expected, str) else pytest.approx(expected))


@pytest.mark.parametrize(("most", "asked"), [(5, 5), (1, 1)])
def test_alternatives_are_halved_until_the_server_allows_them(most, asked, tmp_path):
    def fault(request):
        return Sent(status=400, body=b"too many") if request.content.get("top_logprobs", 0) > most else GOES_ON

    with VisionService(truth(BENCH), fault=fault) as service:
        judge = judge_of(service, tmp_path)
        assert all(outcome.official == 1 for outcome in outcomes(score_items(judge, BENCH)))
    assert {r.content.get("top_logprobs") for r in service.requests if not r.caption.startswith("Is this")} == {asked}
    assert judge.totals().get("ungraded", 0) == 0


def test_surer_answers_score_higher():
    """From the surest down; a word that isn't there is at most as likely as the least that is."""
    surest = [
        {"Yes": -1e-13, "x": -30.0},
        {"Yes": -1e-12, "x": -27.0},
        {"Yes": -1e-9, "No": -25.0, "x": -30.0},
        {"Yes": -1e-9, "No": -24.0, "x": -23.0},
        {"Yes": -1e-9},
        {"Yes": -1e-4},
    ]
    values = [read_words(said("Yes", first), YES_NO).value for first in surest]
    assert values == sorted(values, reverse=True)
    assert values[:3] == pytest.approx([30, 27, 25])
    assert read_words(said("Yes", surest[4]), YES_NO).bounded
    assert read_words(said("Yes", {"Yes": 0.0}), YES_NO).value == pytest.approx(20) == values[4]
    assert read_words(said("", {"x": -1e-9, "No": -25.0}), YES_NO).value <= 0, "no is likelier than what isn't there"


def test_small_pictures_are_enlarged_by_whole_factors_and_large_ones_reduced():
    small = np.arange(32 * 48 * 3, dtype=np.uint8).reshape(32, 48, 3)
    large = resize_picture(small, 224, 1024)
    assert large.shape == (224, 336, 3)
    assert np.array_equal(large[3::7, 3::7], small)
    assert resize_picture(small, 16, 1024) is small
    assert resize_picture(np.zeros((100, 2000, 3), np.uint8), 224, 1000).shape == (50, 1000, 3)
