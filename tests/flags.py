"""The flags of tyro's parser."""

import warnings

import tyro


def flags_read(kind: type, default: object = None) -> set[str]:
    """All flags of a dataclass except --help."""
    given = {} if default is None else {"default": default}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # tyro would rather have its parser to itself
        parser = tyro.extras.get_parser(kind, **given)
    flags = {flag for action in parser._actions for flag in action.option_strings}
    return {flag for flag in flags if flag.startswith("--") and not flag.startswith("--help")}
