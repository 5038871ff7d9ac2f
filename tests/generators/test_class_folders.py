"""Which class a folder of images is of: by what it is called, never by its place among the folders."""

import shutil
from collections import Counter

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.reading import read_json
from menagerie.generators.benchmarks.class_folders import (
    DATA,
    clip_names,
    folder_classes,
    known_classes,
    known_templates,
    set_name,
)
from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.studies.scoring.check import wrong_counts

LISTED = read_json(DATA / "folders.json")
CLASSES = clip_names()["classes"]


def make(root, name, folders, **files):
    """A set's folders, empty, and its text files."""
    for folder in folders:
        (root / name / folder).mkdir(parents=True)
    for file, content in files.items():
        (root / name / f"{file}.txt").write_text(content, encoding="utf-8")
    return root / name


def names_in(root, name, folders, **files):
    return folder_classes(make(root, name, folders, **files))


def refusal(root, name, folders, **files):
    with pytest.raises(UserError) as error:
        names_in(root, name, folders, **files)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


@pytest.mark.parametrize("name", LISTED["folders"])
def test_listed_folders_are_their_classes(tmp_path, name):
    """In whatever spelling the set's own name is, with hidden files and folders of other systems beside them."""
    folders = LISTED["folders"][name]
    expected = CLASSES.get(name) or LISTED["names"][name]
    assert len(set(folders)) == len(folders) == len(expected)
    made = make(tmp_path, name.replace("-", "_").upper(), [*folders, "__MACOSX", ".cache"])
    (made / ".DS_Store").touch()
    assert folder_classes(made) == dict(zip(folders, expected, strict=True))


def test_variants_of_imagenet_have_its_names_and_templates(tmp_path):
    """By WordNet's ids; ImageNet-V2 by number. Of ObjectNet the classes that ImageNet hasn't are left out."""
    of_id = dict(zip(LISTED["folders"]["imagenet1k"], CLASSES["imagenet1k"], strict=True))
    for name in ("imagenet-a", "imagenet-r", "imagenet-o"):
        assert LISTED["names"][name] == [of_id[folder] for folder in LISTED["folders"][name]]
        assert len(LISTED["folders"][name]) == 200
    assert (of_id["n01498041"], of_id["n12267677"]) == ("stingray", "acorn")
    assert len(known_templates("imagenet1k")) == 80
    for name in ("imagenetv2", "imagenet-a", "imagenet-r", "imagenet_sketch", "ImageNet-Sketch", "objectnet"):
        assert known_templates(name) == known_templates("imagenet1k")
    numbered = names_in(tmp_path, "imagenetv2", map(str, range(1000)))
    assert (numbered["0"], numbered["999"]) == ("tench", "toilet paper")
    objects = LISTED["folders"]["objectnet"]
    found = names_in(tmp_path, "objectnet", objects + LISTED["others"]["objectnet"])
    assert (len(objects), len(LISTED["others"]["objectnet"]), list(found)) == (113, 200, objects)
    assert found["iron_for_clothes"] == "iron (for clothes)"


def test_numbers_are_places_among_the_names_or_the_sets_own(tmp_path):
    emotions = names_in(tmp_path, "fer2013", map(str, range(7)))
    assert list(emotions.values()) == ["angry", "disgusted", "fearful", "happy", "sad", "surprised", "neutral"]
    signs = names_in(tmp_path, "gtsrb", [f"{k:05d}" for k in range(43)])
    assert list(signs.values()) == CLASSES["gtsrb"]
    assert "there is no class left for ['10']" in refusal(tmp_path, "svhn", map(str, range(1, 11)))
    assert "there is no class left for ['102']" in refusal(tmp_path, "flowers", map(str, range(1, 103)))


def test_folders_without_a_class_are_named(tmp_path):
    """None of four folders of words is the class that stands in its place; one misspelt name spoils no other."""
    problem = refusal(tmp_path, "kitti_closest_vehicle_distance", ["above_20", "below_20", "below_8", "no_vehicle"])
    assert (
        "there is no class left for ['above_20', 'below_20', 'below_8', 'no_vehicle']; there is no folder for ['a photo"
        in problem
    )
    pets = [name.lower().replace(" ", "_") for name in CLASSES["pets"]]
    assert list(names_in(tmp_path, "pets", pets).values()) == CLASSES["pets"]
    shutil.rmtree(tmp_path / "pets")
    problem = refusal(tmp_path, "pets", [*pets[:5], "bengall", *pets[6:]])
    assert "there is no class left for ['bengall']; there is no folder for ['Bengal']; copy" in problem
    problem = refusal(tmp_path, "mnist", [*map(str, range(10)), "07"])
    assert "for the 10 classes of mnist: there is no class left for ['7']; copy" in problem
    assert "isn't known; write FOLDER, a tab and" in refusal(tmp_path, "own", ["n01440764", "n99999999"])


@pytest.mark.parametrize(
    ("folders", "lines", "expected"),
    [
        (("3", "10"), "10\tdog\r\n3\tcat\r\n\r\n", {"3": "cat", "10": "dog"}),
        (("b", "a"), "b\ta bee\na\tan ant\n", {"a": "an ant", "b": "a bee"}),
        (("0", "1", "2"), "0\t2\n1\t0\n2\t1", {"0": "2", "1": "0", "2": "1"}),
        (("0", "1"), "0\ta\u2028b\n1\tc\x85d\x0be", {"0": "a\u2028b", "1": "c\x85d\x0be"}),
    ],
)
def test_class_folders_take_names_from_classes_txt(tmp_path, folders, lines, expected):
    """By the folder that a line names; a newline alone ends a line."""
    found = names_in(tmp_path, "own", folders, classes=lines)
    assert found == expected
    assert list(found) == list(expected)


@pytest.mark.parametrize(
    ("folders", "lines", "problem"),
    [
        (("a", "b"), "far\nnear", "has 2 lines for 2 folders, which don't match: ['a', 'b', 'far', 'near']; write"),
        (("a", "b"), "a\nb", "which don't match: ['a', 'b']; write FOLDER, a tab and the NAME"),
        (("a", "b"), "a\tcat\nb\tdog\na\tcow", "has 3 lines for 2 folders, which don't match: ['a', 'b']; "),
        (("0", "1", "2"), "2\n0\n1", "which don't match: ['0', '1', '2']; "),
        (("1", "01"), "1\tcat\n001\tdog", "which don't match: ['001', '01']; "),
        (("a", "b"), "\u2028\n", "has an empty line, or none at all"),
    ],
)
def test_lines_of_classes_txt_that_match_no_folder_are_refused(tmp_path, folders, lines, problem):
    assert problem in refusal(tmp_path, "own", folders, classes=lines)


@pytest.mark.parametrize("name", ["imagenetv2", "ImageNetV2", "imagenet_v2", "imagenet-a", "ImageNet_A", "Pets"])
def test_the_size_of_a_set_is_known_in_whatever_spelling(name):
    spec = load_benchmark("zero-shot-torchvision" if name == "Pets" else "zero-shot")
    ((task, official, found),) = wrong_counts(spec, Counter({name: 5}))
    assert (task, official, found) == (name, spec.sets[set_name(name)], 5)
    assert not list(wrong_counts(spec, Counter({name: official})))


def test_names_of_folders_are_clip_benchmarks_words(tmp_path):
    """Underscores are spaces, but in CIFAR-100; a dash stays where CLIP_benchmark knows the set."""
    assert names_in(tmp_path, "cifar100", ["aquarium_fish", "bee"])["aquarium_fish"] == "aquarium_fish"
    assert names_in(tmp_path, "dtd", ["polka-dotted", "banded"])["polka-dotted"] == "polka-dotted"
    assert names_in(tmp_path, "own", ["polka-dotted", "red_cat"]) == {
        "polka-dotted": "polka dotted",
        "red_cat": "red cat",
    }
    assert known_classes("cifar100") is None
