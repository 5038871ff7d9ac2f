"""The audit of exports: they are made again from the recipe in their data sheet."""

import io
import re
import shutil
import tarfile

import numpy as np
import pytest
from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.generators.audit.exported import PICTURES
from menagerie.generators.audit.rendered import SAMPLE
from menagerie.generators.audit.run import audit
from menagerie.generators.export import formats
from menagerie.generators.export.formats import FORMATS, INSTANCES
from menagerie.generators.export.write import export
from menagerie.generators.splits.binding import BindingRecipe
from tests.helpers.splits import failed, make_split

TEXTS = "files and texts are those of the recipe"


@pytest.fixture(scope="module", params=FORMATS)
def exported(request, split, tmp_path_factory):
    """An export that nobody may change."""
    out = tmp_path_factory.mktemp("exports") / request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(formats, "SHARD_SAMPLES", 50)
        export(split, request.param, out, ("validation", "unseen_pairs"))
    return out


@pytest.fixture(autouse=True)
def small_tar_files(monkeypatch):
    monkeypatch.setattr(formats, "SHARD_SAMPLES", 50)


@pytest.fixture
def copied_export(exported, tmp_path):
    """The same, to be damaged."""
    return shutil.copytree(exported, tmp_path / exported.name)


def test_an_untouched_export_passes(exported):
    assert failed(exported) == []
    assert failed_with_all(exported) == []
    assert not any(finding.skipped for finding in audit(exported))


@pytest.mark.parametrize("pixels", ["sample", "all"])
def test_pictures_are_drawn_from_those_that_are_exported(exported, pixels):
    """SugarCrepe's format leaves out records without a negative, and train."""
    number = sum(path.suffix == ".png" for path in exported.rglob("*"))
    for path in exported.glob("*.tar"):
        with tarfile.open(path) as tar:
            number += sum(name.endswith(".png") for name in tar.getnames())
    (detail,) = [finding.detail for finding in audit(exported, pixels) if finding.claim == PICTURES]
    least = number if pixels == "all" else min(number, SAMPLE)
    compared, of = map(int, re.match(r"(\d+) of (\d+) pictures", detail).groups())
    assert of == number
    assert compared >= least


def test_tests_of_several_rules_are_exported_too(tmp_path):
    rules = ("animal=rabbit & texture=red", "animal=penguin & texture=white")
    recipe = BindingRecipe(world="tiny", pairs=0.5, views=1, test_views=1, test_scenes=10, hold_out=rules)
    export(make_split(tmp_path, recipe, 16), "coco", tmp_path / "out")
    assert (tmp_path / "out/held_out-1.json").exists()
    assert failed(tmp_path / "out") == []


def failed_with_all(folder):
    return [finding.claim for finding in audit(folder, "all") if not finding.holds]


def test_another_caption_is_found(copied_export):
    if copied_export.name == "webdataset":
        change_member(copied_export / "validation-000000.tar", "txt", lambda old: old.replace(b"and", b"or"))
    else:
        path = copied_export / "validation.json"
        old, new = ('"iscrowd": 0', '"iscrowd": 1') if copied_export.name == INSTANCES else (" and ", " or ")
        path.write_text(path.read_text().replace(old, new, 1))
    assert failed(copied_export) == [TEXTS]


def test_another_picture_is_found_among_all(copied_export):
    if copied_export.name == "webdataset":
        change_member(copied_export / "validation-000000.tar", "png", mirrored)
    else:
        path = copied_export / "images" / "validation" / "000000000.png"
        path.write_bytes(mirrored(path.read_bytes()))
    assert failed_with_all(copied_export) == [PICTURES]


def test_a_missing_file_is_found(copied_export):
    min(path for path in copied_export.rglob("*validation*") if path.suffix in (".json", ".tar")).unlink()
    (finding,) = (its for its in audit(copied_export) if not its.holds)
    assert "validation" in finding.detail
    assert "export the split again" in finding.detail


def test_another_recipe_in_the_sheet_is_found(copied_export):
    sheet = copied_export / "README.md"
    sheet.write_text(sheet.read_text().replace('"seed": 0', '"seed": 1'))
    assert "the split is what its recipe makes" in failed(copied_export)


def test_a_folder_that_is_no_export_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"is not a whole export of a split .* export the split again"):
        audit(tmp_path)


def mirrored(content):
    buffer = io.BytesIO()
    pixels = np.asarray(Image.open(io.BytesIO(content)))[:, ::-1]
    Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, "PNG")
    return buffer.getvalue()


def change_member(path, suffix, change):
    """Replace the first member of a tar file that has the suffix."""
    with tarfile.open(path) as tar:
        members = [(member.name, tar.extractfile(member).read()) for member in tar]
    first = next(name for name, _ in members if name.endswith(suffix))
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in members:
            new = change(content) if name == first else content
            member = tarfile.TarInfo(name)
            member.size = len(new)
            tar.addfile(member, io.BytesIO(new))
