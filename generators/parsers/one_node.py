"""No parsing: every caption is one node."""

from collections.abc import Iterator, Mapping, Sequence

from menagerie.generators.parsers.parser import Parsed
from menagerie.generators.parsers.registry import NoOptions, ParserSpec


class OneNode:
    """Leaves captions as they are."""

    def identity(self) -> Mapping[str, str]:
        """Its name."""
        return {"parser": "one-node"}

    def parse(self, captions: Sequence[str]) -> Iterator[Parsed]:
        """No graph of any."""
        return (Parsed(caption, None, "left whole") for caption in captions)

    def spent(self) -> Mapping[str, int]:
        """Nothing."""
        return {}


PARSER = ParserSpec("one-node", "leaves each caption whole", lambda options: OneNode(), NoOptions, kept=False)
