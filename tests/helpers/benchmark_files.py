"""Tiny files of every benchmark in its official format, with the peculiarities of the real ones."""

import csv
import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from menagerie.generators.benchmarks import (
    caption_pairs,
    clevr_bind,
    crepe,
    four_way,
    negbench,
    pug,
    text_to_image,
    vl_checklist,
)
from menagerie.generators.benchmarks.benchmark import Item, Outcome
from menagerie.generators.benchmarks.four_way import RULES
from menagerie.generators.benchmarks.matrix import Pool
from menagerie.generators.benchmarks.photographs import PhotographBenchmark
from menagerie.generators.benchmarks.registry import load_benchmark
from menagerie.generators.sources.place import Place

# Task -> number of its records.
Counts = Mapping[str, int]


def write_json(path: Path, content: Any) -> None:
    """Write a JSON file and make its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file and make its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])


def write_images(folder: Path, names: Iterable[str], size: tuple[int, int] = (36, 24)) -> None:
    """Write small pictures of noise, of which no two are the same."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(zlib.crc32(str(path).encode()))
        Image.fromarray(rng.integers(0, 256, (*size[::-1], 3), np.uint8)).save(path)


def make_sugarcrepe(root: Path) -> Counts:
    """The keys of swap_obj have gaps."""
    write_images(root / caption_pairs.IMAGES, ["000000000001.jpg", "000000000002.jpg"])
    for k, name in enumerate(caption_pairs.SUGARCREPE):
        records = {
            str(7 * i if name == "swap_obj" else i): {
                "filename": f"00000000000{i + 1}.jpg",
                "caption": f"A cat, {k}.",
                "negative_caption": f"A dog, {k}.",
            }
            for i in range(2)
        }
        write_json(root / f"sugarcrepe/{name}.json", records)
    return dict.fromkeys(caption_pairs.SUGARCREPE, 2)


def make_winoground(root: Path) -> Counts:
    """Three records, of which one has no second tag."""
    lines = [
        {
            **{"id": i, "image_0": f"ex_{i}_img_0", "image_1": f"ex_{i}_img_1", "num_main_preds": 1},
            **{"caption_0": f"a cat on dog {i}", "caption_1": f"a dog on cat {i}"},
            **{"tag": "Noun", "secondary_tag": "Morpheme-Level" if i else "", "collapsed_tag": "Object"},
        }
        for i in range(3)
    ]
    write_json_lines(root / "winoground/examples.jsonl", lines)
    write_images(root / "winoground/images", [f"ex_{i}_img_{k}.png" for i in range(3) for k in range(2)])
    return dict.fromkeys(RULES, 3)


def make_sugarcrepe_pp(root: Path) -> Counts:
    """Two true captions each, which differ in one word."""
    write_images(root / caption_pairs.IMAGES, ["000000000001.jpg", "000000000002.jpg"])
    for k, name in enumerate(caption_pairs.SUGARCREPE_PP):
        records = [
            {
                **{"id": i, "filename": f"00000000000{i + 1}.jpg", "caption": f"A cat, {k}."},
                **{"caption2": f"There is a cat, {k}.", "negative_caption": f"A dog, {k}."},
            }
            for i in range(2)
        ]
        write_json(root / f"sugarcrepe_pp/{name}.json", records)
    return dict.fromkeys(caption_pairs.SUGARCREPE_PP, 2)


def make_colorswap(root: Path) -> Counts:
    """Images are named with their folder."""
    records = [
        {
            **{"id": i, "caption_1": f"a red cat and a blue cup {i}", "caption_2": f"a blue cat and a red cup {i}"},
            **{"image_1": f"images/img_{i}_1.png", "image_2": f"images/img_{i}_2.png", "image_source": "midjourney"},
        }
        for i in range(2)
    ]
    write_json(root / "colorswap/test.json", records)
    write_images(root / "colorswap/images", [f"img_{i}_{k}.png" for i in range(2) for k in (1, 2)])
    return dict.fromkeys(RULES, 2)


def write_json_lines(path: Path, records: Iterable[object]) -> None:
    """Write a file with a JSON object on each line and make its folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")


def make_bivlc(root: Path) -> Counts:
    """Three records of two types, which have no names."""
    records = [
        {
            **{"image": f"{i}.jpg", "caption": f"a cat {i}", "negative_caption": f"a dog {i}"},
            **{"negative_image": f"false/{i}.png", "type": "swap" if i else "replace", "subtype": "obj"},
        }
        for i in range(3)
    ]
    write_json_lines(root / "bivlc/test.jsonl", records)
    write_images(root / "bivlc/images", [file for i in range(3) for file in (f"{i}.jpg", f"false/{i}.png")])
    return dict.fromkeys(RULES, 3)


def make_cola(root: Path) -> Counts:
    """Addresses of images, of which one is in both records."""
    address = "https://cs-people.bu.edu/array/data/vg_gqa_images/{}.jpg".format
    records = [[address(1), f"red cat {k}", address(2 + k), f"white cat {k}"] for k in range(2)]
    write_json(root / "cola/COLA_multiobjects_matching_benchmark.json", records)
    write_images(root / "cola/images", ["1.jpg", "2.jpg", "3.jpg"])
    return dict.fromkeys(RULES, 2)


def make_valse(root: Path) -> Counts:
    """Of three records one has the vote of one annotator alone."""
    images = {"foil-it": "COCO_val2014_000000000001.jpg", "coreference-hard": "VisualDialog_val2018_000000000001.jpg"}
    for name in caption_pairs.VALSE:
        records = {
            f"{name}_{k}": {
                **{"dataset": "any", "image_file": images.get(name, f"v7w_{k}.jpg")},
                **{"caption": f"There are cats, {name} {k}.", "foil": f"There are no cats, {name} {k}."},
                "mturk": {"caption": votes, "foil": 3 - votes, "other": 0},
            }
            for k, votes in enumerate((2, 3, 1))
        }
        write_json(root / f"valse/data/{name}.json", records)
    write_images(root / "valse/images", ["v7w_0.jpg", "v7w_1.jpg", *images.values()])
    return dict.fromkeys(caption_pairs.VALSE, 2)


def make_mmvp_vlm(root: Path) -> Counts:
    """Two pairs of one pattern and one of another, whose name is two words."""
    patterns = {"Orientation": (1, 2, 3, 4), "Camera Perspective": (5, 6)}
    rows = [(k, name, f"a cat that looks to side {k}") for name, numbers in patterns.items() for k in numbers]
    write_csv(root / four_way.MMVP, ("Question ID", "Type", "Statement"), rows)
    write_images(root / four_way.MMVP_IMAGES, [f"{name}/{k}.jpg" for k, name, _ in rows])
    return {name: len(numbers) // 2 for name, numbers in patterns.items()}


def make_pug_spare(root: Path) -> Counts:
    """Images lie beside the table, by background; one of equal textures is no test."""
    rows = [
        ("0.png", "Desert", "Bear", "Cat", "Red", "Grass", ""),
        ("1.png", "Desert", "Cat", "Bear", "Red", "Grass", "left"),
        ("0.png", "Island", "Bear", "Cat", "Stone", "Gold", ""),
        ("1.png", "Island", "Bear", "Cat", "Red", "Red", ""),
    ]
    columns = ("filename", "world_name", "character_name", "character2_name", "character_texture", "character2_texture")
    write_csv(root / pug.SPARE, (*columns, "character_pos"), rows)
    write_images(root / pug.SPARE_FOLDER, [f"{row[1]}/{row[0]}" for row in rows])
    return {"Desert": 2, "Island": 1}


def two_of_each(k: int, image: str, text: str, file: str = "{}.jpg") -> dict[str, str]:
    """A record of two images and two texts, under these keys and a number."""
    files = {f"{image}{n}": file.format(f"{k}{n}") for n in range(2)}
    return files | {f"{text}{n}": f"{n} cats, {k}" for n in range(2)}


def make_eqben(file: str, images: str) -> Callable[[Path], Counts]:
    """Two records of one data set, and one of another, whose images are arrays."""

    def make(root: Path) -> Counts:
        files = ("eqbenkubric_cnt/{}.png", "eqbenkubric_cnt/{}.png", "eqbenyoucook2/{}.npy")
        records = [two_of_each(k, "image", "caption", name) for k, name in enumerate(files)]
        write_json(root / file, records)
        write_images(root / images, [record[f"image{n}"] for record in records[:2] for n in range(2)])
        (root / images / "eqbenyoucook2").mkdir()
        for n in range(2):
            pixels = np.random.default_rng(n).integers(0, 256, (24, 36, 3), np.uint8)
            np.save(root / images / records[2][f"image{n}"], pixels)
        return dict.fromkeys(RULES, 3)

    return make


def make_vismin(root: Path) -> Counts:
    """Three records of two categories."""
    records = [two_of_each(k, "image_", "text_") | {"category": "counting" if k else "object"} for k in range(3)]
    write_json_lines(root / "vismin/test.jsonl", records)
    write_images(root / "vismin/images", [f"{k}{n}.jpg" for k in range(3) for n in range(2)])
    return dict.fromkeys(RULES, 3)


def make_naturalbench(root: Path) -> Counts:
    """Two pairs of photographs of Flickr30k."""
    write_json(root / "naturalbench/metadata.json", [two_of_each(k, "image_", "caption_") for k in range(2)])
    write_images(root / "naturalbench/images", [f"{k}{n}.jpg" for k in range(2) for n in range(2)])
    return dict.fromkeys(RULES, 2)


def make_spec(root: Path) -> Counts:
    """The true candidate stands where `label` says; sets have two or three candidates."""
    for name in text_to_image.SETS:
        images = [f"images/{k}.png" for k in range(2 if name == "existence" else 3)]
        texts = [f"{k} cats in {name}" for k in range(len(images))]
        for way, queries, keys in (("I2T", images, texts), ("T2I", texts, images)):
            records = [{"query": query, "keys": keys, "label": label} for label, query in enumerate(queries)]
            write_json(root / "spec" / name / f"{text_to_image.WAYS[way]}.json", records)
        write_images(root / "spec" / name, images)
    return {f"{name} {way}": 2 if name == "existence" else 3 for name in text_to_image.SETS for way in ("I2T", "T2I")}


def make_svo_probes(root: Path) -> Counts:
    """Three records, and one in which two parts of the sentence are others; all images have addresses of Flickr."""
    address, pairs = "https://live.staticflickr.com/65/{}_ab.jpg".format, [(0, 1), (1, 2), (2, 3), (0, 3)]
    others = [(True, False, False), (False, True, False), (False, True, False), (True, False, True)]
    rows = [
        (f"A girl stands {k}", "girl,stand,grass", "dog,sit,sand", *map(address, pair), *pair, *others[k])
        for k, pair in enumerate(pairs)
    ]
    columns = ("sentence", "pos_triplet", "neg_triplet", "pos_url", "neg_url", "pos_image_id", "neg_image_id")
    write_csv(root / text_to_image.SVO, (*columns, *text_to_image.KINDS), rows)
    write_images(root / "svo_probes/images", [f"{k}.jpg" for k in range(4)])
    return {"subject": 1, "verb": 2}


def make_crepe(files: Mapping[str, str], columns: Mapping[str, str]) -> Callable[[Path], Counts]:
    """Two regions, with more negatives of one than of the other; one reaches beyond its image."""

    def make(root: Path) -> Counts:
        for part, file in files.items():
            negatives = [[repr([f"{part} dog {n}" for n in range(2 + k)])] * len(columns) for k in range(2)]
            rows = [(k, k, f"{part} cat", k, 2, 30, 40, *negatives[k]) for k in range(2)]
            write_csv(root / file, ("region_id", "image_id", "caption", *crepe.SIDES, *columns.values()), rows)
        write_images(root / "crepe/images", ["0.jpg", "1.jpg"])
        return {f"{part}{kind}": 2 for part in files for kind in columns}

    return make


def make_whatsup(root: Path) -> Counts:
    """One set of A and two of B, with the paths of the machine that wrote them."""
    sets = {"A": ["beer-bottle armchair"], "B": ["mug knife", "candle_holder bowl"]}
    words = {"A": ("left_of", "right_of", "on", "under"), "B": ("left_of", "right_of", "in-front_of", "behind")}
    folders = {"A": "controlled_images", "B": "controlled_clevr"}
    for part, objects in sets.items():
        records = []
        for first, second in map(str.split, objects):
            captions = [f"A {first} {word} a {second}" for word in words[part]]
            for k, word in enumerate(words[part]):
                name = f"data/{folders[part]}/{first}_{word}_{second}.jpeg"
                records.append({"image_path": name, "caption_options": captions[k:] + captions[:k]})
        write_json(root / f"whatsup/{folders[part]}_dataset.json", records)
        write_images(root / "whatsup" / folders[part], [Path(record["image_path"]).name for record in records])
    return {"A": 4, "B": 8}


def make_questions(name: str, images: str, file_name: Callable[[int], str]) -> Callable[[Path], Counts]:
    """Two questions of two objects and three of one; numbers of images may be texts."""

    def make(root: Path) -> Counts:
        two = [
            [1, "a cat to the left of a dog", "a cat to the right of a dog"],
            ["2", "a cup above a dog", "a cup below it"],
        ]
        one = [[k, f"a cat {k} on the left", f"a cat {k} on the right"] for k in (1, 2, 2)]
        write_json(root / f"whatsup/{name}_two_obj.json", two)
        write_json(root / f"whatsup/{name}_one_obj.json", one)
        write_images(root / images, map(file_name, (1, 2)))
        return {"two objects": 2, "one object": 3}

    return make


def boxed(image: str, true: str, false: str, **more: object) -> dict[str, object]:
    """A record of ARO; its box reaches beyond the image, as some do."""
    box = {"bbox_x": 4, "bbox_y": 2, "bbox_w": 30, "bbox_h": 40}
    return {"image_path": f"vg/{image}", **box, "true_caption": true, "false_caption": false, **more}


def make_vg_relation(root: Path) -> Counts:
    """Two relations that count and one that doesn't."""
    names = ("on", "on", "on", "wearing", "near")
    records = [
        boxed(f"{k % 2}.jpg", f"the cat is {name} dog {k}", f"the dog {k} is {name} the cat", relation_name=name)
        for k, name in enumerate(names)
    ]
    write_json(root / "aro/visual_genome_relation.json", records)
    write_images(root / "aro/images", ["0.jpg", "1.jpg"])
    return {"on": 3, "wearing": 1, "near": 1}


def make_vg_attribution(root: Path) -> Counts:
    """A pair of attributes with enough records, and one without."""
    pairs = [("red", "big")] * 25 + [("small", "wet")]
    records = [
        boxed("0.jpg", f"the {a} cat and the {b} dog {k}", f"the {b} cat and the {a} dog {k}", attributes=[a, b])
        for k, (a, b) in enumerate(pairs)
    ]
    write_json(root / "aro/visual_genome_attribution.json", records)
    write_images(root / "aro/images", ["0.jpg"])
    return {"red_big": 25, "small_wet": 1}


def make_vl_checklist(root: Path) -> Counts:
    """All files in the official folders, with more texts than are scored; a file of SWiG's places is empty there."""
    images = {"swig": "dialing_{}.jpg", "hake": "hcvrd/{}.jpg", "vg": "VG_100K/{}.jpg"}
    counts = {}
    for name in vl_checklist.FILES:
        folder = "swig" if "swig" in name else "hake" if "hake" in name else "vg"
        names = [images[folder].format(k) for k in range(1 + (name == "Attribute/vg/color"))]
        records = [
            [image, {"POS": [f"red cat {k}", "more"], "NEG": [f"blue cat {k}"]}] for k, image in enumerate(names)
        ]
        write_json(root / f"vl_checklist/data/{name}.json", records)
        write_images(root / "vl_checklist/images" / folder, names)
        counts[name] = len(names)
    write_json(root / "vl_checklist/data/Object/Size/swig_size/swig_place/swig_place_large.json", [])
    (root / "vl_checklist/data/Attribute/vg/._color.json").write_bytes(b"\0\5\x16\7")
    return counts


def make_negbench(root: Path) -> Counts:
    """The true caption stands where `correct_answer` says."""
    images = {"coco": "000000000001.jpg", "voc2007": "000001.jpg"}
    columns = ("image_path", *negbench.OPTIONS, "correct_answer", "correct_answer_template")
    for name, file in negbench.FILES.items():
        captions = [f"{name} shows a cat, no dog, {k}" for k in range(4)]
        rows = [(f"data/{images[name]}", *captions, k, template) for k, template in enumerate(negbench.TEMPLATES)]
        write_csv(root / file, columns, rows)
    write_images(root / negbench.IMAGES, images.values())
    return {f"{name} {template}": 1 for name in negbench.FILES for template in negbench.TEMPLATES}


def make_clevr_bind(root: Path) -> Counts:
    """Tables of attributes, and texts of relations whose distractors are made."""
    folder, counts = root / clevr_bind.FOLDER, {}
    for task, (file, images) in clevr_bind.TABLES.items():
        rows = [(f"{k}.png", f"red cube {k}", *(f"colour {n} cube {k}" for n in range(4))) for k in range(2)]
        write_csv(folder / file, ("file_name", *clevr_bind.OPTIONS), rows)
        write_images(folder / images, ["0.png", "1.png"])
        counts[task] = 2
    for task, (file, images) in clevr_bind.RELATIONS.items():
        write_json(folder / file, {"0.png": {"pos": [" cube left sphere", "sphere right cube"]}})
        write_images(folder / images, ["0.png"])
        counts[task] = 2
    return counts


def make_ncd(root: Path) -> Counts:
    """Two composites, a mirror image and one of equal colours, which are no tests, and what isn't an image."""
    names = ["red_apple_green_pear.png", "blue_banana_red_sweet-potato.png", "red_apple_red_plum.png"]
    write_images(root / "ncd/images", [*names, f"MIRROR_{names[0]}"])
    for name in (".DS_Store", "Thumbs.db", "README.txt"):
        (root / "ncd/images" / name).write_bytes(b"\0")
    return {"swap": 2, "swap, right first": 2}


def make_imagenet_ao(root: Path) -> Counts:
    """Folders of compositions, one of several words: more than the true one and the five best false ones."""
    names = ["red_cat/0.jpg", "red_cat/1.JPEG", "wet_park_bench/0.png"]
    names += [f"{name}/0.jpg" for name in ("big_cat", "old_cup", "red_cup", "wet_dog")]
    write_images(root / "imagenet_ao/images", names)
    return dict.fromkeys(("acc1", "acc5"), len(names))


def make_pug_spar(root: Path) -> Counts:
    """Images beside the table: of two animals in each pair of places and textures, of one animal, of two of a kind."""
    rows = [
        ("0.png", "desert", "Cat", "Brown_Bear", "left", "right", "Blue", "Red"),
        ("1.png", "desert", "Cat", "blank", "left", "blank", "Default", "blank"),
        ("2.png", "desert", "Cat", "Pig", "bottom", "top", "Default", "Default"),
        ("3.png", "desert", "Pig", "Cat", "left", "right", "Default", "Default"),
        ("4.png", "desert", "Pig", "Cat", "left", "right", "Grass", "Stone"),
        ("5.png", "desert", "Pig", "Pig", "left", "right", "Default", "Default"),
    ]
    columns = (
        *("filename", "world_name", "character_name", "character2_name", "character1_pos", "character2_pos"),
        *("character_texture", "character2_texture"),
    )
    write_csv(root / "pug_spar/labels.csv", columns, rows)
    write_images(root / "pug_spar", [row[0] for row in rows])
    return {"blue/red": 1, "bottom/top": 1, "left/right": 1, "grass/stone": 1}


def captions_of(k: int) -> list[str]:
    """Two or three captions of an image; one is that of all images, as some are in COCO."""
    shared = ["dogs and a cat in the street by a red bus"] if k % 2 else []
    return [f"a small cat beside {k} big dogs on the green grass", f"{k} dogs and an old cat near a red house", *shared]


IMAGES = 7  # of a retrieval: enough for the true one to miss the best five


def retrieval_counts(pools: Sequence[str] = ("",)) -> Counts:
    """Queries of images and of captions, each by two measures."""
    texts = sum(len(captions_of(k)) for k in range(IMAGES))
    queries = {"I2T R@1": IMAGES, "I2T R@5": IMAGES, "T2I R@1": texts, "T2I R@5": texts}
    return {f"{pool} {name}".strip(): count for pool in pools for name, count in queries.items()}


def image_name(folder: str, k: int) -> str:
    """The file name of an image of COCO 2014, of Flickr8k or of Flickr30k."""
    return {"coco": f"COCO_val2014_{k:012d}.jpg", "flickr8k": f"{k}_{k:09d}f.jpg"}.get(folder, f"{k}.jpg")


def make_karpathy(folder: str, dataset: str, images: str) -> Callable[[Path], Counts]:
    """One file for all splits, of which the test split counts; COCO's also names the folders of images."""

    def make(root: Path) -> Counts:
        entries = [
            {
                **{"filename": image_name(folder, k), "split": "test" if k < IMAGES else "train"},
                **{"imgid": k, "sentids": [k]},
                "sentences": [{"raw": f" {text}\n", "tokens": text.split(), "imgid": k} for text in captions_of(k)],
                **({"filepath": "val2014", "cocoid": k} if folder == "coco" else {}),
            }
            for k in range(IMAGES + 1)
        ]
        write_json(root / folder / dataset, {"dataset": folder, "images": entries})
        write_images(root / images, [image_name(folder, k) for k in range(IMAGES)])
        return retrieval_counts()

    return make


def make_order(folder: str, dataset: str, images: str) -> Callable[[Path], Counts]:
    """The same files as those of retrieval; each caption is a record."""
    files = make_karpathy(folder, dataset, images)
    return lambda root: {"order": files(root)["T2I R@1"]}


TAGS = dict.fromkeys(("cat", "dogs", "grass", "house", "street", "bus"), "NN")
TAGS |= dict.fromkeys(("small", "big", "green", "old", "red"), "JJ")


def tiny_tags(text: str) -> list[tuple[str, str]]:
    """A tagger of a few words."""
    return [(token, TAGS.get(token.lower(), "IN")) for token in re.findall(r"\w+|[^\w\s]", text)]


def make_karpathy_test(path: Path, folder: str) -> None:
    """The same test split in BLIP's format."""
    names = [image_name(path.parent.name, k) for k in range(IMAGES)]
    write_json(path, [{"image": f"{folder}/{name}", "caption": captions_of(k)} for k, name in enumerate(names)])


def make_coco_val2017(root: Path) -> Counts:
    """Annotations in another order than their images."""
    images = [{"id": 10 + k, "file_name": f"{k:012d}.jpg"} for k in range(IMAGES)]
    texts = [(k, text) for k in range(IMAGES) for text in captions_of(k)]
    annotations = [{"id": n, "image_id": 10 + k, "caption": text} for n, (k, text) in enumerate(reversed(texts))]
    write_json(root / "coco/annotations/captions_val2017.json", {"images": images, "annotations": annotations})
    write_images(root / "coco/val2017", [image["file_name"] for image in images])
    return retrieval_counts()


def make_negbench_retrieval(root: Path) -> Counts:
    """Captions are a list in Python's notation, with either quote."""
    for name, file in negbench.RETRIEVAL_FILES.items():
        rows = [
            (f"data/{k:012d}.jpg", repr([f"{text}, {name}, isn't it" for text in captions_of(k)]))
            for k in range(IMAGES)
        ]
        write_csv(root / file, ("filepath", "captions"), rows)
    write_images(root / negbench.IMAGES, [f"{k:012d}.jpg" for k in range(IMAGES)])
    return retrieval_counts(tuple(negbench.RETRIEVAL_FILES))


def make_zero_shot(root: Path) -> Counts:
    """A set of known classes in numbered folders, a set of folders by class name, and one that lists its classes."""
    write_images(root / "zero_shot/mnist", [f"{digit}/{k}.png" for digit in range(10) for k in range(1 + digit % 2)])
    write_images(root / "zero_shot/fruit", [f"{name}/0.jpg" for name in ("red_apple", "pear")])
    write_images(root / "zero_shot/mine", [f"n0000000{k}/0.jpg" for k in range(2)])
    (root / "zero_shot/mine/classes.txt").write_text("n00000001\tdog\nn00000000\tcat\n")
    (root / "zero_shot/mine/templates.txt").write_text("a {c}\nmany {c}s\n")
    return {"mnist acc1": 15, "mnist acc5": 15, "fruit acc1": 2, "mine acc1": 2}


def make_torchvision(root: Path) -> Counts:
    """A set in each of torchvision's layouts."""
    folder = root / "torchvision"

    def write(file: str, content: str) -> None:
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)

    foods = {f"pie_{k}": [f"pie_{k}/{n}" for n in range(1 + k % 2)] for k in range(6)}
    write("food-101/meta/test.json", json.dumps(foods))
    write("oxford-iiit-pet/annotations/test.txt", "Abyssinian_201 1 1 1\nbeagle_7 5 2 4\n")
    textures = [
        f"{name}/{name}_{n}.jpg" for name in ("banded", "dotted", "knitted", "lined", "pitted", "woven") for n in (1, 2)
    ]
    write("dtd/dtd/labels/test1.txt", "\n".join(textures) + "\n")
    variants = [f"{k}07-{k}00 ER" for k in range(7)]
    write("fgvc-aircraft-2013b/data/variants.txt", "\n".join(variants) + "\n")
    write("fgvc-aircraft-2013b/data/images_variant_test.txt", f"0062765 {variants[0]}\n1340192 {variants[3]}\n")
    write_images(folder / "food-101/images", [f"{image}.jpg" for its in foods.values() for image in its])
    write_images(folder / "oxford-iiit-pet/images", ["Abyssinian_201.jpg", "beagle_7.jpg"])
    write_images(folder / "dtd/dtd/images", textures)
    write_images(folder / "fgvc-aircraft-2013b/data/images", ["0062765.jpg", "1340192.jpg"])
    sizes = {"dtd": 12, "fgvc_aircraft": 2, "food101": 9, "pets": 2}
    return {f"{name} {measure}": count for name, count in sizes.items() for measure in ("acc1", "acc5")}


def make_cola_single(root: Path) -> Counts:
    """A set in each of two layouts; a caption has no true hard image, another no hard one."""
    labels = ["square white plate", "red cat", "old dog", "wet cup"]
    true = [[1, 0, 0, 1], [0, 1, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]]
    hard = [[1, 1, 1, 0], [1, 1, 0, 0], [1, 0, 1, 0], [0, 1, 1, 0]]
    rows = [
        [f"images/{k + 1}.jpg", {"1": ["plate", "white"]}, *its] for k, its in enumerate(zip(true, hard, strict=True))
    ]
    write_json(root / "cola/COLA_singleobjects_benchmark_GQA.json", [labels, rows])
    clevr = [[f"CLEVR_{row[0].rpartition('/')[2]}", *row[2:]] for row in rows]
    write_json(root / "cola/COLA_singleobjects_benchmark_CLEVR.json", {"labels": labels, "data": clevr})
    write_images(root / "cola/images", [f"{name}{k + 1}.jpg" for name in ("", "CLEVR_") for k in range(4)])
    return {"GQA": 2, "CLEVR": 2}


def make_pug_worlds(root: Path) -> None:
    """Backgrounds, single animals in both columns, in places and textures, and two animals, which don't count here."""
    columns = (*("filename", "world_name", "character_name", "character2_name"),)
    columns += ("character1_pos", "character2_pos", "character_texture", "character2_texture")
    rows: list[tuple[str, ...]] = []
    for world in ("Desert", "Island"):
        rows.append((world, "blank", "blank", "left", "right", "Default", "Default"))
        for names in [("Cat", "blank"), ("blank", "Cat"), ("Pig", "blank"), ("blank", "Pig"), ("Cat", "Pig")]:
            for places in (("left", "right"), ("bottom", "top")):
                looks = (("Default", "Default"), ("Blue", "Red"), ("Grass", "Stone"))
                rows += [(world, *names, *places, *look) for look in looks]
    write_csv(root / "pug_spar/labels.csv", columns, [(f"{k}.png", *row) for k, row in enumerate(rows)])
    write_images(root / "pug_spar", [f"{k}.png" for k in range(len(rows))])


def make_pug_spar_scenes(root: Path) -> Counts:
    make_pug_worlds(root)
    return (
        {"scene acc1": 2}
        | {f"one animal, {name} acc1": 16 for name in ("default", "blue", "grass")}
        | {f"one animal, {name} acc1": 8 for name in ("left/right", "bottom/top")}
    )


def make_pug_spar_places(root: Path) -> Counts:
    make_pug_worlds(root)
    return {"left/right": 8, "bottom/top": 8}


def probe_counts(sizes: Mapping[str, int], shots: Sequence[int], measures: Sequence[str]) -> Counts:
    """Test images by set, classifier and measure."""
    kinds = ["linear", *(f"linear, {k}-shot" for k in shots), "k-NN"]
    return {f"{name} {kind} {one}": n for name, n in sizes.items() for kind in kinds for one in measures}


def make_probe(root: Path) -> Counts:
    """Six classes of three training images each and one of another set's, which has validation images too."""
    names = [f"pear_{k}" for k in range(6)]
    write_images(root / "zero_shot/fruit", [f"{name}/{k}.jpg" for name in names for k in range(2)])
    write_images(root / "zero_shot_train/fruit", [f"{name}/t{k}.jpg" for name in names for k in range(3)])
    write_images(root / "zero_shot_val/fruit", [f"{name}/v.jpg" for name in names])
    return probe_counts({"fruit": 12}, (1, 2), ("acc1", "acc5"))


def make_probe_torchvision(root: Path) -> Counts:
    """The sets of `make_torchvision`, whose test images are also those of training and, in two sets, of validation."""
    make_torchvision(root)
    folder = root / "torchvision"
    for test in [*folder.rglob("test*.*"), *folder.rglob("images_variant_test.txt")]:
        for part in ("train", "val"):
            name = test.name.replace("test", "trainval" if "annotations" in str(test) and part == "train" else part)
            test.with_name(name).write_text(test.read_text())
    shots = {"dtd": (1, 2), "fgvc_aircraft": (), "food101": (1,), "pets": ()}
    sizes = {"dtd": 12, "fgvc_aircraft": 2, "food101": 9, "pets": 2}
    return {
        key: n
        for name, size in sizes.items()
        for key, n in probe_counts({name: size}, shots[name], ("acc1", "acc5")).items()
    }


# Of each benchmark; counts of those that compare all images with all texts are of queries.
MAKERS: dict[str, Callable[[Path], Counts]] = {
    "bivlc": make_bivlc,
    "clevr-bind": make_clevr_bind,
    "clevr-bind-prompted": make_clevr_bind,
    "coco-order": make_order("coco", "dataset_coco.json", "coco/val2014"),
    "coco-spatial": make_questions("coco_qa", "coco/val2017", "{:012d}.jpg".format),
    "cola": make_cola,
    "cola-single": make_cola_single,
    "colorswap": make_colorswap,
    "crepe-productivity": make_crepe(crepe.PRODUCTIVITY, {"": "hard_negs"}),
    "crepe-systematicity": make_crepe(crepe.SYSTEMATICITY, crepe.COMPOUNDS),
    "eqben": make_eqben("eqben/eqben_subset_10percent_final.json", "eqben/image_subset"),
    "eqben-mini": make_eqben("eqben_mini/all_select.json", "eqben_mini/images"),
    "flickr-order": make_order("flickr30k", "dataset_flickr30k.json", "flickr30k/images"),
    "gqa-spatial": make_questions("vg_qa", "gqa/vg_images", "{}.jpg".format),
    "imagenet-ao": make_imagenet_ao,
    "mmvp-vlm": make_mmvp_vlm,
    "naturalbench-retrieval": make_naturalbench,
    "ncd": make_ncd,
    "negbench": make_negbench,
    "negbench-retrieval": make_negbench_retrieval,
    "pug-spar": make_pug_spar,
    "probe": make_probe,
    "probe-torchvision": make_probe_torchvision,
    "pug-spar-places": make_pug_spar_places,
    "pug-spar-scenes": make_pug_spar_scenes,
    "pug-spare": make_pug_spare,
    "retrieval-coco": make_karpathy("coco", "dataset_coco.json", "coco/val2014"),
    "retrieval-coco-val2017": make_coco_val2017,
    "retrieval-flickr30k": make_karpathy("flickr30k", "dataset_flickr30k.json", "flickr30k/images"),
    "retrieval-flickr8k": make_karpathy("flickr8k", "dataset_flickr8k.json", "flickr8k/images"),
    "spec": make_spec,
    "sugarcrepe": make_sugarcrepe,
    "sugarcrepe-pp": make_sugarcrepe_pp,
    "svo-probes": make_svo_probes,
    "valse": make_valse,
    "vg-attribution": make_vg_attribution,
    "vg-relation": make_vg_relation,
    "vismin": make_vismin,
    "vl-checklist": make_vl_checklist,
    "whatsup": make_whatsup,
    "winoground": make_winoground,
    "zero-shot": make_zero_shot,
    "zero-shot-torchvision": make_torchvision,
}


def build(name: str, root: Path, **options: Any) -> PhotographBenchmark:
    """A benchmark whose files are below a folder, with small images and a tagger of a few words."""
    return load_benchmark(name).build(Place(root, **({"resolution": 16, "tag": tiny_tags} | options)))


def make(name: str, root: Path, **options: Any) -> PhotographBenchmark:
    """Make the tiny files of a benchmark below a folder, and build it."""
    MAKERS[name](root)
    return build(name, root, **options)


def is_picture(path: Path) -> bool:
    """Whether a file is one of the pictures that are made here."""
    return path.suffix in (".jpg", ".jpeg", ".JPEG", ".png", ".npy")


def truth(of: Item | Pool) -> np.ndarray:
    """1 where an image of an item or a pool belongs with a text, else 0."""
    scores = np.zeros((len(of.images), len(of.texts)), np.float32)
    for pair in (
        of.pairs
        if isinstance(of, Pool)
        else ((k, j) for k in range(len(of.images)) for j in of.own(k) if j < len(of.texts))
    ):
        scores[pair] = 1
    return scores


def outcomes_of(
    bench: PhotographBenchmark, score: Callable[[np.ndarray], np.ndarray]
) -> tuple[list[Item], list[Outcome]]:
    """The items or queries of a benchmark, and their outcomes under the scores that `score` makes of each `truth`."""
    results = [result for pool in getattr(bench, "pools", ()) for result in bench.results(pool, score(truth(pool)))]
    items = [*bench.items, *(result.item for result in results)]
    return items, [
        *(bench.outcome(item, score(truth(item))) for item in bench.items),
        *(result.outcome for result in results),
    ]
