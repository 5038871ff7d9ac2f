"""Where the package `menagerie` lies: in `src`, with links to the four floors. The rest is in pyproject.toml."""

from pathlib import Path

from setuptools import find_packages, setup

FLOORS = ("envs", "generators", "models", "studies")
HOME = Path("src/menagerie")

if all((HOME / floor).is_dir() for floor in FLOORS):
    setup(packages=find_packages("src"), package_dir={"": "src"})
else:  # a copy of the repository that has lost its links, as some archives and file systems do
    found = find_packages(include=[pattern for floor in FLOORS for pattern in (floor, f"{floor}.*")])
    setup(
        packages=["menagerie", *(f"menagerie.{name}" for name in found)],
        package_dir={"menagerie": str(HOME), **{f"menagerie.{floor}": floor for floor in FLOORS}},
    )
