"""Pictures of the world, and checks of its renderer.

python -m envs gallery --out scenes.png        # contact sheets (envs/gallery/kinds.py)
python -m envs check                           # the compositor against a direct renderer, or external ones (--external)
python -m envs physics                         # settled poses and distances between animals
"""

import sys

from envs.common.errors import UserError, choose, run_command

RENAMED = {"--witness": "--external"}  # options of earlier versions


def main() -> int | None:
    """Run the command named first, with the options after it."""
    commands = ("gallery", "check", "physics")
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(f"{__doc__}\nusage: python -m envs {{{','.join(commands)}}} [--help]")
        return 0 if len(sys.argv) > 1 else 2
    name = choose("command", sys.argv[1], commands)
    for option in sys.argv[2:]:
        if option in RENAMED:
            raise UserError(f"{option} is now {RENAMED[option]}")
    import tyro

    if name == "gallery":
        from envs.gallery.kinds import GalleryConfig as Config
        from envs.gallery.kinds import main as run
    elif name == "check":
        from envs.checks.against_reference import CheckConfig as Config
        from envs.checks.against_reference import main as run
    else:
        from envs.checks.physics import PhysicsConfig as Config
        from envs.checks.physics import main as run
    description = sys.modules[Config.__module__].__doc__
    return run(tyro.cli(Config, args=sys.argv[2:], prog=f"python -m envs {name}", description=description))


if __name__ == "__main__":
    run_command(main)
