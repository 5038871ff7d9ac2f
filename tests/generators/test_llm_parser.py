"""The parser that requests graphs from a language model, against a local server: one that errs, stalls and dies."""

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.parsers import chat_server
from menagerie.generators.parsers.llm import CLOSE, EXAMPLES, OPEN, RULES, NotAGraph, graph_of_answer, read_graph
from menagerie.generators.parsers.parser import CaptionParser
from menagerie.generators.parsers.registry import open_parser
from menagerie.generators.parsers.reply import read_reply
from menagerie.generators.sources.place import one_node
from tests.command import WAIT_SECONDS
from tests.helpers.chat_service import ChatService, Request, Sent, written


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(chat_server, "FIRST_WAIT", 0.01)


def good(request: Request) -> Sent:
    """Two nodes and an edge for "a NUMBER on a mat"."""
    nodes = request.caption.split(" on ")
    return Sent(written(nodes, [("on", 0, 1)] if len(nodes) == 2 else []))


def captions(number: int) -> list[str]:
    return [f"an object {k} on a mat" for k in range(number)]


def opened(service: ChatService, tmp_path=None, allow: bool = False, **options) -> CaptionParser:
    given = {"model": "m", "url": service.url, "timeout": 5, "concurrency": 4, **options}
    text = ",".join(f"{key}={value}" for key, value in given.items())
    return open_parser(f"llm:{text}", tmp_path, allow)


def expected(caption: str) -> SceneGraph:
    return SceneGraph(
        tuple(part.removeprefix("an ").removeprefix("a ") for part in caption.split(" on ")), (Edge("on", 0, 1),)
    )


def test_a_request_is_of_the_protocol(monkeypatch):
    monkeypatch.setenv("MY_KEY", "secret")
    with ChatService(good) as service:
        parser = opened(service, key="MY_KEY", tokens=77)
        assert parser("a cat on a mat") == expected("a cat on a mat")
    (request,) = service.requests
    roles = [message["role"] for message in request.content["messages"]]
    assert roles == ["system", *("user", "assistant") * len(EXAMPLES), "user"]
    assert request.content["messages"][0]["content"] == RULES
    assert {key: request.content[key] for key in ("model", "temperature", "max_tokens")} == {
        "model": "m",
        "temperature": 0,
        "max_tokens": 77,
    }
    assert request.headers["Authorization"] == "Bearer secret"
    assert "secret" not in json.dumps(parser.identity()) + parser.name + repr(parser.parser.server)
    assert parser.parser.spent() == {"requests": 1, "repeated": 0, "tokens_in": 100, "tokens_out": 10}


def test_the_examples_of_the_prompt_follow_its_rules():
    for caption, answer in EXAMPLES:
        graph = graph_of_answer(answer)
        assert all(word in caption.lower() for node in graph.nodes for word in node.split())
        assert all(edge.predicate in caption.lower() for edge in graph.edges)


BAD = {
    "marks": "no answer at all",
    "marks twice": 2 * written(["cat"], []),
    "marks the wrong way round": f'{CLOSE} {OPEN}{{"entities": ["cat"], "relationships": []}}',
    "no JSON": f'{OPEN}{{"entities": ["cat"], {CLOSE}',
    "no JSON: too deep": f"{OPEN}{'[' * 20_000}{CLOSE}",
    "keys": f'{OPEN}["cat"]{CLOSE}',
    "keys: another": f'{OPEN}{{"entities": ["cat"], "relationships": [], "note": ""}}{CLOSE}',
    "keys of a relationship": f'{OPEN}{{"entities": ["cat"], "relationships": [{{"subject": 0}}]}}{CLOSE}',
    "lists": f'{OPEN}{{"entities": "cat", "relationships": []}}{CLOSE}',
    "no nodes": written([], []),
    "no phrase": written(["cat", "  "], []),
    "no phrase: a number": written(["cat", 3], []),
    "no phrase: an article": written(["cat", "The"], []),
    "no phrase: punctuation": written(["cat", "mat"], [("...", 0, 1)]),
    "index": written(["cat", "mat"], [("on", 0, 2)]),
    "index: negative": written(["cat", "mat"], [("on", -1, 0)]),
    "index: unary": written(["suitcases"], [("stacked upon", 0, 0)]),
    "index: text": written(["cat", "mat"], [("on", "0", 1)]),
    "index: true": written(["cat", "mat"], [("on", True, 0)]),
    "index: fraction": written(["cat", "mat"], [("on", 0, 1.0)]),
    "repeated": written(["cat", "mat"], [("on", 0, 1), ("on", 0, 1)]),
    "too large": written(["cat"] * 65, []),
    "too large: text": "x" * 60_000,
}


@pytest.mark.parametrize("name", BAD)
def test_answers_are_read_strictly(name):
    with pytest.raises(NotAGraph) as error:
        read_graph(BAD[name])
    kind, colon, detail = str(error.value).partition(": ")
    assert colon
    assert detail
    assert name.split(":")[0].startswith(kind)
    assert "\n" not in str(error.value)


def test_mutated_answers_are_graphs_or_refused():
    """2 000 times: characters changed, cut, doubled."""
    rng, start = random.Random(0), written(["brown cat", "mat"], [("lying on", 0, 1)])
    read = 0
    for _ in range(2000):
        text = list(start)
        for _ in range(rng.randint(1, 4)):
            place = rng.randrange(len(text))
            new = rng.choice(('"', "1", "", "}", "[ANS]", "\ud800", "\0", "x"))
            text[place : place + rng.choice((0, 1, 1, 9))] = new
        try:
            graph = read_graph("".join(text))
        except NotAGraph:
            continue
        read += 1
        assert all(graph.nodes)
        assert all(0 <= end < len(graph.nodes) for edge in graph.edges for end in edge[1:])
    assert 0 < read < 1500


def test_a_bad_answer_is_sent_back_with_what_is_wrong():
    def answer(request):
        return good(request) if request.number else Sent(BAD["index"])

    with ChatService(answer) as service:
        parser = opened(service)
        assert parser("a cat on a mat") == expected("a cat on a mat")
    assert "Authorization" not in service.requests[0].headers, "no key is sent unless one is named"
    first, second = (request.content["messages"] for request in service.requests)
    assert second[: len(first)] == first
    assert second[len(first)] == {"role": "assistant", "content": BAD["index"]}
    assert "there are 2 nodes" in second[-1]["content"]


def test_captions_that_cant_be_parsed_are_one_node_and_counted(tmp_path):
    kinds = {"an object 1 on a mat": "index", "an object 2 on a mat": "no JSON", "an object 5 on a mat": "index: unary"}

    def answer(request):
        return Sent(BAD[kinds[request.caption]]) if request.caption in kinds else good(request)

    with ChatService(answer) as s:
        parser, wanted = opened(s, tmp_path), captions(8)
        graphs = parser.parse(wanted)
        assert graphs == [one_node(c) if c in kinds else expected(c) for c in wanted]
        assert parser.counts().fell_back == {"index": 2, "no JSON": 1}
        assert parser.counts().parsed == 5
        assert s.captions() == {c: 3 if c in kinds else 1 for c in wanted}
        assert opened(s, tmp_path).parse(wanted) == graphs, "and from the cache"
        assert len(s.requests) == 14


def thinking(answer: str, kind: str) -> Sent:
    """An answer of a model that thinks aloud: of a graph, and then otherwise."""
    thought = written(["thought"], [])
    contents = {
        "before": f"<think>{thought}</think>\n{answer}",
        "without a beginning": f"{thought}</think>{answer}",
        "a part": [{"type": "thinking", "thinking": thought}, {"type": "text", "text": answer}],
    }
    message = {"content": contents.get(kind, answer)} | ({} if kind in contents else {kind: thought})
    return Sent(body=json.dumps({"choices": [{"message": message}]}).encode())


@pytest.mark.parametrize("kind", ["before", "without a beginning", "a part", "reasoning_content", "reasoning"])
def test_thoughts_are_not_read_as_the_answer(kind):
    with ChatService(lambda request: thinking(good(request).text, kind)) as service:
        parser = opened(service)
        assert parser("a cat on a mat") == expected("a cat on a mat")
        assert len(service.requests) == 1


@pytest.mark.parametrize(
    "message", [{"content": "<think>" + written(["cat"], [])}, {"content": None, "reasoning": "a"}]
)
def test_a_thought_that_does_not_end_is_counted_as_cut_off(message):
    body = json.dumps({"choices": [{"message": message, "finish_reason": "length"}]}).encode()
    with ChatService(lambda request: Sent(body=body)) as service:
        parser = opened(service)
        assert parser("a cat on a mat") == one_node("a cat on a mat")
        assert parser.counts().fell_back == {"cut off": 1}
        assert len(service.requests) == 1, "there is nothing to send back"


@pytest.mark.parametrize(
    "content", ['{"choices": [{"message": {"content": {"text": "x"}}}]}', '{"choices": [{"message": {}}]}']
)
def test_a_content_that_can_not_be_read_is_an_error(content):
    sent = Sent(body=content.encode())
    with ChatService(lambda request: sent) as service, pytest.raises(UserError, match=r"no answer.*no protocol"):
        opened(service)("a cat on a mat")


def flaky(request: Request) -> Sent | None:
    """Every caption fails in its own way first: stalls, hangs up, sends half, no protocol, is busy."""
    kind = int(request.caption.split()[2]) % 6
    if request.number:
        return good(request)
    if kind == 0:
        time.sleep(8)
    busy = Sent("", 503), Sent("", 429, (("Retry-After", "0"),))
    return (good(request), None, good(request)._replace(cut=True), Sent(body=b'{"choices": []}'), *busy)[kind]


def test_requests_are_repeated_until_a_flaky_server_answers():
    with ChatService(flaky) as service:
        parser, wanted = opened(service, timeout=4, concurrency=8), captions(24)
        assert parser.parse(wanted) == [expected(caption) for caption in wanted]
        assert service.captions() == dict.fromkeys(wanted, 2)
        assert parser.parser.spent() == {"requests": 48, "repeated": 24, "tokens_in": 2400, "tokens_out": 240}


# What comes at once of an answer, and what drips after it for ever.
DRIPS = {
    "headers": (b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
    "body": (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b" "),
    "chunk": (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffff\r\n", b" "),
    "error's body": (b"HTTP/1.1 503 Busy\r\nContent-Length: 400\r\n\r\n", b"x"),
}


@pytest.mark.parametrize("kind", DRIPS)
def test_no_part_of_an_answer_can_drip_for_longer_than_the_limit(kind):
    begin, drop = DRIPS[kind]
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def drip():
            taken, _ = listening.accept()
            with taken, contextlib.suppress(OSError):
                taken.sendall(begin)
                while listening.fileno() >= 0:
                    taken.sendall(drop)
                    time.sleep(0.03)

        threading.Thread(target=drip, daemon=True).start()
        url, begun = f"http://127.0.0.1:{listening.getsockname()[1]}/v1", time.monotonic()
        with pytest.raises(chat_server.NoAnswer, match=r"^timeout: "):
            chat_server.ChatServer(url, timeout=1.0, attempts=1).chat({}, threading.Event(), read_reply)
        assert 0.9 < time.monotonic() - begun < 5


def test_retry_after_holds_all_requests():
    times = []

    def answer(request):
        times.append(time.monotonic())
        if len(times) > 1:
            return good(request)
        return Sent("", 429, (("Retry-After", "1"),))

    with ChatService(answer) as service:
        parser, wanted = opened(service, concurrency=1), captions(3)
        assert parser.parse(wanted) == [expected(caption) for caption in wanted]
    assert times[1] - times[0] > 0.9
    assert len(times) == 4


def test_a_server_that_wants_too_long_a_wait_gives_no_answer():
    with ChatService(lambda request: Sent("", 429, (("Retry-After", "86400"),))) as service:
        parser = opened(service, concurrency=1, allow=True)
        assert parser.parse(captions(3)) == [one_node(caption) for caption in captions(3)]
        assert len(service.requests) == 1, "and nothing more is requested of it"


@pytest.mark.parametrize("status", [301, 401, 403, 404])
def test_errors_that_no_repetition_can_mend_are_raised_at_once(status):
    sent = Sent("", status, (("Location", "http://127.0.0.1:9/v1"),), b"no such\nmodel")
    with ChatService(lambda request: sent) as service, pytest.raises(UserError) as error:
        opened(service).parse(captions(20))
    assert f"answers {status}" in str(error.value)
    assert "\n" not in str(error.value)
    assert len(service.requests) <= 4


def test_requests_are_sent_at_once():
    def answer(request):
        time.sleep(0.1)
        return good(request)

    with ChatService(answer) as service:
        opened(service, concurrency=6).parse(captions(18))
        assert 4 <= service.most_at_once <= 6


def test_a_server_that_dies_half_way_and_comes_back(tmp_path):
    """All captions end parsed or counted, the cache stays valid, and the resume requests nothing twice."""
    wanted, answered = captions(60), []

    def dying(request):
        if len(answered) >= 25:
            return None
        answered.append(request.caption)
        return good(request)

    with ChatService(dying) as service:
        parser = opened(service, tmp_path)
        with pytest.raises(UserError, match="35 of 60 captions have no answer") as error:
            parser.parse(wanted)
        assert "\n" not in str(error.value)
        counts = parser.counts()
        assert counts.captions == counts.parsed + sum(counts.fell_back.values()) == 60
        assert counts.parsed == 25
        assert len(service.requests) < 60 + 25, "a server that is gone isn't requested for every caption"
    with ChatService(good) as service:
        again = opened(service, tmp_path)
        assert again.parse(wanted) == [expected(caption) for caption in wanted]
        assert service.captions() == dict.fromkeys(set(wanted) - set(answered), 1)
        assert again.counts().kept == 25
        assert opened(service, tmp_path).parse(wanted) == again.parse(wanted)
        assert len(service.requests) == 35


def test_the_same_parser_goes_on_when_its_server_is_back():
    gone = [True]
    with ChatService(lambda request: None if gone[0] else good(request)) as service:
        parser = opened(service, allow=True, concurrency=2, attempts=2)
        assert parser.parse(captions(5)) == [one_node(caption) for caption in captions(5)]
        gone[0] = False
        assert parser.parse(captions(5)) == [expected(caption) for caption in captions(5)]
        assert parser.counts().fell_back == {}


def test_a_server_that_cant_be_reached_is_an_error():
    with ChatService(good) as service:
        pass
    with pytest.raises(UserError, match=r"5 of 5 captions have no answer.*\(connection: .*run it again"):
        opened(service, concurrency=2, attempts=2).parse(captions(5))


def test_other_models_and_prompts_have_answers_of_their_own(tmp_path, monkeypatch):
    with ChatService(good) as service:
        for _ in range(2):
            opened(service, tmp_path)("a cat on a mat")
        assert len(service.requests) == 1
        opened(service, tmp_path, model="n")("a cat on a mat")
        opened(service, tmp_path, timeout=9, concurrency=1)("a cat on a mat")
        assert len(service.requests) == 2, "how it is requested doesn't matter"
        monkeypatch.setattr("menagerie.generators.parsers.llm.RULES", RULES + " Be brief.")
        opened(service, tmp_path)("a cat on a mat")
        assert len(service.requests) == 3


@pytest.mark.parametrize("kind", [signal.SIGINT, signal.SIGKILL])
def test_a_command_that_is_killed_goes_on(kind, tmp_path):
    wanted, held = captions(40), []
    (tmp_path / "captions.txt").write_text("\n".join(wanted))
    process = None

    def answer(request):
        held.append(request.caption)
        if len(held) == 20:
            process.send_signal(kind)
        if len(held) >= 20:
            time.sleep(1)
            return None
        return good(request)

    with ChatService(answer) as service:
        process = command(tmp_path, service)
        output, errors = process.communicate(timeout=WAIT_SECONDS)
        assert process.returncode in (130, -signal.SIGKILL), errors
        assert "Traceback" not in errors
        assert not (tmp_path / "graphs.json").exists()
    with ChatService(good) as service:
        process = command(tmp_path, service)
        output, errors = process.communicate(timeout=WAIT_SECONDS)
        assert process.returncode == 0, errors
        (lines,) = (tmp_path / "parses").glob("*/graphs.jsonl")
        kept = [json.loads(line)["caption"] for line in lines.read_text().splitlines()]
        assert sorted(kept) == sorted(wanted), "each once"
        assert set(service.captions().values()) == {1}
        assert 20 <= len(service.requests) < 40
        content = json.loads((tmp_path / "graphs.json").read_text())
        assert [graph["caption"] for graph in content["parsers"][0]["graphs"]] == wanted
        assert "40 parsed, 0 fell back" in output


def command(folder, service) -> subprocess.Popen:
    """The command that parses captions.txt."""
    parser = f"llm:model=m,url={service.url},timeout=20,concurrency=4"
    return subprocess.Popen(
        [sys.executable, "-m", "menagerie", "parse", "captions.txt", "--parser", parser],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


MISTAKES = {
    "llm": "needs the name of a model",
    "llm:model=m,url=localhost:8000": "is no address of a server",
    "llm:model=m,url=file:///etc/passwd": "is no address of a server",
    "llm:model=m,key=NO_SUCH_VARIABLE": "the environment has no NO_SUCH_VARIABLE",
    "llm:model=m,url=http://me:secret@host/v1": "has a name, a password or a query",
    "llm:model=m,url=http://host/v1?key=secret": "has a name, a password or a query",
    "llm:model=m,key=BAD_KEY": "the environment has no BAD_KEY that is a key",
    "llm:model=m,concurrency=0": "concurrency must be at least 1",
    "llm:model=m,timeout=nan": "timeout must be a number from 0.1",
    "llm:model=m,attempts=-1": "attempts must be at least 1",
    "llm:model=m,modle=n": "did you mean 'model'?",
    "llm:m": "write llm:OPTION=VALUE",
}


@pytest.mark.parametrize("text", MISTAKES)
def test_wrong_options_are_refused_before_anything_is_sent(text, monkeypatch):
    monkeypatch.setenv("BAD_KEY", "a secret\nkey")
    with pytest.raises(UserError) as error:
        open_parser(text)
    assert MISTAKES[text] in str(error.value)
    assert "\n" not in str(error.value)
    assert "secret" not in str(error.value)
