"""Sample images of the worlds of a study."""

from pathlib import Path

from envs.common.figure_files import write_png
from studies.grids.figures import sample_sheet
from studies.photographs.lines import Study

SAMPLES = 5


def sample_sheets(study: Study, folder: Path) -> dict[str, str]:
    """Of each world that is tested a row of images with captions, as files and as data URIs."""
    from studies.photographs.data import tests_in
    from studies.photographs.trainings import BINDING, SPATIAL, Training

    sheets: dict[str, str] = {}
    model = study.config.models[0]
    kinds = (BINDING, SPATIAL) if "zero-shot" in study.config.parts else (BINDING,)
    for kind in kinds:
        for test in study.jobs.tests(Training(model, 0, kind)):
            name = f"{kind}, {test.label}"
            file = folder / f"samples-{name.replace(', ', '-')}.png"
            bench = next((its for its in tests_in(test).values() if len(its.data)), None)
            if bench is None:
                continue
            swaps = [item for item in bench.items if item.group == "swap"]
            chosen = [swaps[len(swaps) * (2 * k + 1) // (2 * SAMPLES)] for k in range(SAMPLES)]
            images = bench.images([item.images[0] for item in chosen]).permute(0, 2, 3, 1).numpy()
            captions = [(item.texts[0].text, item.texts[1].text) for item in chosen]
            sheets[name] = write_png(file, sample_sheet(list(images), captions))
    return sheets
