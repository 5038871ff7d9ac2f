"""From synthetic scenes to photographs: trains any scorers on captioned photographs, alone, after
rendered scenes or mixed with them, and scores them on real benchmarks in the same command.

    python studies/real_data.py --preset smoke             # rendered files in the place of COCO's
    python studies/real_data.py --check --data-root DATA   # what is complete, and what to get
    python studies/real_data.py --preset oc-clip --data-root DATA --device cuda

A cell is a model on sources with a parser, a share of rendered scenes, starting weights and a seed. Photographs that
tests show are left out and counted. Ends with `report.html`, `results.csv`, `cells.jsonl` and, in `benchmarks/`, the
scores of every record. Run again, it skips what is finished; stopped, it goes on from its last state.
"""

from dataclasses import replace
from pathlib import Path

from menagerie.envs.core.errors import run_command
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.models.recipe import Recipe
from menagerie.studies.frame.cells import PAPER_RECIPES
from menagerie.studies.real_training.config import FURTHER, Config
from menagerie.studies.runs.command_line import only, parse, scorer_options

# Section 4.2 of OC-CLIP's paper and its appendix A.8. Rates are those of each model's paper (`ScorerSpec.pretrained`):
# of OpenCLIP-FT 4e-6; of OC-CLIP 2e-4, 2e-5 for its text tower and 1e-6 for its image tower.
FINE_TUNED = {
    "sources": ("coco+visual_genome+gqa",),
    "seeds": 3,
    "resolution": 224,
    "architecture": "ViT-B-16",
    "pretrained": "laion2b_s34b_b88k",
    "scorers": scorer_options("paper"),
    "loaders": 8,
}
PARSED_BY_LLAMA = "llm:model=meta-llama/Meta-Llama-3-8B-Instruct"
OC_CLIP = FINE_TUNED | {
    "models": ("oc-clip",),
    "parser": (PARSED_BY_LLAMA,),
    "epochs": 100.0,
    "recipe": Recipe(batch=128),
}
PRESETS: dict[str, Config] = {
    "smoke": Config(
        rehearse=True,
        benchmarks=("retrieval-coco-val2017",),
        unknown_words="skip",
        mix=(0.0, 0.5),
        world="tiny",
        base=BindingRecipe(world="tiny", pairs=0.5, hard_negatives=1.0, views=2, test_views=1, test_scenes=24),
        resolution=32,
        architecture="nano",
        epochs=0.0,
        recipe=Recipe(steps=60, batch=32, warmup=5),
        scorers=scorer_options("smoke"),
    ),
    "laptop": Config(),
    "openclip-ft": Config(**FINE_TUNED, models=("clip",), epochs=20.0, recipe=Recipe(batch=256)),
    "oc-clip": Config(**OC_CLIP),
    "oc-clip-b14": Config(**OC_CLIP | {"architecture": "ViT-B-14-DINOv2", "pretrained": "laion2b_s34b_b88k"}),
    # Figure 5: one model, COCO alone, three parsers.
    "figure5": Config(**OC_CLIP | {"sources": ("coco",), "parser": ("spacy-rules", "t5", PARSED_BY_LLAMA)}),
    # Section 4.3.1 and appendix A.2; the rates are `ScorerSpec.scratch`.
    "cc12m": Config(
        **FINE_TUNED | {"sources": ("tar_shards",), "seeds": 1, "pretrained": ""},
        tuned=PAPER_RECIPES,
        parser=(PARSED_BY_LLAMA,),
        epochs=20.0,
        recipe=Recipe(batch=4096),
    ),
}


def main() -> int | None:
    preset, config = parse(PRESETS, "laptop", __doc__)
    from menagerie.studies.real_training.check import check, check_machine, report_states
    from menagerie.studies.real_training.describe import folders_of

    check(config, PRESETS[preset])
    folders = folders_of(config)
    if config.check:
        return report_states(config, config.data_root, folders)
    check_machine(config)
    from menagerie.studies.real_training.report import plan, run
    from menagerie.studies.runs.folder import run_folder

    config = replace(config, scorers=only(config.scorers, config.models))
    if config.dry_run:
        plan(config, folders)
        return None
    with run_folder(config.out or Path(f"runs/real_data-{preset}"), config, FURTHER) as folder:
        run(config, folder, folders)
    return None


if __name__ == "__main__":
    run_command(main)
