"""Pictures of the world, and checks of its renderer.

python -m envs gallery --out scenes.png        # contact sheets (envs/gallery/kinds.py)
python -m envs check                           # own animals' limits; the compositor against others (--external)
python -m envs physics                         # settled poses and distances between animals
python -m envs photos FOLDER                   # worlds of cut-out photographs, from a Debian package
"""

import sys

from envs.common.command_help import chosen_command, read_options
from envs.common.errors import UserError, run_command

RENAMED = {"--witness": "--external"}  # options of earlier versions


def main() -> int | None:
    """Run the command named first, with the options after it."""
    name = chosen_command("python -m envs", __doc__, ("gallery", "check", "physics", "photos"))
    for option in sys.argv[2:]:
        if option in RENAMED:
            raise UserError(f"{option} is now {RENAMED[option]}")
    if name == "gallery":
        from envs.gallery.kinds import GalleryConfig as Config
        from envs.gallery.kinds import main as run
    elif name == "check":
        from envs.checks.against_reference import CheckConfig as Config
        from envs.checks.against_reference import main as run
    elif name == "photos":
        from envs.stamps.command import PhotosConfig as Config
        from envs.stamps.command import main as run
    else:
        from envs.checks.physics import PhysicsConfig as Config
        from envs.checks.physics import main as run
    description = sys.modules[Config.__module__].__doc__ or ""
    return run(read_options(Config, sys.argv[2:], f"python -m envs {name}", description))


if __name__ == "__main__":
    run_command(main)
