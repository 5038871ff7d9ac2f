"""Commands and errors without the passwords in them."""

import re
from urllib.parse import unquote_plus

# Passwords are looked for only in addresses: of the web with any host and port before a path, of databases also with
# IPv6 hosts. SQLAlchemy takes "/" and "@" for part of a password.
START = r"(?<![\w+.-])(?!(?:sqlite|file)[\w+.-]*:)"
HOST_ALONE = r"(?!(?:https?://[^/?#@:\s]*|[\w+.-]+://\[[\da-f:.]+\])(?::\d+)?(?:[/?#\s'\"]|$))"
# As people write them, with "/", "?" and "@" within a password too: all before the last "@" that follows a name and
# ":". The name may have a "/", and the address may lack its own.
USER = re.compile(
    rf"({START}{HOST_ALONE}(?:[\w+.-]*://(?:[^:/?#]*:|[^:?\s]*:(?!\s))|[a-z][\w+.-]*:/?[^:/?@\s]+:(?![\s/])))(.*)@",
    re.DOTALL | re.IGNORECASE,
)
# All values of a query are removed: drivers have their own names for keys, passwords and strings that hold one.
QUERY = re.compile(r"(://[^?]*\?).+", re.DOTALL)
SETTING = re.compile(
    r"""(\b\w*(?:password|passwd|passphrase|pwd|secret)\s*=\s*)('[^']*'|"[^"]*"|\{[^}]*\}|\S+)""", re.IGNORECASE
)
KEY = re.compile(r"(\b\w*(?:key|token)=)\S+", re.IGNORECASE)


def without_passwords(text: str) -> str:
    """One address, or an option that contains one, without its password and its query."""
    return SETTING.sub(r"\1***", QUERY.sub(r"\1***", USER.sub(r"\1***@", text)))


def error_without_passwords(text: str, address: str) -> str:
    """An error's text without passwords and keys: those of `address`, and those of other addresses in the text."""
    for secret in sorted(passwords(address), key=len, reverse=True):
        text = re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "***", text)
    return KEY.sub(r"\1***", without_passwords(text))


def passwords(address: str) -> set[str]:
    """The passwords in an address, both as written and percent-decoded.

    A password is also split at "/", ":", "?" and "@", because a driver may take a part for the host or the database.
    """
    found = [match[2] for match in USER.finditer(address)]
    for text in (address, unquote_plus(address)):
        found += [re.split("[&;]", match[2])[0].strip("'\"{}") for match in SETTING.finditer(text)]
    written = {word for secret in found for word in (secret, unquote_plus(secret))}
    return {part for secret in written for part in (secret, *re.split("[@/:?]", secret)) if part}
