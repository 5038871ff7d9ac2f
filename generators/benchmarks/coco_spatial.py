"""COCO-spatial of What'sUp (Kamath et al. 2023): where one or two things are in a photograph."""

from menagerie.generators.benchmarks.spatial_questions import questions
from menagerie.generators.sources.kept_out import COCO

FILES = {"two objects": "whatsup/coco_qa_two_obj.json", "one object": "whatsup/coco_qa_one_obj.json"}

BENCHMARK = questions(
    "coco-spatial",
    FILES,
    "coco/val2017",
    lambda image: f"{image:012d}.jpg",
    {"two objects": 440, "one object": 2247},
    COCO,
)
