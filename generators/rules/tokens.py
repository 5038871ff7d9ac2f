"""The tokens of a hold-out rule, and errors that name the position of the faulty one."""

import re
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple, NoReturn

from menagerie.envs.core.errors import UserError, choose

MOST_CHARACTERS = 10_000  # each term takes time on every scene
KEYWORDS = {"and": "&", "or": "|", "not": "!"}
TOKEN = re.compile(
    r"""(?P<quoted>"[^"]*"|'[^']*')|(?P<word>[\w.-]+)|(?P<sign>!=|<=|>=|[=<>!&|(){}\[\],])|(?P<stray>\S)"""
)


class Token(NamedTuple):
    """A piece of a rule: its kind ("quoted", "word", "end" or the sign itself), its text and its position, from 1."""

    kind: str
    text: str
    place: int


class Tokens:
    """A rule's text, read from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        if len(text) > MOST_CHARACTERS:
            start = f"rule {text[:40]!r}... has {len(text)} characters"
            raise UserError(f"{start}; at most {MOST_CHARACTERS} are read: write several rules, or groups of animals")
        self.ahead = deque([*map(self.token, TOKEN.finditer(text)), Token("end", "", len(text) + 1)])

    @property
    def next(self) -> Token:
        """The next token, without consuming it; at the end, the token "end"."""
        return self.ahead[0]

    def token(self, match: re.Match) -> Token:
        """Make the token of a match; raises for a character that starts no token."""
        text, group = match.group(), match.lastgroup
        token = Token(text if group == "sign" else KEYWORDS.get(text, group), text, match.start() + 1)
        if token.kind == "stray" and text in "\"'":
            self.fail(f"the quote {text} is never closed", token)
        if token.kind == "stray":
            self.fail(f"{text!r} means nothing; join comparisons by & or |", token)
        return token

    def take(self, *kinds: str) -> str:
        """Consume the next token and return its text, if its kind is among `kinds`; else return ""."""
        return self.ahead.popleft().text if self.next.kind in kinds else ""

    def words(self) -> str:
        """Consume all words that follow, or a quoted text; words are joined by single spaces."""
        if quoted := self.take("quoted"):
            return " ".join(quoted[1:-1].split())
        return " ".join(iter(lambda: self.take("word"), ""))

    def choose(self, kind: str, name: str, options: Iterable[str], token: Token) -> str:
        """Return `name`, read at `token`, if it is among `options`; else raise, and suggest the nearest."""
        try:
            return choose(kind, name, options)
        except UserError as error:
            self.fail(str(error), token)

    def expected(self, what: str) -> NoReturn:
        """Raise because the next token isn't `what`."""
        self.fail(f"expected {what}, got {repr(self.next.text) if self.next.text else 'the end'}", self.next)

    def fail(self, problem: str, token: Token) -> NoReturn:
        """Raise a one-line error with the rule and the position of `token`."""
        raise UserError(f"rule {self.text!r}, character {token.place}: {problem}")
