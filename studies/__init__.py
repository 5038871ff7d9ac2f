"""Questions: each study is its options, a plan of runs, and a page."""


def __getattr__(name: str) -> object:
    """`menagerie.studies.read(FOLDER)`: the records of finished runs. Loaded at its first use."""
    if name == "read":
        from menagerie.studies.frame.records import read

        return read
    raise AttributeError(f"module 'menagerie.studies' has no attribute {name!r}")
