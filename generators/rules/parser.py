"""Parses the text of a hold-out rule (see `menagerie.generators.rules.rule`), by recursive descent."""

import re
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import product
from typing import NamedTuple, NoReturn

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.scene import MOST_OBJECTS
from menagerie.envs.slots import PLACES
from menagerie.envs.world import World
from menagerie.generators.rules.rule import (
    OBJECT_FIELDS,
    OPERATORS,
    SCENE_FIELDS,
    AnyOf,
    Comparison,
    Conjunction,
    Rule,
    Term,
    relation_words,
)

MOST_CHARACTERS = 10_000  # each term takes time on every scene
MOST_DEPTH = 50  # of parentheses and `not`, to bound the recursion
FIELDS = (*OBJECT_FIELDS, *SCENE_FIELDS)
OF_ANIMALS = ("animal", "pair", "first", "second")  # fields that are compared with animals
# Split files store views as int32.
NUMBERS = {"count": range(1, MOST_OBJECTS + 1), "view": range(2**31), "index": range(MOST_OBJECTS)}
KEYWORDS = {"and": "&", "or": "|", "not": "!"}
TOKEN = re.compile(
    r"""(?P<quoted>"[^"]*"|'[^']*')|(?P<word>[\w.-]+)|(?P<sign>!=|<=|>=|[=<>!&|(){}\[\],])|(?P<stray>\S)"""
)


class Token(NamedTuple):
    """A piece of a rule: its kind ("quoted", "word", "end" or the sign itself), its text and its position, from 1."""

    kind: str
    text: str
    place: int


def parse_rule(text: str, world: World) -> Rule:
    """Parse a rule; raises, with the character's position, for a syntax error or a name that `world` lacks."""
    parser = Parser(text, world)
    if parser.next.kind == "end":
        parser.fail("the rule is empty; write one such as texture=red & animal=cat", parser.next)
    expression = parser.alternatives()
    parser.need("'&', '|' or the end", "end")
    return Rule(text, expression, tuple(named for named in world.sets if named[0] in parser.used))


class Parser:
    """Parses one rule, from left to right; most methods parse the part that they are named after."""

    def __init__(self, text: str, world: World) -> None:
        if len(text) > MOST_CHARACTERS:
            start = f"rule {text[:40]!r}... has {len(text)} characters"
            raise UserError(f"{start}; at most {MOST_CHARACTERS} are read: write several rules, or sets of animals")
        self.text, self.depth = text, 0
        self.sets, self.used = dict(world.sets), set[str]()
        self.names = {
            **{name: (*world.animals, *self.sets) for name in OF_ANIMALS},
            "texture": world.textures,
            "size": world.sizes,
            "background": world.backgrounds,
            "slot": PLACES,
            "relation": tuple(relation_words()),
        }
        self.ahead = deque([*map(self.token, TOKEN.finditer(text)), Token("end", "", len(text) + 1)])

    def token(self, match: re.Match) -> Token:
        text, group = match.group(), match.lastgroup
        token = Token(text if group == "sign" else KEYWORDS.get(text, group), text, match.start() + 1)
        if token.kind == "stray":
            quote = f"the quote {text} is never closed"
            self.fail(quote if text in "\"'" else f"{text!r} means nothing; join comparisons by & or |", token)
        return token

    @property
    def next(self) -> Token:
        """The next token, without consuming it; at the end, the token "end"."""
        return self.ahead[0]

    def take(self, *kinds: str) -> str:
        """Consume the next token and return its text, if its kind is among `kinds`; else return ""."""
        return self.ahead.popleft().text if self.next.kind in kinds else ""

    def need(self, what: str, *kinds: str) -> str:
        """The same, but raise, because `what` was expected, if its kind isn't among `kinds`."""
        if self.next.kind not in kinds:
            self.fail(f"expected {what}, got {repr(self.next.text) if self.next.text else 'the end'}", self.next)
        return self.ahead.popleft().text

    def words(self, what: str, *kinds: str) -> str:
        """Consume all words that follow or, if `kinds` allow it, a quoted text; words are joined by single spaces."""
        first = self.need(what, *kinds)
        return " ".join(first[1:-1].split() if first[0] in "\"'" else (first, *iter(lambda: self.take("word"), "")))

    def fail(self, problem: str, token: Token) -> NoReturn:
        """Raise a one-line error with the rule and the position of `token`."""
        raise UserError(f"rule {self.text!r}, character {token.place}: {problem}")

    def alternatives(self) -> AnyOf:
        return AnyOf(tuple(self.chain("|", self.conjunction)))

    def conjunction(self) -> Conjunction:
        start, parts = self.next, self.chain("&", self.part)
        comparisons = tuple(part for part in parts if isinstance(part, Comparison))
        groups = tuple(part for part in parts if isinstance(part, AnyOf))
        return Conjunction(comparisons, groups, self.relations_of_second(comparisons, start))

    def chain(self, sign: str, parse: Callable) -> list:
        """Parse a list of parts separated by `sign`."""
        parts = [parse()]
        while self.take(sign):
            parts.append(parse())
        return parts

    def relations_of_second(self, comparisons: tuple[Comparison, ...], start: Token) -> frozenset[str]:
        """Return the relations that the comparisons name by the word for the second slot, such as "right" for
        left/right. Raises if they name a relation by both words and also use `first` or `second`."""
        named = {direction for comparison in comparisons for direction in comparison.directions}
        turned = frozenset(relation for relation, second in named if second)
        ends = [comparison.left.field for comparison in comparisons if comparison.left.field in ("first", "second")]
        for relation in sorted(turned):
            if ends and (relation, False) in named:
                self.fail(f"{ends[0]!r} needs one of {relation.replace('/', ' and ')}, not both", start)
        return turned

    def part(self) -> Comparison | AnyOf:
        """Parse a comparison, a negated part or a group in parentheses."""
        if self.take("!"):
            part = self.parse_nested(self.part)
            part = AnyOf((Conjunction((part,)),)) if isinstance(part, Comparison) else part
            return replace(part, negated=not part.negated)
        if self.take("("):
            group = self.parse_nested(self.alternatives)
            self.need("'&', '|' or ')'", ")")
            return group
        return self.comparison()

    def parse_nested(self, parse: Callable) -> Comparison | AnyOf:
        """Call `parse` one level deeper; raises if the nesting is too deep."""
        if self.depth == MOST_DEPTH:
            self.fail(f"a rule nests at most {MOST_DEPTH} parentheses and nots; write it with fewer", self.next)
        self.depth += 1
        inside = parse()
        self.depth -= 1
        return inside

    def comparison(self) -> Comparison:
        """Parse a field, an operator, and a field of another object, a value, or several in braces."""
        left, sign = self.term(FIELDS), self.next
        operator = self.need(f"one of {' '.join(OPERATORS)}", *OPERATORS)
        if operator not in ("=", "!="):
            if left.field != "count":
                self.fail(f"{operator!r} compares count only; use = or !=", sign)
            return Comparison(left, operator, (self.value("count"),))
        start = self.next
        if start.kind == "word" and self.ahead[1].kind == "[":
            right = self.term(OBJECT_FIELDS)
            if left.field == "pair" or right.field != ("animal" if left.field in OF_ANIMALS else left.field):
                self.fail(f"{left.field} can't be compared with {right.field}", start)
            return Comparison(left, operator, right)
        if self.take("{"):
            given = self.chain(",", lambda: self.value(left.field))
            self.need("',' or '}'", "}")
        else:
            given = [self.value(left.field)]
        if left.field == "relation":
            directions = tuple(relation_words()[word] for word in given)
            relations = tuple(relation for relation, _ in directions)
            return Comparison(left, operator, relations, directions if operator == "=" else ())
        if left.field == "pair" and len(given) != 2:
            self.fail("pair is a set of two animals, such as {cat, lion}", start)
        members = [self.members(left.field, value) for value in given]
        values = (tuple(sorted(pair)) for pair in product(*members)) if left.field == "pair" else sum(members, ())
        return Comparison(left, operator, tuple(values))

    def members(self, field: str, value: str | int) -> tuple[str | int, ...]:
        """The members of a set if the field takes animals; otherwise the value alone."""
        if field not in OF_ANIMALS or value not in self.sets:
            return (value,)
        self.used.add(value)
        return self.sets[value]

    def term(self, fields: Iterable[str]) -> Term:
        """Parse a field, with or without an index."""
        start = self.next
        field = self.choose("field", self.words(f"a field ({', '.join(fields)})", "word"), fields, start)
        if field == "size" and not self.names["size"]:
            self.fail("this world has no sizes; leave size out, or choose a world that has them", start)
        bracket = self.next
        if not self.take("["):
            return Term(field)
        if field not in OBJECT_FIELDS:
            self.fail(f"{field} is of the whole scene and takes no index", bracket)
        index = self.value("index")
        self.need("']'", "]")
        return Term(field, index)

    def value(self, field: str) -> str | int:
        """Parse a number, or a name that the world has."""
        start, what = self.next, "whole number" if field in NUMBERS else "name"
        words = self.words(f"a {what} for {field}", "word", "quoted")
        if start.kind == "word" and field != "index" and self.next.kind in (*OPERATORS, "["):
            self.fail(f"'&' or '|' is missing before {words.split()[-1]!r}", self.next)
        if field not in NUMBERS:
            return self.choose("animal" if field in OF_ANIMALS else field, words, self.names[field], start)
        numbers = NUMBERS[field]
        if not re.fullmatch("[0-9]{1,10}", words) or int(words) not in numbers:
            self.fail(f"{field} is a whole number from {numbers[0]} to {numbers[-1]}, got {words!r}", start)
        return int(words)

    def choose(self, kind: str, name: str, options: Iterable[str], token: Token) -> str:
        """Return `name`, read at `token`, if it is among `options`; else raise, and suggest the nearest."""
        try:
            return choose(kind, name, options)
        except UserError as error:
            self.fail(str(error), token)
