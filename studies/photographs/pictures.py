"""Sample images of the worlds of a study."""

from pathlib import Path

from menagerie.envs.core.figures import write_png
from menagerie.studies.grids.figures import sample_sheet
from menagerie.studies.photographs.data import Tested, tests_in
from menagerie.studies.photographs.jobs import Jobs
from menagerie.studies.photographs.trainings import BINDING, SPATIAL, ZERO_SHOT, Training

SAMPLES = 5


def sample_sheets(jobs: Jobs, folder: Path) -> dict[str, str]:
    """Of each test a row of images with captions, as files and as data URIs."""
    sheets: dict[str, str] = {}
    for kind in (BINDING, SPATIAL) if ZERO_SHOT in jobs.config.parts else (BINDING,):
        for test in jobs.tests(Training(jobs.config.models[0], 0, kind)):
            name = f"{kind}, {test.label}"
            file = folder / f"samples-{name.replace(', ', '-')}.png"
            if sheet := sample_of(test, file):
                sheets[name] = sheet
    return sheets


def sample_of(test: Tested, file: Path) -> str:
    """Some images of a test, drawn evenly, as a file and a data URI; empty where it has none."""
    bench = next((its for its in tests_in(test).values() if len(its.data)), None)
    if bench is None:
        return ""
    swaps = [item for item in bench.items if item.group == "swap"]
    chosen = [swaps[len(swaps) * (2 * k + 1) // (2 * SAMPLES)] for k in range(SAMPLES)]
    images = bench.images([item.images[0] for item in chosen]).permute(0, 2, 3, 1).numpy()
    captions = [(item.texts[0].text, item.texts[1].text) for item in chosen]
    return write_png(file, sample_sheet(list(images), captions))
