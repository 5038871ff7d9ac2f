"""Lists the studies, each with its question.

python -m studies
"""

import ast
from pathlib import Path

from envs.common.command_help import no_options
from envs.common.errors import run_command

FOLDER = Path(__file__).parent


def question(script: Path) -> str:
    """The first line of a study's docstring."""
    return (ast.get_docstring(ast.parse(script.read_text("utf-8"))) or "").partition("\n")[0]


def main() -> None:
    """Print the commands and what each is for."""
    no_options("python -m studies")
    print("usage: python studies/STUDY.py [OPTIONS]; --help shows them, and the presets of a study\n")
    for script in sorted(FOLDER.glob("[!_.]*.py")):
        print(f"  python {script.relative_to(FOLDER.parent).as_posix()}\n      {question(script)}")
    print("\nbeside them: python -m envs (pictures), python -m generators (splits), python -m models (scorers)")


if __name__ == "__main__":
    run_command(main)
