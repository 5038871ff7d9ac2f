"""What docs/worlds.md has to paste in an empty folder: an own animal with its world, a split and its audit; cut-outs
and a grid."""

import re
from pathlib import Path

import matplotlib.image

from menagerie.generators.storage.split_file import read_split
from tests.command import paste
from tests.helpers.cutout_files import draw

DOCS = (Path(__file__).parents[2] / "docs" / "worlds.md").read_text()
SECTION = DOCS.partition("## An animal of your own\n")[2].partition("\n## ")[0]

PHOTOGRAPHS = DOCS.partition("## Photographs as animals\n")[2].partition("\n## ")[0]
TEN = ("lion", "lion-2", "zebra", "snow_leopard", "pig", "crow", "bear", "bear-2", "camel", "dodo")


def test_a_folder_of_ten_cutouts_becomes_a_trained_grid(tmp_path):
    """Drawn ones, in sizes and colours of their own; no Python and no world file is written by hand."""
    for number, name in enumerate(TEN):
        draw(tmp_path / "pictures" / f"{name}.png", (20 * number, 90, 230 - 20 * number), 80 + 8 * number, 90)
    commands = re.search(r"```sh\nls .*?\n(.*?)```", PHOTOGRAPHS, re.DOTALL)[1].replace("--scenes 20", "--scenes 3")
    commands = commands.replace(
        "--preset smoke", "--preset smoke --models clip --hard-negatives 0 --views 1 --steps 20"
    )
    printed = paste(commands, tmp_path)
    assert "photos.toml: 8 objects, 10 photographs" in printed
    assert matplotlib.image.imread(tmp_path / "animals.png").shape[0] > 8 * 224
    assert (tmp_path / "runs/binding_grid-smoke/report.html").stat().st_size


def test_the_commands_for_an_own_animal_work_as_they_stand(tmp_path):
    commands = re.search(r"```sh\n(.*?)```", SECTION, re.DOTALL)[1]
    printed = paste(commands, tmp_path)
    shown = re.search(r"```\n(lynx: .*?)```", SECTION, re.DOTALL)[1]
    assert shown in printed, "the limits that the page shows are those that are measured"
    assert re.search(r"\d+ checks hold, 0 fail", printed)
    assert matplotlib.image.imread(tmp_path / "animals.png").shape[0] > 6 * 224
    (file,) = tmp_path.glob("store/felines-64px-*/binding-*.h5")
    split = read_split(file)
    assert split.recipe["sets"] == ["felines={cat, lion, lynx}"]
    held_out = split.subsets["held_out"]
    felines = {"cat", "lion", "lynx"}
    assert all(any(t.texture == "red" and t.animal in felines for t in s.objects) for s in held_out.scenes)
    assert any("the lynx is red" in text for text in held_out.captions)
    train = split.subsets["train"]
    assert any("the lynx is white" in text for text in train.captions)
    assert not any(re.search("the (lynx|cat|lion) is red", text) for text in train.captions)
