"""Models that train with false captions train on photographs: with published ones, and with those that are made."""

import csv
import re
from dataclasses import replace
from functools import partial

import pytest
from PIL import Image

from menagerie.envs.core.errors import UserError
from menagerie.generators.captions.graph import Edge, SceneGraph
from menagerie.generators.false_captions import gather
from menagerie.generators.false_captions.files import write_false_captions
from menagerie.generators.false_captions.made import make_false_captions
from menagerie.generators.false_captions.photographs import FalselyCaptioned
from menagerie.generators.false_captions.record import FalseCaption
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.run import Running
from menagerie.studies.real_data import PRESETS, RealTraining
from menagerie.studies.runs.command_line import only_models, scorer_options
from menagerie.studies.runs.graphs import open_material
from menagerie.studies.runs.runners import run_job
from menagerie.studies.sources.photograph_study import check
from tests.helpers.benchmark_files import write_json
from tests.helpers.false_caption_files import Row, write_ce_clip, write_cs_clip, write_negclip

IMAGES = 40
COLOURS, ANIMALS = ("red", "white", "black", "tall"), ("cat", "dog", "bench", "zebra", "cup")
ALL = ("swap", "replace", "shuffle")
PLAIN = RealTraining(
    resolution=32,
    architecture="nano",
    epochs=0.0,
    recipe=Recipe(steps=14, batch=12, warmup=2, learning_rate=5e-3, augment=False),
    scorers=scorer_options("smoke"),
    benchmarks=(),
    allow_unknown=True,
    workers=1,
    dry_run=True,
)


def row_of(number):
    colour, animal = COLOURS[number % 4], ANIMALS[number % 5]
    other = ANIMALS[(number + 1) % 5]
    caption = f"A {colour} {animal} in a brown room."
    swapped, replaced = f"A brown {animal} in a {colour} room.", f"A {colour} {other} in a brown room."
    return Row(number, caption, swapped, replaced, (f"{colour} {animal}", f"{colour} {other}"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Forty photographs of COCO with two captions each, and published false captions of the first."""
    folder = tmp_path_factory.mktemp("false")
    rows, root = [row_of(k) for k in range(1, IMAGES + 1)], folder / "data"
    images = [{"id": row.number, "file_name": f"{row.number:012d}.jpg"} for row in rows]
    texts = [(row.number, text) for row in rows for text in (row.caption, f"Room {row.number} with something in it")]
    annotations = [{"id": k, "image_id": n, "caption": text} for k, (n, text) in enumerate(texts)]
    write_json(root / "coco/annotations/captions_train2017.json", {"images": images, "annotations": annotations})
    (root / "coco/train2017").mkdir(parents=True)
    for row, image in zip(rows, images, strict=True):  # of one colour
        colour = tuple(60 * k % 256 for k in (row.number % 4, row.number % 5, row.number // 8))
        Image.new("RGB", (36, 24), colour).save(root / "coco/train2017" / image["file_name"])
    for write in (write_negclip, write_ce_clip, write_cs_clip):
        write(root, rows)
    return folder


def jobs_of(folder, **options):
    """The cells of a study before any is trained."""
    study = replace(PLAIN, data_root=folder / "data", parses=folder / "parses", **options)
    study = replace(study, scorers=only_models(study.scorers, study.models))
    running = Running(study.prepare(folder / "unused"), folder / "out")
    return list(map(running.job, running.arms()))


def losses(job):
    run_job(job, lambda step, text="": None, lambda: None)
    with (job.folder / "training.csv").open() as file:
        return [float(row["loss"]) for row in csv.DictReader(file) if row["loss"]]


TRAINED = [
    ("negclip", ("negclip",), ()),
    ("dcsm", ("negclip",), ()),
    ("ce-clip", ("ce-clip",), ("swap", "replace")),
    ("cs-clip", ("cs-clip",), ()),
    ("fsc-clip", ("negclip", "ce-clip", "made:shuffle pairs"), ALL),
    ("read-clip", ("made:shuffle pairs",), ("shuffle",)),
    ("labclip", ("made:shuffle pairs",), ("shuffle",)),
]


@pytest.mark.parametrize(("model", "given", "kinds"), TRAINED)
def test_each_model_learns_with_false_captions(folder, model, given, kinds):
    recipe = replace(PLAIN.recipe, text_negatives=kinds)
    (job,) = jobs_of(folder, models=(model,), false_captions=given, recipe=recipe)
    if job.base:  # a frozen CLIP
        losses(job.base)
    seen = losses(job)
    assert sum(seen[-5:]) < sum(seen[:5])


def test_the_classifier_says_that_it_knows_animals_alone(folder):
    (job,) = jobs_of(folder, models=("classifier",))
    with pytest.raises(UserError, match=r"the classifier can't train on '.*', which names none of its classes"):
        losses(job)


def test_reports_count_captions_with_false_ones_and_what_was_refused(folder, capsys):
    jobs_of(folder, models=("ce-clip",), false_captions=("ce-clip",))
    printed = capsys.readouterr().out
    assert "coco, ce-clip, ce-clip relation: 40 of 40 captions have one" in printed
    assert "refused: 40 no word of the caption" in printed
    assert "captions of coco with a false one: 40 swap, 40 replace; 0 false ones are of others" in printed
    assert "warning" not in printed


def in_room(text):
    """The graph of the first captions; the second have none."""
    found = re.fullmatch(r"A (\w+ \w+) in a (\w+ \w+)\.", text)
    return SceneGraph((found[1], found[2]), (Edge("in", 0, 1),)) if found else SceneGraph((text,))


@pytest.fixture
def parser(monkeypatch):
    """In place of the parser and the tags of spaCy."""
    tags = dict.fromkeys((*ANIMALS, "room"), "NN") | dict.fromkeys(COLOURS, "JJ")
    monkeypatch.setattr(gather, "open_parser", lambda name, parses: in_room)
    made = partial(make_false_captions, tag=lambda text: [(w, tags.get(w, "IN")) for w in re.findall(r"\w+", text)])
    monkeypatch.setattr(gather, "make_false_captions", made)


def test_made_ones_are_made_once_for_all_parsers_and_read_by_cells(folder, parser, monkeypatch, capsys):
    given = {"models": ("cs-clip",), "false_captions": ("made", "made:parts")}
    (job,) = jobs_of(folder, **given)
    printed = capsys.readouterr().out
    assert re.search(r"with a false one: \d+ swap, \d+ replace, \d+ part", printed)
    (again,) = jobs_of(folder, **given, parser=("one-node",))
    assert again.cell.id == job.cell.id
    monkeypatch.setattr(gather, "open_parser", None)  # a cell reads what was kept
    train = open_material(job).train
    items = range(len(train))
    _, parts = train.parts_of_captions(items, items, 2)
    false = train.false_of(items, items, parts, "replace")
    assert all(false)
    for item, part, other in zip(train.indices, parts, false, strict=True):
        words = set(re.findall(r"\w+", row_of(int(item) + 1).caption))
        assert set(part.text.split()) <= words
        assert not set(other.text.split()) <= words
    swapped = {b.text for b in train.negatives(items, items) if b}
    assert swapped <= {row_of(k).swapped for k in range(1, IMAGES + 1)}
    assert swapped


def test_a_file_of_lines_is_read_and_its_content_decides_the_run(folder, tmp_path):
    lines = [FalseCaption(f"COCO {k}", row_of(k).caption, "swap", "mine", row_of(k).swapped) for k in range(1, IMAGES)]
    ids = []
    for name, its in (("a", lines), ("b", lines), ("c", lines[1:])):
        write_false_captions(tmp_path / f"{name}.jsonl", its)
        (job,) = jobs_of(folder, models=("negclip",), false_captions=(str(tmp_path / f"{name}.jsonl"),))
        ids.append(job.cell.id)
    assert ids[0] == ids[1] != ids[2]
    write_false_captions(tmp_path / "c.jsonl", lines)
    with pytest.raises(UserError, match="have changed since this run was started"):
        open_material(job)


def test_warnings_and_refusals_name_the_model_the_kind_and_the_way_out(folder, tmp_path, capsys):
    write_false_captions(
        tmp_path / "one.jsonl", [FalseCaption("COCO 3", row_of(3).caption, "swap", "mine", row_of(3).swapped)]
    )
    one = {"false_captions": (str(tmp_path / "one.jsonl"),)}
    jobs_of(folder, models=("negclip",), **one)
    assert "warning: negclip trains with false captions of the kind 'swap'; 1 of 80 captions" in capsys.readouterr().out
    with pytest.raises(
        UserError, match=r"ce-clip trains with .*'swap', which no photograph of coco has \(there are: none"
    ):
        jobs_of(folder, models=("clip", "ce-clip"))
    with pytest.raises(UserError, match=r"cs-clip trains with false parts of captions.*made:parts"):
        jobs_of(folder, models=("cs-clip",), **one)
    with pytest.raises(UserError, match="oc-clip reads graphs, which false captions of photographs don't have"):
        jobs_of(folder, models=("oc-clip",), **one, recipe=replace(PLAIN.recipe, text_negatives=("swap",)))
    with pytest.raises(UserError, match="there is no such file; menagerie false-captions writes one"):
        check(replace(PLAIN, false_captions=(str(tmp_path / "none.jsonl"),)), PLAIN)


def test_without_false_captions_photographs_have_the_identity_that_they_had(folder):
    (job,) = jobs_of(folder, models=("clip",))
    assert not isinstance(open_material(job).train.whole, FalselyCaptioned)


def test_presets_name_false_captions_that_are_known():
    for preset in PRESETS.values():
        check(preset, preset)
