"""`load_scorer`: every kind of model by its name, images and captions in every form, and mistakes in one line."""

import shutil
from io import BytesIO
from itertools import product

import numpy as np
import open_clip
import pytest
import torch
from open_clip.transform import PreprocessCfg, image_transform_v2
from PIL import Image
from safetensors.torch import save_file

import menagerie
from menagerie import load_scorer
from menagerie.envs.core.errors import UserError
from menagerie.envs.core.pictures import read_upright
from menagerie.generators.captions.graph import SceneGraph
from menagerie.models.checkpoint import save_checkpoint
from menagerie.models.kept_states import keep_state
from menagerie.models.library.cells import place_of_cell
from menagerie.models.library.load import find_source
from menagerie.models.library.loaded import LoadedScorer
from menagerie.models.library.pictures import frame_images, framed_benchmark, picture_of
from menagerie.models.towers.preparation import Framing
from menagerie.studies.runs.results import read_result, write_result
from tests.helpers.scorers import scorer, small_open_clip
from tests.models.test_contract import OWN

CAPTIONS = ["a red cat and a white crow in the city", "a white pig in the desert"]
GRAPHS = [SceneGraph(("red cat", "white crow", "city")), SceneGraph(("white pig", "desert"))]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A small architecture that open_clip knows for the rest of the session."""
    return small_open_clip(tmp_path_factory.mktemp("configs"))


@pytest.fixture(params=["clip", "oc-clip"])
def checkpoint(request, tmp_path):
    save_checkpoint(tmp_path / "checkpoint", request.param, scorer(request.param))
    return tmp_path / "checkpoint"


def pixels(n=2, side=32, seed=0):
    return np.random.default_rng(seed).integers(0, 256, (n, side, side, 3), dtype=np.uint8)


def direct(model, images, captions=CAPTIONS, graphs=GRAPHS):
    """Scores by the scorer's own methods."""
    with torch.no_grad():
        embedding = model.encode_images(model.pixel_scale(torch.from_numpy(images).permute(0, 3, 1, 2)))
        return model.similarity(embedding, model.encode_texts(model.read(captions, graphs)))


def test_loaded_scores_equal_the_scorers_own(checkpoint):
    loaded, images = load_scorer(checkpoint), pixels(70)
    scores = loaded.score(images, CAPTIONS, GRAPHS)
    assert scores.shape == (70, 2)
    torch.testing.assert_close(scores, direct(loaded.scorer, images), atol=1e-6, rtol=0)
    twice = loaded.score_pairs(images, [CAPTIONS[k % 2] for k in range(70)], [GRAPHS[k % 2] for k in range(70)])
    torch.testing.assert_close(twice, scores[torch.arange(70), torch.arange(70) % 2], atol=1e-6, rtol=0)


def test_images_come_in_many_forms(checkpoint, tmp_path):
    loaded, images = load_scorer(checkpoint), pixels()
    expected = loaded.score(images, CAPTIONS, GRAPHS)
    Image.fromarray(images[0]).save(tmp_path / "0.png")
    forms = [
        list(images),
        torch.from_numpy(images).permute(0, 3, 1, 2),
        [Image.fromarray(image) for image in images],
        [tmp_path / "0.png", Image.fromarray(images[1])],
        [str(tmp_path / "0.png"), torch.from_numpy(images[1]).permute(2, 0, 1)],
    ]
    for form in forms:
        assert torch.equal(loaded.score(form, CAPTIONS, GRAPHS), expected)
    alone = loaded.score(tmp_path / "0.png", CAPTIONS[0], GRAPHS[:1])
    torch.testing.assert_close(alone, expected[:1, :1], atol=1e-6, rtol=0)
    grey = Image.fromarray(images[0]).convert("L")
    assert torch.equal(loaded.score(grey, CAPTIONS, GRAPHS), loaded.score(grey.convert("RGB"), CAPTIONS, GRAPHS))


def test_pictures_of_any_size_become_squares():
    wide = np.zeros((20, 60, 3), np.uint8)
    wide[:, 20:40] = 255  # the central square is white, the whole is not
    assert frame_images(wide, Framing(10)).shape == (1, 3, 10, 10)
    assert frame_images(wide, Framing(10))[..., 2:8].min() == 255
    assert frame_images(wide, Framing(10, squashed=True))[..., :2].max() == 0
    same = pixels(1, 10)
    assert np.array_equal(frame_images(same, Framing(10))[0].permute(1, 2, 0).numpy(), same[0])


# What viewers do with each EXIF orientation.
TURNED = {
    1: lambda pixels: pixels,
    2: np.fliplr,
    3: lambda pixels: np.rot90(pixels, 2),
    4: np.flipud,
    5: lambda pixels: pixels.transpose(1, 0, 2),
    6: lambda pixels: np.rot90(pixels, -1),
    7: lambda pixels: np.rot90(pixels, 2).transpose(1, 0, 2),
    8: np.rot90,
}


@pytest.mark.parametrize("form", ["png", "jpeg", "webp"])
def test_exif_orientation_is_applied_to_every_form_of_image(form, tmp_path):
    for orientation, turned in TURNED.items():
        path, mark = tmp_path / f"{orientation}.{form}", Image.Exif()
        mark[0x0112] = orientation
        Image.fromarray(pixels(1, 12)[0, :, :9]).save(path, exif=mark)
        whole = Framing(24, squashed=True, interpolation="nearest")
        one = frame_images(path, whole)
        with Image.open(path) as lazy, Image.open(path) as raw:
            assert torch.equal(frame_images(lazy, whole), one)
            assert torch.equal(frame_images(Image.open(BytesIO(path.read_bytes())), whole), one)
            assert torch.equal(frame_images(turned(np.asarray(raw.convert("RGB"))), whole), one)
        assert torch.equal(frame_images(picture_of(path), whole), one)  # which is upright, and says so
        assert torch.equal(frame_images(read_upright(path.read_bytes()), whole), one)


def test_captions_of_closed_vocabularies_lose_capitals_and_punctuation(checkpoint):
    loaded = load_scorer(checkpoint)
    nodes = SceneGraph(("Red cat,", "white CROW", "city!"))
    typed = loaded.score(pixels(), "A Red cat, and a white CROW -- in the city!", [nodes])
    assert torch.equal(typed, loaded.score(pixels(), CAPTIONS[0], GRAPHS[:1]))


def test_graphs_are_parsed_where_none_are_given(tmp_path):
    save_checkpoint(tmp_path, "oc-clip", scorer("oc-clip"))
    loaded, caption = load_scorer(tmp_path), "a red pig to the left of a white cat in the city"
    parsed = loaded.score(pixels(), [caption, "a red pig"])
    given = loaded.score(pixels(), [caption, "a red pig"], [menagerie.parse(caption), SceneGraph(("red pig",))])
    assert torch.equal(parsed, given)
    with pytest.raises(UserError, match="unknown word 'sofa'"):
        loaded.score(pixels(), "a red pig on a sofa")


def test_embeddings_multiply_to_scores(tmp_path):
    save_checkpoint(tmp_path, "clip", scorer("clip"))
    loaded = load_scorer(tmp_path)
    images, texts = loaded.embed(images=pixels(40)), loaded.embed(captions=CAPTIONS)
    assert images.shape == (40, 32)
    torch.testing.assert_close(images @ texts.T, loaded.score(pixels(40), CAPTIONS), atol=1e-6, rtol=0)
    for nothing in ({}, {"images": pixels(), "captions": CAPTIONS}):
        with pytest.raises(UserError, match="either images"):
            loaded.embed(**nothing)


@pytest.mark.parametrize("name", ["captioner", "fusion"])
def test_scorers_of_pairs_have_no_embeddings(name, tmp_path):
    save_checkpoint(tmp_path, name, scorer(name))
    for what in ({"images": pixels()}, {"captions": CAPTIONS}):
        with pytest.raises(UserError, match=r"no single vector for each .*: it reads a text together with an image"):
            load_scorer(tmp_path).embed(**what)


@pytest.mark.parametrize("score", ["contrast", "likelihood"])
def test_coca_gives_its_vectors_even_if_it_scores_by_likelihood(score):
    """Their products are CoCa's scores, unless it scores by likelihood."""
    model = scorer("coca", score=score, alpha=0.0)
    loaded = LoadedScorer("coca", model)
    images, texts = loaded.embed(images=pixels(4)), loaded.embed(captions=CAPTIONS)
    torch.testing.assert_close(images.norm(dim=1), torch.ones(4))
    differ = (images @ texts.T - loaded.score(pixels(4), CAPTIONS)).abs().max() > 1e-3
    assert differ == (score == "likelihood")


WRONG = [
    (([], CAPTIONS), "no images"),
    ((pixels(), ["a cat", ""]), "'' is no caption"),
    ((pixels() / 255, CAPTIONS), "give uint8"),
    ((pixels()[..., :2], CAPTIONS), r"of shape \(32, 32, 2\), where \(h, w, 3\)"),
    (("nothing.png", CAPTIONS), "no image file nothing.png"),
    ((__file__, CAPTIONS), "can't be read"),
    ((pixels(), CAPTIONS, []), "0 scene graphs for 2 captions"),
    ((pixels(), CAPTIONS, [GRAPHS[0], None]), "has no scene graph"),
    ((pixels(), ["a red cta", CAPTIONS[1]], GRAPHS), None),
]


@pytest.mark.parametrize(("given", "reason"), WRONG)
def test_wrong_images_captions_and_graphs_are_named(given, reason, checkpoint):
    """A word that only the graph lacks is no mistake for a scorer that reads captions, and the other way round."""
    loaded = load_scorer(checkpoint)
    if reason is None and loaded.needs_graphs:
        given, reason = (pixels(), CAPTIONS, [SceneGraph(("red cta",)), GRAPHS[1]]), "'cta'"
    with pytest.raises(UserError, match=reason or "the word 'cta' .* did you mean 'cat'") as error:
        loaded.score(*given)
    assert "\n" not in str(error.value)


def test_truncated_picture_is_named(tmp_path):
    Image.fromarray(pixels(1, 64)[0]).save(tmp_path / "whole.png")
    (tmp_path / "short.png").write_bytes((tmp_path / "whole.png").read_bytes()[:900])
    with Image.open(tmp_path / "short.png") as short, pytest.raises(UserError, match="can't be read"):
        picture_of(short)


def test_run_cell_checkpoint_and_file_load_the_same_model(tmp_path):
    folder = tmp_path / "run" / "cells" / "abc" / "checkpoint"
    save_checkpoint(folder, "clip", scorer("clip"))
    places = [tmp_path / "run", folder.parent, folder, folder / "model.safetensors", str(folder / "config.json")]
    scores = [load_scorer(place).score(pixels(), CAPTIONS) for place in places]
    assert all(torch.equal(score, scores[0]) for score in scores)
    assert len({find_source(place).identity() for place in places}) == 1
    assert find_source(tmp_path / "run", place={"model": "clip"}).identity() == find_source(folder).identity()
    with pytest.raises(UserError, match="has no cell of model='oc-clip'; it has "):
        load_scorer(tmp_path / "run", model="oc-clip")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of eight cells and two more of one place, each with a result, by their places."""
    run, found = tmp_path_factory.mktemp("runs") / "mine", {}
    for number, (model, pairs, seed) in enumerate(product(("clip", "clip-gap"), (0.2, 0.5), (0, 1))):
        save_checkpoint(run / f"cells/{number}/checkpoint", model, scorer(model, seed=number))
        place = {"pairs": pairs, "hard_negatives": 0.0, "seed": seed}
        found[model, pairs, seed] = write_cell(run, str(number), model, place, {})
    for dim in (8, 16):
        save_checkpoint(run / f"cells/of{dim}/checkpoint", "oc-clip", scorer("oc-clip"))
        place = {"pairs": 0.2, "hard_negatives": 0.0, "seed": 0}
        write_cell(run, f"of{dim}", "oc-clip", place, {"options": {"dim": dim}})
    return run, found


def write_cell(run, name, model, place, settings):
    """What `menagerie.studies.runs.train` writes of a cell, as far as it is read; returns its folder."""
    axes = [axis for axis in place if axis != "seed"]
    result = {"id": name, "model": model, "axes": axes, "settings": settings, "subsets": {}}
    write_result(run / "cells" / name, result | place)
    return run / "cells" / name


def test_cell_is_found_by_its_axes_and_seed(run):
    folder, found = run
    for (model, pairs, seed), cell in found.items():
        scores = load_scorer(folder, model=model, pairs=pairs, seed=seed).score(pixels(), CAPTIONS)
        assert torch.equal(scores, load_scorer(cell).score(pixels(), CAPTIONS))


WHICH = [
    ({}, r"has 10 cells; say which.*: model='clip', pairs=0.2, seed=0 \(.*/cells/0\); .*…"),
    ({"model": "oc-clip"}, r"has 2 cells .*: options.dim=16 \(.*of16\); options.dim=8 \(.*of8\)$"),
    ({"model": "clop"}, "has no cell of model='clop'; it has model='clip', pairs"),
    ({"pears": 0.2}, "unknown axis of .*mine 'pears'; did you mean 'pairs'"),
]


@pytest.mark.parametrize(("place", "reason"), WHICH, ids=str)
def test_ambiguous_and_unknown_cells_are_listed(place, reason, run):
    with pytest.raises(UserError, match=reason):
        load_scorer(run[0], **place)


def test_cell_is_found_by_its_settings(run):
    for dim in (8, 16):
        place = {"model": "oc-clip", "options.dim": dim}
        assert find_source(run[0], place=place).folder.parent == run[0] / f"cells/of{dim}"
    with pytest.raises(UserError, match=r"has no cell of options\.dim=9; it has "):
        find_source(run[0], place={"options.dim": 9})


def test_renamed_cell_is_refused(tmp_path):
    """By whoever reads its result."""
    write_cell(tmp_path, "abc", "clip", {"pairs": 0.2}, {})
    cell = (tmp_path / "cells/abc").rename(tmp_path / "cells/best")
    for read in (read_result, place_of_cell):
        with pytest.raises(UserError, match=r"is the result of cell abc; put it back there, or move .* out of 'cells'"):
            read(cell)
    moved = cell.rename(tmp_path / "best")
    assert read_result(moved)["id"] == "abc"
    assert place_of_cell(moved) == {"pairs": 0.2}


def test_step_loads_a_kept_state_of_the_cell(tmp_path):
    run, models = tmp_path / "run", {step: scorer("clip", seed=9 + step) for step in (0, 10, 200)}
    for seed in (0, 1):
        save_checkpoint(run / f"cells/of{seed}/checkpoint", "clip", scorer("clip", seed=seed))
        write_cell(run, f"of{seed}", "clip", {"pairs": 0.2, "seed": seed}, {})
    for step, model in models.items():
        keep_state(run / "cells/of1", step, "clip", model)
        keep_state(run / "cells/unfinished", step, "clip", model)
    (run / "cells/of1/states/50").mkdir()  # of a run that was killed while it wrote
    places = [(run, {"seed": 1}), (run, {"model": "clip", "pairs": 0.2, "seed": 1})]
    for name, place in (*places, (run / "cells/of1", {}), (run / "cells/unfinished", {})):
        for step, model in models.items():
            loaded = load_scorer(name, step=step, **place)
            torch.testing.assert_close(loaded.scorer.state_dict(), model.state_dict(), atol=0, rtol=0)
    assert find_source(run, place={"seed": 1}, step=0).identity() != find_source(run, place={"seed": 1}).identity()
    for step in (50, 100, -1):
        with pytest.raises(UserError, match=rf"of1 has no state of step {step} \(those kept: 0, 10, 200\)"):
            load_scorer(run, seed=1, step=step)
    with pytest.raises(UserError, match=r"of0 has no state of step 0 \(those kept: none\); delete .* again"):
        load_scorer(run, seed=0, step=0)
    with pytest.raises(UserError, match="has 2 cells; say which"):
        load_scorer(run, step=0)
    with pytest.raises(UserError, match="ViT-B-32 is no run that kept states of its training; leave out step"):
        load_scorer("ViT-B-32", step=0)
    (run / "cells/of1").rename(tmp_path / "best")
    assert load_scorer(tmp_path / "best", step=200)
    shutil.copytree(tmp_path / "best/states/10", tmp_path / "best/states/0", dirs_exist_ok=True)
    with pytest.raises(UserError, match=r"states/0 can't be used .*another cell or step.*delete .* again"):
        load_scorer(tmp_path / "best", step=0)


def test_open_clip_loads_random_weights_with_a_warning_and_weights_of_a_file(small, tmp_path):
    with pytest.warns(UserWarning, match="has random weights"):
        random = load_scorer(small)
    model, picture = random.scorer.model, Image.fromarray(pixels(1, 96)[0])
    prepared = image_transform_v2(PreprocessCfg(size=48), is_train=False)(picture)[None]
    tokens = open_clip.get_tokenizer(small)(CAPTIONS)
    with torch.no_grad():
        expected = model.encode_image(prepared, normalize=True) @ model.encode_text(tokens, normalize=True).T
    torch.testing.assert_close(random.score(picture, CAPTIONS), expected, atol=1e-5, rtol=0)
    with pytest.warns(UserWarning, match="has random weights"):
        again = load_scorer(small)
    assert torch.equal(again.score(picture, CAPTIONS), random.score(picture, CAPTIONS))
    save_file(model.state_dict(), tmp_path / "weights.safetensors")
    kept = load_scorer(f"{small}/{tmp_path}/weights.safetensors")
    assert torch.equal(kept.score(picture, CAPTIONS), random.score(picture, CAPTIONS))
    save_file({"strange": torch.zeros(1)}, tmp_path / "weights.safetensors")
    with pytest.raises(UserError, match="can't be built"):
        load_scorer(f"{small}/{tmp_path}/weights.safetensors")


def test_users_class_loads_with_and_without_a_checkpoint(tmp_path):
    (tmp_path / "mine.py").write_text(OWN)
    name = f"{tmp_path}/mine.py:Mine"
    fresh = load_scorer(name)
    assert fresh.score(pixels(side=64), CAPTIONS[1].replace("pig", "lion")).shape == (2, 1)
    save_checkpoint(tmp_path / "checkpoint", name, fresh.scorer)
    with pytest.raises(UserError, match="its file is run only if you name it"):
        load_scorer(tmp_path / "checkpoint")
    back = load_scorer(tmp_path / "checkpoint", code=[name])
    caption = "a white lion in the desert"
    assert torch.equal(back.score(pixels(), caption), fresh.score(pixels(), caption))
    before = find_source(name).identity()
    (tmp_path / "mine.py").write_text(OWN + "# another\n")
    assert find_source(name).identity() != before


def test_images_of_benchmarks_are_framed(data):
    from menagerie.generators.benchmarks.split_tests import SplitTests
    from menagerie.generators.storage.dataset import SplitDataset

    inner = SplitTests(SplitDataset(data.split, "unseen_pairs"))
    seen = []
    other, same = framed_benchmark(inner, Framing(48), seen.append), framed_benchmark(inner, Framing(32))
    assert other.images([0, 1]).shape == (2, 3, 48, 48)
    assert seen == [2]
    assert torch.equal(same.images([0, 1]), inner.images([0, 1]))
    assert (other.items, other.tasks) == (inner.items, inner.tasks)
