"""A study on photographs from its command line: what it is refused for, what it only reports, and its run."""

from dataclasses import replace
from pathlib import Path

from menagerie.studies.real_training.check import check, check_machine, report_states
from menagerie.studies.real_training.config import EXECUTION, Config
from menagerie.studies.real_training.describe import folders_of
from menagerie.studies.runs.command_line import only


def launch(preset: str, config: Config, plain: Config) -> int | None:
    """Check, then report or run; returns the exit status."""
    check(config, plain)
    folders = folders_of(config)
    if config.check:
        return report_states(config, config.data_root, folders)
    check_machine(config)
    from menagerie.studies.real_training.run import plan, run
    from menagerie.studies.runs.folder import run_folder

    config = replace(config, scorers=only(config.scorers, config.models))
    out = config.out or Path(f"runs/real_data-{preset}")
    if config.dry_run:
        plan(config, folders)
        return None
    with run_folder(out, config, EXECUTION | {"seeds"}) as folder:
        run(config, folder, folders)
    return None
