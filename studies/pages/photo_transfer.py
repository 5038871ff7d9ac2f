"""The page of a study of photographs: its sentences, and a figure and a table for each question."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from menagerie.studies.analysis.spread import MANY_SHARED
from menagerie.studies.analysis.tables import DASH
from menagerie.studies.frame.estimate import estimate_or_dash
from menagerie.studies.frame.parts import Facts, Heading, Paragraph, Part, Rows, Sentence
from menagerie.studies.photographs import trained_on
from menagerie.studies.photographs.answers import (
    KNOWN,
    MEASURES,
    RECOGNITION,
    SWAPS,
    Answers,
    GroupComparison,
    PhotographWorth,
    images_to_targets,
)
from menagerie.studies.photographs.cells import tests_of_run
from menagerie.studies.photographs.figures import TestSamples, question_figure
from menagerie.studies.photographs.trainings import (
    BINDING,
    FACTORS_PART,
    FINE_TUNING,
    HELD_OUT,
    OWN,
    PHOTOGRAPHS,
    SPATIAL,
    SYNTHETIC,
    WORTH,
    ZERO_SHOT,
    TransferRun,
)
from menagerie.studies.report.figures import model_label

# The names of tests in tables.
TESTED = {HELD_OUT: "held-out photographs", PHOTOGRAPHS: "all photographs", SYNTHETIC: "rendered animals"}
HEADINGS = {
    ZERO_SHOT: "What a model of rendered animals does on photographs",
    FINE_TUNING: "What a few photographs give",
    WORTH: "What a synthetic image is worth",
    FACTORS_PART: "What helps",
}
WORTHS = (
    "The fewest images, of the numbers tried, whose mean over seeds reaches a target; and how many times more it takes "
    "from scratch than after synthetic training. `>`: not reached with the most images, so that the ratio is a bound. "
    "`–`: reached in neither way. A model that needs no image after synthetic training counts as needing one. The "
    "interval is over draws of seeds and animal pairs, for the few numbers of images tried, between which nothing was "
    "searched. Draws in which neither way reaches the target have no ratio. The interval leaves them out and says how "
    "many they are; above 5 % it is unbounded."
)
HEADERS = {
    ZERO_SHOT: ("model", "test", "measure", "rendered (%)", "photographed (%)", "photographed − rendered"),
    FINE_TUNING: (
        *("model", "measure", "photographs in training", "tested on", "from scratch (%)", "after synthetic (%)"),
        "after synthetic − from scratch",
    ),
    WORTH: (
        *("model", "measure", "target (%)", "images from scratch", "images after synthetic", "ratio"),
        "95 % interval",
    ),
    FACTORS_PART: ("model", "changed", "tested on", "measure", "as it is (%)", "changed (%)", "difference"),
}
# What each factor changes.
FACTOR_WORDS = {
    "views": "a quarter of the views of each training scene",
    "textures": "four further textures, plain colours",
    "augmentation": "no random zoom, shift and contrast of training images, or these if the recipe has none",
    "backgrounds": "photographs of --backgrounds beside the world's own backgrounds",
    "vocabulary": "all animals of the synthetic world, not only those that there are photographs of",
}


def parts(answers: Answers) -> Iterator[Part]:
    """Yield the parts of the page, the answer first."""
    study, rows = answers.study, answers.rows
    if study.rehearsed:
        yield Sentence(
            "A rehearsal: cut-outs of rendered animals take the place of photographs. The numbers say nothing about "
            "real ones."
        )
    said = [*gap_sentences(rows.get(ZERO_SHOT, [])), *step_sentences(rows.get(FINE_TUNING, []))]
    yield from map(Sentence, said or ["No question has an answer yet."])
    figures = {part: question_figure(part, found, study) for part, found in rows.items()}
    yield from list(figures.values())[:1]
    yield Paragraph(explain_numbers(study, rows))
    yield Facts(MEASURES)
    for line in study.prepared.left_out:
        yield Sentence(line)
    for number, (part, found) in enumerate(rows.items()):
        yield Heading(HEADINGS[part])
        if number:
            yield figures[part]
        if part == FACTORS_PART:
            yield Facts({name: text for name, text in FACTOR_WORDS.items() if name in answers.material.factors})
        yield question_table(part, found, study)
    yield Heading("What training had of the tests")
    trained = list(trained_on.trained_on_rows(study, answers.done))
    yield Rows("trained-on", trained_on.HEADER, trained, says=trained_on.SAYS, folded="All trainings and tests")
    yield from photograph_parts(study)


def explain_numbers(study: Any, rows: Mapping[str, Sequence[Any]]) -> str:
    """Explain what the numbers are, and over how many animal pairs they are means."""
    levels = [its for found in rows.values() for row in found if isinstance(row, GroupComparison) for its in row[3:]]
    pairs = sorted({its.clusters for its in levels} - {0})
    text = "Accuracy in percent; in brackets the interval. Only records count whose animal pairs no training run of a "
    text += "comparison shows, rendered or photographed."
    if pairs:
        text += f" A measure is over {pairs[0]} to {pairs[-1]} different animal pairs."
        few = study.seeds > 1 and pairs[0] < MANY_SHARED
        text += f" Where they are fewer than {MANY_SHARED} and seeds share them, the interval is for these pairs." * few
    return text


def photograph_parts(study: Any) -> Iterator[Part]:
    """Yield the numbers of photographs, the check that none is both trained on and tested, and images of the tests."""
    prepared = study.prepared
    several, others = len(prepared.photographs.several), len(prepared.photographs.others)
    text = f"Photographs of each tested animal; {several} animals have several. There are {others} other animals."
    yield Heading("The photographs", text)
    yield Facts({name: f"{len(files)}" for name, files in prepared.photographs.tested.items()})
    if prepared.audit:
        header = ["photographs in training", "number", "photographs tested", "their number", "in both"]
        says = "No photograph of a test is trained on: the files of both worlds were compared by SHA-256, not by name."
        rows = [list(map(str, row)) for row in prepared.audit]
        yield Rows("audit", header, rows, says=says)
    for kind in (BINDING, SPATIAL) if ZERO_SHOT in study.parts else (BINDING,):
        for test in tests_of_run(study, TransferRun(study.models[0], 0, kind)):
            yield TestSamples(f"samples-{kind}-{test.label.replace(', ', '-')}", test, says=f"{kind}, {test.label}.")


def gap_sentences(rows: Sequence[GroupComparison]) -> Iterator[str]:
    """Yield a sentence for each model and test on how a model of rendered animals does on photographs."""
    for model, test in dict.fromkeys(row[:2] for row in rows):
        gaps = {row.measure: row for row in rows if row[:2] == (model, test)}
        recognition, swaps = gaps[RECOGNITION], gaps[SWAPS]
        known = estimate_or_dash(gaps[KNOWN].difference) if KNOWN in gaps else "– (no scene is, rendered)"
        yield (
            f"{model_label(model)}, {test}: from rendered to photographed animals recognition changes by "
            f"{estimate_or_dash(recognition.difference)} points to {estimate_or_dash(recognition.second)} %, swaps by "
            f"{estimate_or_dash(swaps.difference)} to {estimate_or_dash(swaps.second)} %, and swaps where all is "
            f"recognised by {known}."
        )


def step_sentences(rows: Sequence[GroupComparison]) -> Iterator[str]:
    """Yield sentences on photographs in training, for the largest number of photographs of the tested animals."""
    of_tested = [row for row in rows if row.place.world == OWN and row.place.count]
    most = max((row.place.count for row in of_tested), default=0)
    for row in of_tested:
        if row.place.count == most:
            yield (
                f"{model_label(row.model)}, {row.measure} on held-out photographs after training on up to {most} "
                f"others of each animal: {estimate_or_dash(row.first)} % from scratch, "
                f"{estimate_or_dash(row.second)} % after synthetic training "
                f"({estimate_or_dash(row.difference)} points)."
            )


def question_table(part: str, rows: Sequence[Any], study: Any) -> Rows:
    """Return the table of a question. The one on what a synthetic image is worth has a row for each target."""
    if part == WORTH:
        return Rows(
            part, HEADERS[part], [worth_row(row) for row in images_to_targets(rows, study.targets)], says=WORTHS
        )
    cells = ((model_label(row.model), *setting_cells(part, row), *map(estimate_or_dash, row[3:])) for row in rows)
    return Rows(
        part, HEADERS[part], list(dict.fromkeys(cells))
    )  # without photographs both lines of a figure are the same


def setting_cells(part: str, row: GroupComparison) -> tuple[str, str] | tuple[str, str, str]:
    """Return the cells after the model that say what a row compares."""
    if part == ZERO_SHOT:
        return row.place, row.measure
    if part == FACTORS_PART:
        return row.place[0], TESTED[row.place[1]], row.measure
    count, own = row.place.count, row.place.world == OWN
    photographs = f"{count} of each animal" if own else f"of {count} other animals"
    return row.measure, photographs if count else "none", TESTED[row.place.test]


def worth_row(row: PhotographWorth) -> list[str]:
    """Return a row of the table of worth: the fewest images with which a model reaches a target, and how many times
    more it needs from scratch. The ratio is a bound if one of the two ways never reaches the target."""
    tuned, ratio = "0" if str(row.tuned) == "1" else str(row.tuned), row.scratch.images / row.tuned.images
    sign = "≥ " if row.scratch.censored else "≤ " if row.tuned.censored else ""
    neither = row.scratch.censored and row.tuned.censored
    times = DASH if neither else f"{sign}{ratio:.2g}" if ratio < 100 else f"{sign}{ratio:.0f}"
    place = [model_label(row.model), row.measure, f"{100 * row.target:.0f}"]
    return [*place, str(row.scratch), tuned, times, row.ratio.interval]
