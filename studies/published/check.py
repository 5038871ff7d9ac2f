"""Compares what docs keep and repeat of published runs with their records, or writes it anew."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from menagerie.envs.core.errors import UserError
from menagerie.envs.core.files import scratch_folder, write_text
from menagerie.envs.core.reading import read_text
from menagerie.studies.published.blocks import figures_shown, filled, pages_of_docs
from menagerie.studies.published.draw import kept_texts
from menagerie.studies.published.pack import INDEX, RECORDS, index_text, published_names
from menagerie.studies.published.restore import restore_run

Files = Mapping[Path, str | None]
"""Texts of files; None for one that should not be there."""


def check_published(names: tuple[str, ...], measured: Path, store: Path, write: bool = False) -> bool:
    """Draw the pages of these published runs (none: all) anew, and print what of the folder `measured` and of the
    blocks in docs differs from them; with `write` it is written instead. Returns whether anything is wrong."""
    records, pages = measured / RECORDS, [*pages_of_docs(measured)]
    if not (index := published_names(records)):
        raise UserError(f"{records} has no published run; run this in a checkout of the repository")
    shown = figures_shown(pages)
    tasks: dict[str, Callable[[], Files]] = {
        name: partial(files_of, name, measured, store, {figure for run, figure in shown if run == name})
        for name in names or index
    }
    tasks[INDEX] = lambda: {records / INDEX: index_text(records)}
    tasks |= {str(page): partial(filled_page, page, measured) for page in pages}
    wrong = [name for name, make in tasks.items() if not bring_up_to_date(name, make, write)]
    strange = {its.name for its in measured.iterdir() if its.is_dir()} - {*index, RECORDS}
    for name in sorted(strange):
        print(f"{measured / name} is of no published run; delete it, or add its run")
    if wrong and not write:
        print("menagerie published write makes what differs from the records")
    return bool(wrong or strange)


def files_of(name: str, measured: Path, store: Path, figures: set[str]) -> Files:
    """Return the files that are kept of a run, made from its records."""
    with scratch_folder() as folder:
        about = restore_run(name, folder / name, measured / RECORDS, store)
        texts = kept_texts(name, about, folder / name, store, figures)
    former: dict[Path, str | None] = dict.fromkeys((measured / name).glob("*"))
    return former | {measured / name / file: text for file, text in texts.items()}


def filled_page(page: Path, measured: Path) -> Files:
    return {page: filled(page, measured)}


def bring_up_to_date(name: str, make: Callable[[], Files], write: bool) -> bool:
    """Compare files with what they should be, or write them; print what differs. Returns whether all is right then."""
    try:
        files = make()
    except UserError as error:
        print(f"{name}: {error}", flush=True)
        return False
    wrong = {path: text for path, text in files.items() if (read_text(path) if path.exists() else None) != text}
    for path, text in wrong.items() if write else ():
        path.unlink() if text is None else write_text(path, text)
    said = ", ".join(f"{path} {'is new' if write else 'differs'}" for path in wrong)
    if said or len(files) > 1:
        print(f"{name}: {said or 'as it is kept'}", flush=True)
    return write or not wrong
