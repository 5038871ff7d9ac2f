"""Passwords in addresses: what is kept of a command or said of an error has none."""

import re

# As people write them, "/", "?" and "@" within a password too: all before the last "@" that follows a name and ":".
USER = re.compile(r"(://[^:/?#]*:).*@", re.DOTALL)
# Of a query every value: drivers have their own names for keys, passwords and strings that hold one.
QUERY = re.compile(r"(://[^?]*\?).+", re.DOTALL)


def without_passwords(text: str) -> str:
    """One address, or one option that has an address, without its password and without its query."""
    return QUERY.sub(r"\1***", USER.sub(r"\1***@", text))
