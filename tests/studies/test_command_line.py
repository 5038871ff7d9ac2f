"""What command lines share."""

import sys

import pytest

from menagerie.envs.core.errors import UserError
from menagerie.studies import ablations, binding_grid, spatial_grid, tune
from menagerie.studies.runs.command_line import RENAMED, parse

STUDIES = {study.__name__: study for study in (ablations, binding_grid, spatial_grid, tune)}


def parsed(monkeypatch, study, *arguments):
    monkeypatch.setattr(sys, "argv", [f"{study.__name__}.py", "--preset", "smoke", *arguments])
    return parse(study.PRESETS, "laptop", "")[1]


@pytest.mark.parametrize("option", RENAMED)
@pytest.mark.parametrize("study", STUDIES)
def test_an_option_of_before_is_one_line_with_its_new_name(study, option, monkeypatch):
    """However it is written."""
    for arguments in ([option], [option, "0.5"], [f"{option}=0.5"], [f"--{option[2:].replace('-', '_')}", "0.5"]):
        with pytest.raises(UserError) as caught:
            parsed(monkeypatch, STUDIES[study], "--seeds", "2", *arguments)
        assert str(caught.value).startswith(f"{option} is {f'now {RENAMED[option]}' if RENAMED[option] else 'gone: '}")


def test_the_new_names_are_options(monkeypatch):
    new = [name for name in RENAMED.values() if name.startswith("--")]
    assert new == ["--single-object-phase", "--mask-false-negatives", "--no-mask-false-negatives"]
    recipe = parsed(monkeypatch, binding_grid, new[0], "0.25", new[2]).recipe
    assert (recipe.single_object_phase, recipe.mask_false_negatives) == (0.25, False)
    assert parsed(monkeypatch, binding_grid, new[1]).recipe.mask_false_negatives
