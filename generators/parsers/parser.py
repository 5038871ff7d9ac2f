"""The protocol of caption parsers, and the class that runs a parser, caches its graphs and falls back to one node."""

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.graph import SceneGraph
from menagerie.generators.parsers.graph_json import NotAGraph, ParseCache


class Parsed(NamedTuple):
    """The result of parsing one caption."""

    caption: str
    graph: SceneGraph | None
    """The scene graph; None if parsing failed."""
    problem: str = ""
    """Reason for a missing graph: "KIND: DETAIL"; failures are counted by kind."""
    answered: bool = True
    """Whether this is the parser's answer, to be cached; False if its server gave none."""


def try_parse(caption: str, read: Callable[[Any], SceneGraph], given: Any) -> Parsed:
    """What `read` makes of a caption's facts or tree; a failure if it raises `NotAGraph`."""
    try:
        return Parsed(caption, read(given))
    except NotAGraph as error:
        return Parsed(caption, None, str(error))


@runtime_checkable
class Parser(Protocol):
    """Makes scene graphs of captions in everyday English. Each parser is a `PARSER` of a file in this folder."""

    def identity(self) -> Mapping[str, Any]:
        """Everything that decides the parser's graphs, as JSON values: model, prompt, version of its rules."""

    def parse(self, captions: Sequence[str]) -> Iterator[Parsed]:
        """Parse distinct captions; yields each once, in any order, as soon as it is finished."""

    def spent(self) -> Mapping[str, int]:
        """The cost of parsing so far, such as numbers of requests and tokens."""
        return {}


class Unanswered(UserError):
    """Raised if a parser's server gave no answer to some captions."""


class ParseCounts(NamedTuple):
    """Numbers of captions by result."""

    captions: int
    """Number of distinct captions."""
    parsed: int
    fell_back: Mapping[str, int]
    """Number of captions represented by a single node, by reason."""
    kept: int
    """Number of captions that came from the cache."""

    @property
    def text(self) -> str:
        reasons = ", ".join(f"{number} {kind}" for kind, number in sorted(self.fell_back.items()))
        fell = f"{sum(self.fell_back.values())} fell back to one node" + f" ({reasons})" * bool(reasons)
        return f"{self.captions} captions: {self.parsed} parsed, {fell}; {self.kept} were known before"


class CaptionParser:
    """Gives scene graphs of captions, by one parser, and keeps them in memory and in `cache`. A caption that can't be
    parsed becomes a single node with the whole text, and is counted."""

    def __init__(self, name: str, parser: Parser, cache: ParseCache | None, allow_unanswered: bool = False) -> None:
        """With `allow_unanswered`, a caption to which the parser's server gave no answer becomes a single node until it
        is parsed again; otherwise `parse` raises `Unanswered`."""
        self.name, self.parser, self.cache, self.allow_unanswered = name, parser, cache, allow_unanswered
        self._known: dict[str, Parsed] = {}
        self._kept = 0

    def identity(self) -> dict[str, Any]:
        return dict(self.parser.identity())

    def __call__(self, caption: str) -> SceneGraph:
        return self.parse([caption])[0]

    def parse(self, captions: Sequence[str], report: Callable[[int, int], None] | None = None) -> list[SceneGraph]:
        """Return the scene graphs of captions, in their order. Many at once are faster than one by one.

        Calls `report` with the number finished and the total, and caches each answer as it comes. Processes that share
        a cache parse one after another, so that all read the same graphs. Raises `UserError` if the parser can't work
        at all, and, unless `allow_unanswered`, `Unanswered` for captions without an answer.
        """
        wanted = list(dict.fromkeys(captions))
        if self._missing(wanted):
            with contextlib.nullcontext() if self.cache is None else self.cache.hold_alone():
                self._add(wanted, report)
        self._check_answered(wanted)
        return [self.graph(caption) for caption in captions]

    def graph(self, caption: str) -> SceneGraph:
        """Return the graph of a caption that was parsed before: a single node with the whole text if parsing failed."""
        return self._known[caption].graph or SceneGraph((caption,))

    def fell_back(self, caption: str) -> bool:
        """Whether parsing failed for a caption that was parsed before."""
        return self._known[caption].graph is None

    def unanswered(self) -> list[str]:
        """The captions so far that have no answer yet."""
        return [caption for caption, parsed in self._known.items() if not parsed.answered]

    def counts(self) -> ParseCounts:
        outcomes = self._known.values()
        failed = Counter(outcome.problem.partition(":")[0] for outcome in outcomes if outcome.graph is None)
        return ParseCounts(len(outcomes), len(outcomes) - failed.total(), failed, self._kept)

    def _add(self, captions: Sequence[str], report: Callable[[int, int], None] | None) -> None:
        """Parse the captions that are missing."""
        missing = self._missing(captions)
        done = len(captions) - len(missing)
        for parsed in self.parser.parse(missing) if missing else ():
            self._known[parsed.caption] = parsed
            if self.cache is not None and parsed.answered:
                self.cache.keep(parsed.caption, (parsed.graph, parsed.problem))
            done += 1
            if report:
                report(done, len(captions))

    def _missing(self, captions: Sequence[str]) -> list[str]:
        """Load captions from the cache, and return those that it lacks, also those without an answer before."""
        for caption in captions:
            if caption in self._known and not self._known[caption].answered:
                del self._known[caption]
            if self.cache is not None and caption not in self._known and (entry := self.cache.get(caption)):
                self._known[caption] = Parsed(caption, *entry)
                self._kept += 1
        return [caption for caption in captions if caption not in self._known]

    def _check_answered(self, captions: Sequence[str]) -> None:
        lost = [caption for caption in captions if not self._known[caption].answered]
        if lost and not self.allow_unanswered:
            raise Unanswered(
                f"{self.name}: {len(lost)} of {len(captions)} captions have no answer, the first is {lost[0]!r} "
                f"({self._known[lost[0]].problem}); run it again, which requests these alone"
            )
