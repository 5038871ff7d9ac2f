"""Parses the text of a hold-out rule (see `menagerie.generators.rules.rule`) into a tree, by recursive descent."""

import re
from collections.abc import Callable, Iterable
from itertools import product

from menagerie.envs.scene import MOST_THINGS
from menagerie.envs.slots import PLACES
from menagerie.envs.world import World
from menagerie.generators.rules.tokens import Token, Tokens
from menagerie.generators.rules.tree import (
    OPERATORS,
    RELATION_WORDS,
    SCENE_FIELDS,
    THING_FIELDS,
    AnyOf,
    Comparison,
    Conjunction,
    Expression,
    Not,
    Term,
)

MOST_DEPTH = 50  # of parentheses and `not`, to bound the recursion
FIELDS = (*THING_FIELDS, *SCENE_FIELDS)
# Split files store views as int32.
NUMBERS = {"count": range(1, MOST_THINGS + 1), "view": range(2**31), "index": range(MOST_THINGS)}
VALUES_OF = {
    "pair": "animal",
    "first": "animal",
    "second": "animal",
}  # kinds of names by field, if they differ from the field's name


class Parser(Tokens):
    """Parses one rule; most methods parse the part that they are named after."""

    def __init__(self, text: str, world: World) -> None:
        super().__init__(text)
        self.depth = 0
        self.groups, self.used = dict(world.groups), set[str]()
        self.names = {
            "animal": world.animals,
            "texture": world.textures,
            "size": world.sizes,
            "background": world.backgrounds,
            "slot": PLACES,
            "relation": RELATION_WORDS,
        }

    def rule(self) -> Expression:
        if self.next.kind == "end":
            self.fail("the rule is empty; write one such as texture=red & animal=cat", self.next)
        expression = self.alternatives()
        return expression if self.next.kind == "end" else self.expected("'&', '|' or the end")

    def alternatives(self) -> Expression:
        """Parse conjunctions joined by `|`."""
        parts = self.chain("|", self.conjunction)
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def conjunction(self) -> Conjunction:
        """Parse comparisons and groups joined by `&`."""
        start = self.next
        parts = self.chain("&", self.part)
        comparisons = tuple(part for part in parts if isinstance(part, Comparison))
        groups = tuple(part for part in parts if isinstance(part, Expression))
        return Conjunction(comparisons, groups, self.turned(comparisons, start))

    def chain(self, sign: str, parse: Callable) -> list:
        """Parse a list of parts separated by `sign`."""
        parts = [parse()]
        while self.take(sign):
            parts.append(parse())
        return parts

    def turned(self, comparisons: tuple[Comparison, ...], start: Token) -> frozenset[str]:
        """Return the relations that the comparisons name by the word for the second slot, such as "right" for
        left/right. Raises if they name a relation by both words and also use `first` or `second`."""
        named = {direction for comparison in comparisons for direction in comparison.directions}
        turned = frozenset(relation for relation, second in named if second)
        ends = [comparison.left.field for comparison in comparisons if comparison.left.field in ("first", "second")]
        for relation in sorted(turned):
            if ends and (relation, False) in named:
                self.fail(f"{ends[0]!r} needs one of {relation.replace('/', ' and ')}, not both", start)
        return turned

    def part(self) -> Comparison | Expression:
        """Parse a comparison, a negated part or a group in parentheses."""
        if self.take("!"):
            part = self.nested(self.part)
            return Not(Conjunction((part,)) if isinstance(part, Comparison) else part)
        if self.take("("):
            group = self.nested(self.alternatives)
            return group if self.take(")") else self.expected("'&', '|' or ')'")
        return self.comparison()

    def nested(self, parse: Callable) -> Comparison | Expression:
        """Call `parse` one level deeper; raises if the nesting is too deep."""
        if self.depth == MOST_DEPTH:
            self.fail(f"a rule nests at most {MOST_DEPTH} parentheses and nots; write it with fewer", self.next)
        self.depth += 1
        inside = parse()
        self.depth -= 1
        return inside

    def comparison(self) -> Comparison:
        """Parse a field, an operator and the right-hand side."""
        left = self.term(FIELDS)
        sign = self.next
        operator = self.take(*OPERATORS) or self.expected(f"one of {' '.join(OPERATORS)}")
        if operator in ("=", "!="):
            return self.equality(left, operator)
        if left.field != "count":
            self.fail(f"{operator!r} compares count only; use = or !=", sign)
        return Comparison(left, operator, (self.value("count"),))

    def equality(self, left: Term, operator: str) -> Comparison:
        """Parse the right-hand side of = or !=: another thing's field, or names or numbers."""
        start = self.next
        if start.kind == "word" and self.ahead[1].kind == "[":
            return Comparison(left, operator, self.other(left))
        given = self.values(left.field)
        if left.field == "relation":
            directions = tuple(RELATION_WORDS[word] for word in given)
            relations = tuple(relation for relation, _ in directions)
            return Comparison(left, operator, relations, directions if operator == "=" else ())
        if left.field == "pair":
            if len(given) != 2:
                self.fail("pair is a set of two animals, such as {cat, lion}", start)
            both = product(*(self.members("pair", name) for name in given))
            return Comparison(left, operator, tuple(tuple(sorted(pair)) for pair in both))
        return Comparison(left, operator, tuple(name for word in given for name in self.members(left.field, word)))

    def members(self, field: str, value: str | int) -> tuple[str | int, ...]:
        """The members of a group if the field takes animals; otherwise the value alone."""
        if VALUES_OF.get(field, field) != "animal" or value not in self.groups:
            return (value,)
        self.used.add(value)
        return self.groups[value]

    def other(self, left: Term) -> Term:
        """Parse an indexed field that `left` can be compared with."""
        start = self.next
        right = self.term(THING_FIELDS)
        if left.field == "pair" or right.field != VALUES_OF.get(left.field, left.field):
            self.fail(f"{left.field} can't be compared with {right.field}", start)
        return right

    def term(self, fields: Iterable[str]) -> Term:
        """Parse a field, with or without an index."""
        start = self.next
        if start.kind != "word":
            self.expected(f"a field ({', '.join(fields)})")
        field = self.choose("field", self.words(), fields, start)
        if field == "size" and not self.names["size"]:
            self.fail("this world has no sizes; leave size out, or choose a world that has them", start)
        bracket = self.next
        if not self.take("["):
            return Term(field)
        if field not in THING_FIELDS:
            self.fail(f"{field} is of the whole scene and takes no index", bracket)
        index = self.value("index")
        return Term(field, index) if self.take("]") else self.expected("']'")

    def values(self, field: str) -> list[str | int]:
        """Parse a value, or several in braces."""
        if not self.take("{"):
            return [self.value(field)]
        given = self.chain(",", lambda: self.value(field))
        return given if self.take("}") else self.expected("',' or '}'")

    def value(self, field: str) -> str | int:
        """Parse a number, or a name that the world has."""
        start = self.next
        if start.kind not in ("word", "quoted"):
            self.expected(f"a {'whole number' if field in NUMBERS else 'name'} for {field}")
        words = self.words()
        if start.kind == "word" and field != "index" and self.next.kind in (*OPERATORS, "["):
            self.fail(f"'&' or '|' is missing before {words.split()[-1]!r}", self.next)
        if field in NUMBERS:
            return self.number(field, words, start)
        kind = VALUES_OF.get(field, field)
        groups = self.groups if kind == "animal" else ()
        return self.choose(kind, words, [*self.names[kind], *groups], start)

    def number(self, field: str, digits: str, start: Token) -> int:
        """The number in `digits`; raises if it is outside the field's range."""
        numbers = NUMBERS[field]
        if not re.fullmatch("[0-9]{1,10}", digits) or int(digits) not in numbers:
            self.fail(f"{field} is a whole number from {numbers[0]} to {numbers[-1]}, got {digits!r}", start)
        return int(digits)
