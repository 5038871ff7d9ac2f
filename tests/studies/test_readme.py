"""What the README says to paste works, in an empty folder of a clone."""

import ast
import re
import sys
from dataclasses import replace

from menagerie.envs.worlds import load_world
from menagerie.generators.splits.pair_roles import pair_in
from menagerie.generators.splits.recipe_file import read_recipe
from tests.command import FILE, ROOT, paste, read_rows
from tests.forked import run_forked

PAIR = ("left/right", frozenset({"camel", "elephant"}))


def block_with(text: str, language: str = "sh") -> str:
    """The README's block of code that holds `text`."""
    blocks = re.findall(rf"^```{language}\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    (block,) = [block for block in blocks if text in block]
    return block


def test_commands_of_readme_make_an_own_split_and_an_own_model(tmp_path):
    """Two rules, three models, a test for each rule; with few steps and views."""
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    block = (
        block_with("mine.toml")
        .replace("--steps 700", "--steps 4 --batch 8")
        .replace("views = 8", "views = 1\ntest_views = 1")
    )
    printed = paste(block, tmp_path)
    assert ", 0 fail" in printed
    (run,) = tmp_path.glob("runs/*")
    rows = read_rows(run / "results.csv")
    assert len({row["model"] for row in rows}) == 3
    assert {"held_out", "held_out 1", "held_out 2"} <= {row["subset"] for row in rows}
    report = (run / "report.html").read_text()
    assert "held_out 1: texture=red &amp; animal=penguin" in report
    assert "held_out 2: pair={camel, elephant}" in report


def test_the_rules_of_readme_can_be_met_with_any_seed(tmp_path):
    """Chance would keep the pair of a rule for validation with 9 of 100, 8 the first, and tests show no such pair."""
    ((name, text),) = FILE.findall(block_with("mine.toml"))
    (tmp_path / name).write_text(text)
    recipe = replace(read_recipe(str(tmp_path / name)), views=1, test_views=1, test_scenes=20)
    kept = [replace(recipe, seed=seed).validation_pairs(load_world(recipe.world)) for seed in range(30)]
    assert all(len(pairs) == 3 and PAIR not in pairs for pairs in kept)
    tests = replace(recipe, seed=8).subsets()
    assert set(map(pair_in, tests["held_out 2"])) == {PAIR}
    assert len(tests["validation"]) == 20


def test_the_notebook_code_of_readme_runs(tmp_path):
    """Pasted into a file, whose workers don't run it again; with few steps and views. It prints a frame, two captions
    of the same words, and a score for each."""
    small = "batch=8, views=1, test_views=1, test_scenes=12"
    block = block_with("menagerie.train", "python").replace("steps=500", f"steps=4, {small}")
    assert small in block
    (tmp_path / "pasted.py").write_text(f"{block}print(set(trained.records.scores['subset']))\n")
    done = run_forked([sys.executable, "pasted.py"], tmp_path)
    assert done.returncode == 0, done.stderr
    *_, caption, false_caption, scores, subsets = done.stdout.splitlines()
    assert sorted(caption.split()) == sorted(false_caption.split())
    assert caption != false_caption
    assert re.fullmatch(r"tensor\(\[\[-?\d\.\d+, -?\d\.\d+\]\]\)", scores)
    assert {"unseen_pairs", "different_bag"} <= ast.literal_eval(subsets)


def test_the_first_dry_run_of_readme_says_how_long_training_takes(tmp_path):
    line = next(line for line in block_with("--dry-run").splitlines() if "--dry-run" in line)
    assert re.search(r"the steps take at most about [\d.]+ (minutes|hours)", paste(line + "\n", tmp_path))
