"""GQA-spatial of What'sUp (Kamath et al. 2023): where one or two things are in a photograph."""

from menagerie.generators.benchmarks.spatial_questions import questions
from menagerie.generators.sources.kept_out import VISUAL_GENOME

FILES = {"two objects": "whatsup/vg_qa_two_obj.json", "one object": "whatsup/vg_qa_one_obj.json"}

BENCHMARK = questions(
    "gqa-spatial",
    FILES,
    "gqa/vg_images",
    lambda image: f"{image}.jpg",
    {"two objects": 291, "one object": 1160},
    VISUAL_GENOME,
)
