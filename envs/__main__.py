"""Pictures of the world, and checks of what draws it.

python -m envs gallery --out scenes.png        # contact sheets (envs/gallery/kinds.py)
python -m envs check                           # the compositor against a direct renderer, or an external one
python -m envs physics                         # settled poses and distances between animals
"""

import sys

from envs.common.errors import choose, run_command


def main() -> int | None:
    """Run the command named first, with the options after it."""
    commands = ("gallery", "check", "physics")
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(f"{__doc__}\nusage: python -m envs {{{','.join(commands)}}} [--help]")
        return 0 if len(sys.argv) > 1 else 2
    name = choose("command", sys.argv[1], commands)
    import tyro

    if name == "gallery":
        from envs.gallery import kinds as module
    elif name == "check":
        from envs.checks import against_reference as module
    else:
        from envs.checks import physics as module
    config = tyro.cli(module.Config, args=sys.argv[2:], prog=f"python -m envs {name}", description=module.__doc__)
    return module.main(config)


if __name__ == "__main__":
    run_command(main)
