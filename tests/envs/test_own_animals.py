"""Animals in users' Python files: drawn by any number of workers, measured against limits, refused in one line."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.custom.limits import IN_PAIRS
from menagerie.envs.custom.world_file import own_animals
from menagerie.envs.render import entry_identity, image_identity
from menagerie.envs.render.renderer import Renderer
from menagerie.envs.scene import Object, Scene
from menagerie.envs.worlds import load_world
from tests.command import run_here
from tests.helpers.own_animals import LYNX

BEAST = """
from menagerie.envs.shapes.animal import Animal
from menagerie.envs.shapes.sdf import Ellipsoid

ANIMAL = Animal((Ellipsoid((0, 0, 0.6), (RADII)),), size=SIZE)
"""


def beast(radii: str, size: float) -> str:
    """An egg."""
    return BEAST.replace("(RADII)", f"({radii})").replace("SIZE", str(size))


@pytest.fixture
def own(request):
    """A word for the test's own animals: a process knows each name once."""
    return "".join(chr(97 + byte % 26) for byte in hashlib.sha256(request.node.name.encode()).digest()[:8])


def write(folder, own, animal=LYNX, world='extends = "tiny"\nanimals = ["penguin", "OWN.py"]\n'):
    """The path of a world with one animal of its own."""
    (folder / f"{own}.py").write_text(animal)
    (folder / "mine.toml").write_text(world.replace("OWN", own))
    return str(folder / "mine.toml")


def check(world, *options):
    """`envs check` on a few small scenes."""
    command = [
        sys.executable,
        "-m",
        "menagerie",
        "check-renderer",
        "--world",
        world,
        "--scenes",
        "2",
        "--resolution",
        "32",
        *options,
    ]
    return run_here(command, Path.cwd())


def test_it_is_drawn_by_any_number_of_workers(tmp_path, own):
    world = load_world(write(tmp_path, own))
    assert world.animals == ("penguin", own)
    objects = (Object(own, "red", "left"), Object("penguin", "white", "right"))
    scenes = [Scene(background, objects, view) for background in world.backgrounds for view in range(2)]
    one, many = Renderer(world, 48, tmp_path / "one"), Renderer(world, 48, tmp_path / "many", workers=2)
    many.prepare(scenes)
    images, masks = one.render(scenes)
    assert np.array_equal(many.render(scenes).images, images)
    assert all(set(np.unique(mask)) == {0, 1, 2} for mask in masks)


def test_a_file_of_two_words_and_one_under_another_name(tmp_path, own):
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / f"snow_{own}.py").write_text(LYNX)
    table = f'animals = ["cat", "more/snow_{own}.py", "{own} cub"]\n[animal."{own} cub"]\nfile = "{own}.py"\n'
    world = load_world(write(tmp_path, own, world=table))
    assert world.animals == ("cat", f"snow {own}", f"{own} cub")


def test_its_content_decides_the_identity(tmp_path, own):
    """In processes of their own: one knows one version of an animal."""
    program = (
        "import sys; from menagerie.envs.worlds import load_world; from menagerie.envs.render import *\n"
        "world = load_world(sys.argv[1]); print(image_identity(world, 64), entry_identity(64, world))"
    )

    def identities(animal):
        path = write(tmp_path, own, animal)
        done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=True)
        return done.stdout.split()

    first, again, edited = identities(LYNX), identities(LYNX), identities(LYNX.replace("size=1.5", "size=1.45"))
    assert first == again
    assert not set(first) & set(edited)


def test_sets_decide_no_image(tmp_path, own):
    plain = load_world(write(tmp_path, own))
    grouped = load_world(write(tmp_path, own, world=f'{Path(plain.source).read_text()}[sets]\nbirds = ["penguin"]\n'))
    assert grouped != plain, "rules of one are not those of the other"
    assert image_identity(grouped, 64) == image_identity(plain, 64)
    assert entry_identity(64, grouped) == entry_identity(64, plain)


def test_check_reports_every_limit(tmp_path, own):
    done = check(write(tmp_path, own))
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{own}: length 1.44 m, width 0.82 m, height 1.50 m" in done.stdout
    for limit in ("distance to the frame", "distance to the half beside", "distance to the half above"):
        assert re.search(rf"{limit} +\d+\.\d\d .*>= \d", done.stdout)
    assert re.search(r"width in a pair, least +1[5-9]\.\d\d % of the image >= 15", done.stdout)
    assert re.search(r"width in a pair, greatest +3[0-5]\.\d\d % of the image <= 36", done.stdout)
    assert "MISSED" not in done.stdout


@pytest.mark.parametrize(
    ("radii", "size", "limit", "remedy"),
    [
        ("1, 0.3, 0.3", 2.4, "distance to the frame", "smaller size, or reduce its length or width"),
        ("0.3, 1, 0.3", 2.9, "distance to the half beside", "smaller size, or reduce its length or width"),
        ("0.7, 0.7, 1", 1.9, "distance to the half above", "smaller size, or reduce its height"),
        ("1, 0.3, 0.5", 0.6, "width in a pair, least", "greater size"),
        ("1, 0.5, 0.5", 1.7, "width in a pair, greatest", "smaller size"),
    ],
)
def test_an_animal_that_misses_a_limit_says_what_to_change(tmp_path, own, radii, size, limit, remedy):
    path = write(tmp_path, own, beast(radii, size))
    found = {its.name: its.measure(own, own_animals(Path(path))[own]) for its in IN_PAIRS}
    assert not found[limit].kept
    assert remedy in found[limit].advice
    if limit.startswith("distance"):
        with pytest.raises(UserError, match=f"{own!r} doesn't fit: its .* smaller size"):
            load_world(path)


def test_check_reports_an_animal_that_is_refused(tmp_path, own):
    done = check(write(tmp_path, own, beast("1, 0.3, 0.3", 2.4)))
    assert done.returncode == 2
    assert re.search(r"distance to the frame .*MISSED\n    give it a smaller size, or reduce its length", done.stdout)
    assert "distance to the half above" in done.stdout, "all limits are reported, not the first that is missed"
    assert done.stderr.count("\n") == 1


def test_check_reports_a_width_and_goes_on(tmp_path, own):
    done = check(write(tmp_path, own, beast("1, 0.5, 0.5", 1.7)))
    assert done.returncode == 1
    assert re.search(r"width in a pair, greatest .*MISSED\n    give it a smaller size", done.stdout), done.stdout
    assert "whole image, mean dB" in done.stdout


MISTAKES = [
    ("", "has no animal: it must set ANIMAL = Animal"),
    ("ANIMAL = 5", "has no animal"),
    ("raise SystemExit", "can't be run .SystemExit"),
    ("import nonsense", "can't be run .ModuleNotFoundError"),
    ("ANIMAL = (", "can't be run .SyntaxError"),
    (LYNX.replace("size=1.5", "size=9"), "size of the animal in .* must be at most 3, got 9"),
    (LYNX.replace("size=1.5", "size=1.5, hover=-1"), "hover of the animal in .* must be at least 0, got -1"),
    (LYNX.replace("BODY + HEAD", "()"), "can't be built"),
    (LYNX.replace('tag="eye"', 'tag="eyes"'), "can't be built .ValueError"),
    (LYNX.replace("return np.where", "return 2 + np.where"), "paint of the animal in .* one number from 0 to 1"),
    (LYNX.replace("def spots(points):", "def spots(points):\n    return {}['cat']"), "can't be built .KeyError"),
    (LYNX.replace("(0.32, 0.38, 0.32)", "(0.32, float('nan'), 0.32)"), "can't be built|is open"),
]


@pytest.mark.parametrize(("animal", "message"), MISTAKES, ids=[message for _, message in MISTAKES])
def test_a_bad_file_is_refused(tmp_path, own, animal, message):
    path = write(tmp_path, own, animal)
    with pytest.raises(UserError, match=message) as raised:
        load_world(path)
    assert str(tmp_path) in str(raised.value)
    assert len(str(raised.value).splitlines()) == 1


WORLDS = [
    ('animals = ["penguin", "none.py"]', "animal 'none' needs .*none.py, which is not there"),
    ('animals = ["penguin", "../OWN.py"]', "leads out of"),
    ('animals = ["penguin", "cat.py"]', "animal 'cat' is built in"),
    ('animals = ["penguin", "giant_tortoise.py"]', "'giant tortoise' is built in"),
    ('animals = ["penguin", "Lynx2.py"]', "a name is lower-case words"),
    ('animals = ["penguin", "OWN.py", "OWN.py"]', "at least 2 different names"),
    ('animals = ["penguin", "OWN.py"]\n[animal.OWN]\nfile = "OWN.py"', "listed as a file and has a table"),
    ('[animal.OWN]\nfile = "OWN.py"\nsize = 1.2', "has its size, hover and direction in OWN.py"),
    ('[animal.OWN]\nfile = "OWN.py"\nmesh = "a.ply"', "needs one mesh or file"),
    ('[animals]\nOWN = "OWN.py"', "animals can't be {"),
    ("sets = 5", "sets can't be 5"),
    ('[sets]\nbirds = "penguin"', "sets can't be {"),
    ('[sets]\nbirds = ["pengin"]', "set 'birds': unknown animal 'pengin'; did you mean 'penguin'"),
    ("[sets]\nbirds = []", "set 'birds' is empty"),
    ('[sets]\npenguin = ["rabbit"]', "set 'penguin' is named like an animal"),
    ('[sets]\nBirds = ["penguin"]', "set 'Birds': a name is lower-case words"),
    ('[sets]\nbirds = ["penguin", "penguin"]', "names an animal twice"),
]


@pytest.mark.parametrize(("world", "message"), WORLDS, ids=[message for _, message in WORLDS])
def test_a_wrong_world_names_itself(tmp_path, own, world, message):
    path = write(tmp_path, own, world='extends = "tiny"\n' + world)
    with pytest.raises(UserError, match=message.replace("OWN", own)):
        load_world(path)


def test_sets_are_inherited_with_the_animals_that_are_left(tmp_path, own):
    sets = '[sets]\nflightless = ["penguin", "elephant"]\nlong = ["crocodile"]\n'
    path = write(tmp_path, own, world=f'extends = "tiny"\n{sets}')
    assert dict(load_world(path).sets) == {"flightless": ("penguin", "elephant"), "long": ("crocodile",)}
    (tmp_path / "less.toml").write_text(
        'extends = "mine.toml"\nanimals = ["penguin", "rabbit"]\n[sets]\nlong = ["rabbit"]\n'
    )
    assert dict(load_world(str(tmp_path / "less.toml")).sets) == {"flightless": ("penguin",), "long": ("rabbit",)}
