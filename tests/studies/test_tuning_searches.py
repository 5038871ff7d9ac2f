"""What tuning draws, and what failures leave: plans whose runs take no time."""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from menagerie.envs.core.errors import UserError
from menagerie.studies import tune
from menagerie.studies.frame.arm import Arm
from menagerie.studies.frame.cells import read_tuned
from menagerie.studies.frame.parts import Rows, Sentence
from menagerie.studies.frame.records import Records
from menagerie.studies.frame.search_figures import search_figures
from menagerie.studies.frame.study import all_arms
from menagerie.studies.runs.command_line import only_models, scorer_options
from menagerie.studies.tune import Searched, Tune
from tests.command import read_rows

SMALL = replace(
    tune.PRESETS["smoke"],
    **{"models": ("clip",), "trials": 7, "trials_at_once": 2, "finalists": 2},
    **{"architectures": ("nano", "micro"), "parameters": 10**6},
)


def learnt(arm):
    """Accuracy of a run, without training."""
    recipe = arm.cell.recipe
    return 0.9 - abs(math.log10(recipe.learning_rate) + 2.5) / 4 - recipe.weight_decay / 10 - arm.cell.seed / 100


@dataclass(frozen=True)
class Untrained(Records):
    """A folder whose runs take no time; one for which `fails` holds diverges."""

    fails: Callable[[Arm], bool] = lambda arm: False
    scores: dict[str, float] = field(default_factory=dict)

    def score(self, arm, subset="validation", task="swap"):
        return self.scores.get(arm.id)

    def mean(self, arms, subset="validation", task="swap"):
        scores = [self.score(arm) for arm in arms]
        return None if None in scores else sum(scores) / len(scores)

    def has_diverged(self, arm):
        return self.over(arm) and self.fails(arm)

    def over(self, arm):
        return arm.id in self.scores

    def run(self, study, most=10**6):
        """Run what a study's plan asks for, but no more than that; returns what came of it."""
        for _ in range(most):
            waiting = [arm for arm in study.plan(self) if not self.over(arm)]
            if not waiting:
                break
            self.scores[waiting[0].id] = 0.0 if self.fails(waiting[0]) else learnt(waiting[0])
        return list(study.all_searched(self))


def folder(out, fails=lambda arm: False):
    """A new one."""
    out.mkdir(exist_ok=True)
    return Untrained((), out, fails=fails)


def drawn(searched):
    """Parameters and values of all trials, and means over seeds."""
    return [([(t.number, t.params, t.values) for t in its.trials], its.means) for its in searched]


def test_a_trial_that_diverges_is_left_out_with_its_reason(tmp_path):
    """The others go on; it is nobody's best, and what TPE draws later knows of it."""
    records = folder(tmp_path, lambda arm: arm.cell.recipe.learning_rate > 3e-3)
    (its,) = records.run(SMALL)
    rows = SMALL.trial_rows([its])
    failed = [row for row in rows if row["learning_rate"] > 3e-3]
    assert 0 < len(failed) < len(rows) == 7
    assert all((row["validation"] is None) == (row in failed) for row in rows)
    assert all(trial.state is TrialState.PRUNED for trial in its.trials if trial.values is None)
    assert all(bool(row["failed"]) == (row in failed) for row in rows)
    assert set(its.means).isdisjoint(row["trial"] for row in failed)
    assert its.chosen[0].params["learning_rate"] <= 3e-3
    SMALL.export(records)
    written = read_rows(tmp_path / "trials.csv")
    assert [row["validation"] == "" for row in written] == [row in failed for row in rows]
    best = read_tuned(str(tmp_path / "best.json"), ["clip"])["clip"]
    assert best.fields["learning_rate"] == its.chosen[0].params["learning_rate"]
    parts = list(SMALL.page(records))
    assert f"clip: trial {its.chosen[0].number} is best, with {100 * its.chosen[1]:.1f} %" in parts[0].text


def test_best_is_not_written_before_it_is_known(tmp_path):
    records = folder(tmp_path)
    for most in (3, 5):  # in the trials, and in the seeds of the best
        records.run(SMALL, most)
        SMALL.export(records)
        assert not (tmp_path / "best.json").exists()
        assert "none is chosen yet" in next(iter(SMALL.page(records))).text
    records.run(SMALL)
    SMALL.export(records)
    assert (tmp_path / "best.json").exists()


def test_fewer_trials_than_finalists_are_enough(tmp_path):
    kept = 0.002  # the first one's
    (its,) = folder(tmp_path, lambda arm: arm.cell.recipe.learning_rate != kept).run(SMALL)
    assert list(its.means) == [0]
    assert its.means[0] == pytest.approx(its.trials[0].values[0] - 0.005)
    assert its.over


def test_a_finalist_one_of_whose_seeds_diverges_is_not_chosen(tmp_path):
    best = max(folder(tmp_path / "a").run(SMALL)[0].means)
    (before,) = folder(tmp_path / "a").run(SMALL)
    number, trial = before.chosen[0].number, before.chosen[0]
    rate = trial.params["learning_rate"]
    (its,) = folder(tmp_path / "b", lambda arm: arm.cell.seed == 1 and arm.cell.recipe.learning_rate == rate).run(SMALL)
    assert its.means[number] is None
    assert its.chosen[0].number != number
    assert best in its.means


def test_a_model_all_of_whose_trials_fail_is_named_and_the_others_have_their_recipe(tmp_path):
    study = replace(SMALL, trials=2, models=("clip", "negclip"))
    records = folder(tmp_path, lambda arm: arm.cell.model == "clip")
    records.run(study)
    with pytest.raises(UserError, match="every trial of clip failed"):
        study.export(records)
    assert set(read_tuned(str(tmp_path / "best.json"), ["clip", "negclip"])) == {"negclip"}
    assert len(read_rows(tmp_path / "trials.csv")) == 4
    said = next(part.text for part in study.page(records) if isinstance(part, Sentence))
    assert said == "clip: every trial failed."


def test_a_trial_of_too_many_parameters_is_pruned_with_its_reason(tmp_path):
    """Options of a model's own are searched too, and decide its size."""
    (its,) = folder(tmp_path).run(replace(SMALL, trials=3, parameters=1000))
    assert [trial.state for trial in its.trials] == [TrialState.PRUNED] * 3
    reasons = [row["failed"] for row in SMALL.trial_rows([its])]
    assert all(re.fullmatch(r"\d+ parameters, more than --parameters 1000", why) for why in reasons)


def test_a_stopped_search_of_tuning_draws_the_same_trials(tmp_path):
    """In a search's first points, after them, in the second model's search, and in further seeds."""
    study = replace(SMALL, models=("clip", "negclip"))
    records = folder(tmp_path / "a")
    for most in (1, 3, 3, 5):
        records.run(study, most)
    stopped, once = records.run(study), folder(tmp_path / "b").run(study)
    assert drawn(stopped) == drawn(once)
    assert len({json.dumps(trial.params) for trial in once[0].trials}) == 7


def test_a_folder_goes_on_with_further_models_and_seeds(tmp_path):
    """One model alone, then both with more seeds: as if they had been tuned together."""
    further = replace(SMALL, models=("clip", "negclip"), seeds=3)
    records = folder(tmp_path / "a")
    records.run(SMALL)
    ran = set(records.scores)
    assert drawn(records.run(further)) == drawn(folder(tmp_path / "b").run(further))
    assert ran < set(records.scores)


def test_another_command_on_the_storage_joins_in(tmp_path):
    """Each runs its own trials; the last of them runs the best with all seeds, and has the same trials on its page."""
    study = replace(SMALL, storage=str(tmp_path / "j.log"), trials_at_once=1)
    first, second = folder(tmp_path / "a"), folder(tmp_path / "b")
    for _ in range(3):
        first.run(study, 1)
        second.run(study, 1)
    assert "run elsewhere" not in first.run(study, 0)[0].model
    (mine,) = first.run(study)
    assert mine.elsewhere in (0, 1)
    (last,) = second.run(study)
    assert len(last.trials) == 7
    assert last.chosen
    assert {trial.state for trial in last.trials} == {TrialState.COMPLETE}
    assert [trial.values for trial in first.run(study)[0].trials] == [trial.values for trial in last.trials]


def test_a_dry_run_sees_all_runs_and_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len(all_arms(SMALL)) == 7 + 2
    assert not list(tmp_path.iterdir())


def test_options_of_its_own_are_searched_where_a_spec_names_them(tmp_path):
    """Beside the same recipe space as every model's; the best are read back by --tuned."""
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\n"
        "from menagerie.models.networks.clip import CLIPScorer\n"
        "from menagerie.models.scorers.clip import CLIPConfig\n"
        "from menagerie.models.spec import Range, ScorerSpec\n\n"
        "@dataclass(frozen=True)\nclass Config(CLIPConfig):\n    width: int = 3\n    kind: str = 'a'\n\n"
        "class Mine(CLIPScorer):\n    config_class = Config\n"
        "    spec = ScorerSpec(name='mine', implementation='', config=Config, small={'width': 5},\n"
        "                      space={'width': Range(2, 64, log=True), 'kind': ('a', 'b')})\n"
    )
    name = f"{tmp_path}/mine.py:Mine"
    study = replace(SMALL, models=("clip", name), scorers=only_models(scorer_options("small"), ["clip", name]))
    both = [study.space(model) for model in study.models]
    assert both[1] == both[0] | {
        "option width": IntDistribution(2, 64, log=True),
        "option kind": CategoricalDistribution(("a", "b")),
    }
    assert study.first_point(name)["option width"] == 5
    point = study.first_point(name) | {"warmup": 20, "option width": 7, "option kind": "b"}
    arm = study.run(name, point, 0)
    assert arm.cell.options == {"width": 7, "kind": "b"}
    assert arm.cell.recipe.warmup == 20


@dataclass(frozen=True)
class Mine(Tune):
    """Batches and data too, for the worse of two seeds"""

    def space(self, model):
        wider = {"batch": CategoricalDistribution((16, 32)), "pairs": FloatDistribution(0.5, 1.0)}
        return super().space(model) | wider

    def objective(self, known, arms):
        """Errors of the worse seed."""
        scores = [known.score(arm) for arm in arms]
        return None if None in scores else 1 - min(scores)


def test_a_space_and_an_objective_of_a_users_own(tmp_path):
    study = Mine(**{item.name: getattr(SMALL, item.name) for item in fields(SMALL)})
    records = folder(tmp_path)
    (its,) = records.run(study)
    assert {trial.params["batch"] for trial in its.trials} == {16, 32}
    arms = {arm.labels["trial"]: arm.cell for arm in study.plan(records) if arm.cell.seed == 0}
    assert all(arms[t.number].recipe.batch == t.params["batch"] for t in its.trials)
    assert all(arms[t.number].data.recipe.pairs == t.params["pairs"] for t in its.trials)
    assert list(its.trials[0].values) == [pytest.approx(1 - records.scores[arms[0].id])]
    parts = list(study.page(records))
    assert any("takes no batch, pairs" in getattr(part, "text", "") for part in parts)
    course = next(part for part in parts if getattr(part, "name", "") == "history")
    assert course.figure().axes[0].get_ylabel() == "Errors of the worse seed"
    assert [row["value"] for row in course.numbers()] == [trial.values[0] for trial in its.trials]
    assert "Errors of the worse seed" in next(part.header for part in parts if isinstance(part, Rows))


def test_the_table_of_trials_has_the_options_of_all_models():
    class Trial:
        number, values, user_attrs = 0, (0.5,), {}

        def __init__(self, **params):
            self.params = params

    plain, own = Trial(learning_rate=0.1), Trial(learning_rate=0.2, **{"option width": 3})
    both = [Searched(name, [trial], {}, {}, 0, True) for name, trial in (("a", plain), ("b", own))]
    assert [row["options"] for row in SMALL.trial_rows(both)] == [{}, {"width": 3}]
    assert "options" not in SMALL.trial_rows(both[:1])[0]


def test_a_folder_goes_on_with_more_trials(tmp_path):
    """As if all had been asked for at once."""
    records = folder(tmp_path / "a")
    records.run(replace(SMALL, trials=3))
    assert "trials" in Tune.growing()
    assert drawn(records.run(SMALL)) == drawn(folder(tmp_path / "b").run(SMALL))


def test_a_figure_has_the_trials_with_values_and_parameters_that_vary():
    """Without two different values there is none."""
    space = {"x": FloatDistribution(0, 1), "fixed": FloatDistribution(1, 1)}

    def trial(x, value):
        return optuna.create_trial(params={"x": x, "fixed": 1.0}, distributions=space, value=value)

    def drawn(searches):
        return [part.figure() for part in search_figures(searches, "accuracy")]

    for trials in ([], [trial(0.5, 0.5)], [trial(0.1, 0.5), trial(0.2, 0.5)]):
        assert drawn({"a": trials}) == [None, None]
    trials = [trial(0.1 * k, 0.5 + 0.01 * k) for k in range(4)]
    _, by_parameter = drawn({"a": trials})
    assert len(by_parameter.axes[:-1]) == 1
    two = next(search_figures({"a": trials, "b": trials[:2]}, "accuracy"))
    assert len(two.numbers()) == 6
    assert two.figure().axes
