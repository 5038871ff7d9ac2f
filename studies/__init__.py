"""Questions: each study is its options, a plan of runs, and a page."""


def __getattr__(name: str) -> object:
    """Load `read` at its first use: `menagerie.studies.read(FOLDER)` gives the records of finished runs."""
    if name == "read":
        from menagerie.studies.frame.records import read

        return read
    raise AttributeError(f"module 'menagerie.studies' has no attribute {name!r}")
