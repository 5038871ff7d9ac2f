"""Embeddings of images that are kept on disk: the same bytes as without, encoded once, whatever happens to their
files."""

import os
import subprocess
import sys
from itertools import chain

import numpy as np
import pytest
import torch
from PIL import Image

from menagerie.generators.benchmarks.photographs import ItemBenchmark, Photograph, Place, Record
from menagerie.models.evaluation.embedding_store import DIGEST, EmbeddingFolder, StoredRows
from menagerie.models.evaluation.embeddings import Embeddings, find_row_format
from menagerie.models.evaluation.scoring import BLOCK, score_items
from tests.helpers.scorers import scorer

SIDE, IMAGES = 32, 70
KINDS = ("clip", "oc-clip", "flair", "dcsm", "sparo")
ROOMY = 1 << 30


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    """A folder of pictures of noise."""
    folder, rng = tmp_path_factory.mktemp("photographs"), np.random.default_rng(0)
    for k in range(IMAGES):
        Image.fromarray(rng.integers(0, 256, (40, 48, 3), np.uint8)).save(folder / f"{k}.png")
    return folder


def bench_of(folder, numbers=range(IMAGES), **more):
    """Records of these pictures, in this order."""
    texts = ("a red cat in the city", "a white dog in the desert")
    records = [Record(f"{k}", "all", (Photograph(f"{k}.png"),), texts) for k in numbers]
    return ItemBenchmark("noise", ".", records, Place(folder, resolution=SIDE, **more))


def counting(model, monkeypatch):
    """How many images a model encodes from now on."""
    seen, encode = [], model.encode_images
    monkeypatch.setattr(model, "encode_images", lambda pixels: seen.append(len(pixels)) or encode(pixels))
    return seen


def scores(embeddings, bench, reported=None):
    """The scores of all records, as bytes."""

    def encode(blocks):
        return embeddings.encode(bench, blocks, (reported if reported is not None else []).append)

    return np.array(score_items(embeddings.scorer, bench, encode=encode)).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_kept_embeddings_give_the_same_bytes_and_encode_images_once(kind, photographs, tmp_path, monkeypatch):
    """Without a folder, while it fills, from it; and another benchmark has the same images in another order."""
    model = scorer(kind)
    every = bench_of(photographs)
    some = bench_of(photographs, [*range(60, 30, -1), *range(10, 20), 65])
    plain = Embeddings(model, "weights", SIDE)
    expected = [scores(plain, bench) for bench in (some, every)]
    seen = counting(model, monkeypatch)
    embeddings = Embeddings(model, "weights", SIDE, EmbeddingFolder(tmp_path, ROOMY))
    assert embeddings.stored is not None, f"the embeddings of {kind} can't be kept"
    assert seen == [BLOCK]
    reported = []
    assert [scores(embeddings, bench, reported) for bench in (some, every)] == expected
    assert sum(reported) == 41 + IMAGES
    assert seen == [BLOCK] * (1 + 2 + 1), "41 images are two blocks, and the other 29 one"
    again = Embeddings(model, "weights", SIDE, EmbeddingFolder(tmp_path, ROOMY))
    assert [scores(again, bench) for bench in (every, some)] == expected[::-1]
    assert seen == [BLOCK] * (4 + 1), "noise alone is encoded again"


def test_an_image_that_several_blocks_need_is_encoded_once(photographs, monkeypatch):
    model, bench = scorer("clip"), bench_of(photographs)
    embeddings = Embeddings(model, "weights", SIDE)
    seen = counting(model, monkeypatch)
    first, second = embeddings.encode(bench, [(0, 1), (1, 0, 2)], lambda images: None)
    assert seen == [BLOCK]
    assert torch.equal(second[:2], first.flip(0))


def test_embeddings_are_kept_per_weights_framing_and_part_of_an_image(photographs, tmp_path, monkeypatch):
    """Other weights, another name of theirs, another way to read images, other parts of them: each is encoded anew."""
    files = EmbeddingFolder(tmp_path, ROOMY)
    model = scorer("clip")
    scores(Embeddings(model, "weights", SIDE, files), bench_of(photographs))
    for other, weights in ((scorer("clip", seed=1), "weights"), (model, "others")):
        seen = counting(other, monkeypatch)
        scores(Embeddings(other, weights, SIDE, files), bench_of(photographs))
        assert len(seen) == 1 + 3
    bench = bench_of(photographs)
    assert len({bench.fingerprint(k) for k in range(IMAGES)}) == IMAGES
    ways = [
        bench,
        bench.reframe(SIDE, True, "bicubic"),
        bench.reframe(SIDE, False, "bilinear"),
        bench.reframe(16, False, "bicubic"),
    ]
    boxed = [Record("0", "all", (Photograph("0.png", box),), ("a", "b")) for box in ((0, 0, 9, 9), (0, 0, 9, 8))]
    parts = [ItemBenchmark("part", ".", [record], Place(photographs, resolution=SIDE)) for record in boxed]
    assert len({its.fingerprint(0) for its in (*ways, *parts)}) == len(ways) + len(parts)


def test_changed_image_file_has_another_fingerprint(photographs, tmp_path):
    """Also of the same size and time."""
    for name in ("1.png", "2.png"):
        Image.new("RGB", (40, 40), "red").save(tmp_path / name)
    before = bench_of(tmp_path, [1]).fingerprint(0)
    assert bench_of(tmp_path, [2]).fingerprint(0) == before, "the same bytes elsewhere are the same image"
    state = (tmp_path / "1.png").stat()
    content = bytearray((tmp_path / "1.png").read_bytes())
    content[-20] ^= 1
    (tmp_path / "1.png").write_bytes(content)
    os.utime(tmp_path / "1.png", ns=(state.st_atime_ns, state.st_mtime_ns))
    assert bench_of(tmp_path, [1]).fingerprint(0) != before


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "gone"])
def test_damaged_embedding_files_are_replaced(damage, photographs, tmp_path, monkeypatch):
    model, bench = scorer("oc-clip"), bench_of(photographs)
    expected = scores(Embeddings(model, "weights", SIDE, EmbeddingFolder(tmp_path, ROOMY)), bench)
    for k, path in enumerate(sorted(tmp_path.glob("*/*.embeddings"))):
        content = bytearray(path.read_bytes())
        content[(k * 9973 + DIGEST * k) % len(content)] ^= 64
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes({"flip": content, "cut": content[: len(content) // 2], "empty": b""}[damage])
    seen = counting(model, monkeypatch)
    assert scores(Embeddings(model, "weights", SIDE, EmbeddingFolder(tmp_path, ROOMY)), bench) == expected
    assert len(seen) > 1
    scores(Embeddings(model, "weights", SIDE, EmbeddingFolder(tmp_path, ROOMY)), bench)  # rows beside damaged ones too
    seen.clear()
    assert scores(Embeddings(model, "weights", SIDE, EmbeddingFolder(tmp_path, ROOMY)), bench) == expected
    assert seen == [BLOCK], "they are whole again"


class TestShelf:
    """Rows of bytes under fingerprints."""

    @staticmethod
    def row(k, width=100):
        return bytes([k % 251]) * width

    @staticmethod
    def name(k):
        return f"{k:064x}"

    def test_rows_of_another_model_are_ignored(self, tmp_path):
        one, other = (StoredRows(EmbeddingFolder(tmp_path, ROOMY), owner, 4) for owner in ("one", "other"))
        one.put({self.name(1): b"abcd"})
        other.put({self.name(2): b"efgh"})
        (path,) = tmp_path.glob("one/*.embeddings")
        path.rename(tmp_path / "other" / path.name)
        other = StoredRows(EmbeddingFolder(tmp_path, ROOMY), "other", 4)
        assert other.get(self.name(1)) is None
        assert other.get(self.name(2)) == b"efgh"

    def test_least_recently_used_files_are_deleted_first(self, tmp_path):
        size = 2 * DIGEST + 100
        files = EmbeddingFolder(tmp_path, 16 * size)
        for k in range(16):
            StoredRows(files, f"model {k % 2}", 100).put({self.name(k): self.row(k)})
            for path in tmp_path.glob("*/*.embeddings"):
                os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns - 10**9))
        used = StoredRows(files, "model 0", 100)
        assert used.get(self.name(0)) == self.row(0)
        shelf = StoredRows(files, "model 0", 100)
        for k in range(16, 20):
            shelf.put({self.name(k): self.row(k)})
            assert sum(path.stat().st_size for path in tmp_path.glob("*/*.embeddings")) <= 16 * size
        fresh = StoredRows(files, "model 0", 100)
        assert fresh.get(self.name(0)) == self.row(0)
        assert self.name(2) not in fresh
        assert all(fresh.get(self.name(k)) == self.row(k) for k in range(16, 20))

    def test_rows_deleted_by_another_process_are_missing(self, tmp_path):
        files = EmbeddingFolder(tmp_path, ROOMY)
        shelf = StoredRows(files, "model", 100)
        shelf.put({self.name(k): self.row(k) for k in range(3)})
        for path in tmp_path.glob("*/*.embeddings"):
            path.unlink()
        assert shelf.get(self.name(0)) is None
        assert self.name(1) not in shelf

    def test_full_disk_is_only_a_warning(self, tmp_path, monkeypatch):
        files = EmbeddingFolder(tmp_path, ROOMY)
        shelf = StoredRows(files, "model", 100)

        def full(path, content):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(files, "add", full)
        with pytest.warns(UserWarning, match="No space left on device"):
            shelf.put({self.name(1): self.row(1)})
        assert self.name(1) not in shelf


WRITER = """
import sys
from pathlib import Path
from menagerie.models.evaluation.embedding_store import EmbeddingFolder, StoredRows
shelf = StoredRows(EmbeddingFolder(Path(sys.argv[1]), 60000), "model", 1000)
for k in range(int(sys.argv[2]), int(sys.argv[2]) + 150):
    shelf.put({f"{k % 170:064x}": bytes([k % 170]) * 1000})
    for other in range(170):
        row = shelf.get(f"{other:064x}")
        assert row is None or row == bytes([other]) * 1000
"""


def test_rows_stay_intact_when_processes_share_a_folder_and_are_killed(tmp_path):
    """Three write, read and delete the same rows, one of them is killed."""
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    processes = [subprocess.Popen([*command, str(start)], stderr=subprocess.PIPE) for start in (0, 20, 40)]
    while not list(tmp_path.glob("*/*.embeddings")):
        assert processes[0].poll() is None, processes[0].communicate()
    processes[0].kill()
    for process in processes[1:]:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors.decode()
    processes[0].communicate()
    shelf = StoredRows(EmbeddingFolder(tmp_path, 60000), "model", 1000)
    found = [row for k in range(170) if (row := shelf.get(f"{k:064x}"))]
    assert found
    assert all(len(set(row)) == 1 for row in found)


class TestForms:
    """Which embeddings can be taken apart."""

    @staticmethod
    def changed(monkeypatch, change):
        model = scorer("clip")
        encode = model.encode_images
        monkeypatch.setattr(model, "encode_images", lambda pixels: change(encode(pixels)))
        return model

    @pytest.mark.parametrize(
        "change",
        [
            lambda embedding: {"vectors": embedding},
            lambda embedding: (embedding, None),
            lambda embedding: (embedding, torch.arange(BLOCK)),
            lambda embedding: (embedding, torch.tensor(1.0)),
            lambda embedding: embedding + torch.rand(()) * torch.arange(len(embedding))[:, None],
            lambda embedding: embedding - embedding.mean(0) * torch.arange(len(embedding))[:, None],
            lambda embedding: embedding * float("nan"),
            lambda embedding: (),
        ],
    )
    def test_embeddings_without_a_row_per_image_are_not_kept(self, change, monkeypatch, tmp_path):
        embeddings = Embeddings(self.changed(monkeypatch, change), "weights", SIDE, EmbeddingFolder(tmp_path, ROOMY))
        assert embeddings.stored is None

    def test_embeddings_without_a_row_per_image_are_computed_block_by_block(self, photographs, monkeypatch):
        model = self.changed(monkeypatch, lambda embedding: [embedding])
        monkeypatch.setattr(model, "pair_similarity", lambda images, texts: (images[0] * texts).sum(-1))
        bench, reported = bench_of(photographs), []
        assert scores(Embeddings(model, "weights", SIDE), bench, reported)
        assert reported == [BLOCK, BLOCK, IMAGES - 2 * BLOCK]

    def test_rows_of_several_tensors_come_back_unchanged(self, monkeypatch):
        def several(embedding):
            return embedding.bfloat16(), (embedding > 0, embedding[:, 0].double()), embedding[:, :6].reshape(-1, 2, 3)

        form = find_row_format(self.changed(monkeypatch, several), SIDE)
        embedding = several(torch.randn(5, 32))
        parts = (embedding[0], *embedding[1], embedding[2])
        rows = [tuple(part[k] for part in parts) for k in range(5)]
        kept = [
            form.from_bytes(b"".join(p.reshape(-1).view(torch.uint8).numpy().tobytes() for p in row)) for row in rows
        ]
        made = form.stack_rows(kept)
        assert all(map(torch.equal, parts, chain([made[0]], made[1], [made[2]])))
