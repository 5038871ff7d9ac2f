"""A study's command line: options, checks before anything is made, dry run, comparison, and its run."""

import inspect
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from menagerie.envs.core.errors import run_command
from menagerie.envs.core.options import docstring
from menagerie.studies.frame.adaptive import all_arms
from menagerie.studies.frame.checks import check_given, check_preset, check_study
from menagerie.studies.frame.options import EXECUTION
from menagerie.studies.frame.study import AnyStudy, Study
from menagerie.studies.runs.command_line import COMPARE, only_models, parse_study, runs_to_compare
from menagerie.studies.runs.torchrun import processes


def main(presets: Mapping[str, AnyStudy], default: str = "") -> None:
    """Run the study whose file was started, or compare two of its runs. Study files call this at their end.

    `default` is the preset that is used without `--preset`; if empty, it is "laptop" where there is one, else the
    first. Does nothing if another process imports the file only for its classes.
    """
    if not is_started():
        return
    script = sys.modules["__main__"]
    default = default or ("laptop" if "laptop" in presets else next(iter(presets)))
    name, about = Path(script.__file__ or "study").stem, docstring(script)

    def command() -> int | None:
        if processes() == 1:
            return start_study(name, about, presets, default)
        from menagerie.studies.runs.torchrun import run_together

        return run_together(lambda: start_study(name, about, presets, default))

    run_command(command)


def is_started() -> bool:
    """Whether the file whose top-level statement made this call was started as a script; True without such a file."""
    frame = inspect.currentframe()
    while frame and frame.f_code.co_name != "<module>":
        frame = frame.f_back
    return frame is None or frame.f_globals["__name__"] == "__main__"


def start_study(name: str, description: str, presets: Mapping[str, AnyStudy], default: str) -> int | None:
    """Parse the options of the study called `name`, check it, and run it; or do a dry run or a comparison. Returns the
    exit status."""
    for preset, study in presets.items():
        check_preset(preset, study)
    trains = isinstance(presets[default], Study)
    if trains and (runs := runs_to_compare()):
        from menagerie.studies.frame.compare import compare_runs

        print(compare_runs(*runs))
        return None
    preset, study = parse_study(presets, default, description, (COMPARE,) if trains else ())
    check_given(study, presets[preset])
    study = study.fill_in()
    if (status := study.instead()) is not None:
        return status
    check_study(study)
    if isinstance(study, Study):
        study = replace(study, scorers=only_models(study.scorers, study.models))
    if study.dry_run:
        from menagerie.studies.frame.dry_run import dry_run
        from menagerie.studies.frame.rehearsal import check_page

        check_page(study, all_arms(study))
        if not study.forecast():
            dry_run(study)
        return None
    from menagerie.studies.frame.run import run_study
    from menagerie.studies.runs.folder import run_folder

    folder, ignored = study.out or Path(f"runs/{name}-{preset}"), changeable_options(study)
    with run_folder(folder, study.as_recorded(), ignored, study.alone) as out:
        run_study(study, out)
    return None


def changeable_options(study: AnyStudy) -> frozenset[str]:
    """Return the settings that don't affect results, so that they may differ from those recorded in the folder."""
    return EXECUTION | study.growing()
