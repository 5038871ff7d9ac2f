"""Makes the folders of the four floors one package, `menagerie`; everything else is in pyproject.toml."""

from setuptools import find_packages, setup

FLOORS = ("envs", "generators", "models", "studies")
OWN = "studies/package"  # the package `menagerie` itself: public names and the command

folders = find_packages(include=[pattern for floor in FLOORS for pattern in (floor, f"{floor}.*")])
setup(
    packages=["menagerie", *(f"menagerie.{name}" for name in folders if name != OWN.replace("/", "."))],
    package_dir={"menagerie": OWN, **{f"menagerie.{floor}": floor for floor in FLOORS}},
)
