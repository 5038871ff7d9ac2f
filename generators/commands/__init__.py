"""The commands of `python -m generators`, a file each.

`Config` is its options, with its help as docstring; `run` does what they request and returns the exit status; `read`,
where there is one, reads the options, else they are read as any.
"""

NAMES = ("make", "list", "audit", "inspect", "pack", "export", "parse", "import-hf", "check")
