"""A ladder of data: how far models are above the first one at each fraction of pairs, and how that lead changes from
the least data to the most."""

from collections.abc import Iterator

from menagerie.studies.analysis.intervals import Estimate
from menagerie.studies.frame.cells import title_of
from menagerie.studies.frame.costs import quantity_text
from menagerie.studies.frame.estimate import weigh_groups
from menagerie.studies.frame.layout import label_values
from menagerie.studies.frame.parts import EstimateTable, Lines, Part, Sentence, Table
from menagerie.studies.frame.records import Records

CHANGE = "least minus most"
PLACE = ("model", "steps", "pairs")
Leads = dict[tuple[str, int, str], Estimate]


def ladder_parts(records: Records, judged: tuple[str, ...]) -> Iterator[Part]:
    """Yield the change of each lead in words, accuracy by fraction, all leads, and all tests; `judged` are the tests
    that decide."""
    swaps, unseen = (records.where(task="swap", subset=tests) for tests in (records.tests, judged))
    first, leads = records.labels("model")[0], lead_rows(unseen)
    for (model, steps, name), its in leads.items():
        if name == CHANGE:
            least = next(iter(lead for key, lead in leads.items() if key[:2] == (model, steps)))
            above = f"{title_of(model)} is {least} points above {title_of(first)} with the least data"
            yield Sentence(f"After {steps} steps each, {above}; from there to the most its lead falls by {its}.")
    yield Lines("ladder", unseen, "pairs", panels=("steps",), says="Accuracy (%) on swaps of unseen pairs.")
    yield EstimateTable("leads", ("model", "steps", "lead"), leads, says=LEADS.format(title_of(first)))
    places = [arm.place for arm, _ in records.results]
    costs = {label_values(place, PLACE): quantity_text(place["flops"] / 1e12) for place in places}
    yield Table("levels", swaps, PLACE, intervals=True, beside={"10^12 operations": costs}, says=LEVELS)


def lead_rows(unseen: Records) -> Leads:
    """Return how far each model is above the first, by its steps and the fraction of pairs (in percent), and the lead
    at the least minus that at the most."""
    first, *others = unseen.labels("model")
    least, *_, most = sorted(unseen.labels("pairs"))
    above, found = unseen.estimates(PLACE, {"model": first}), Leads()
    for model in others:
        for steps in unseen.labels("steps"):
            its = {key[2]: lead for key, lead in above.items() if key[:2] == (model, steps)}
            found |= {(model, steps, f"{share:.0%}"): its[share] for share in sorted(its)}
            if {least, most} <= its.keys():
                at_both = [unseen.where(steps=steps, pairs=pairs) for pairs in (least, most)]
                groups = [its.where(model=name).points for its in at_both for name in (model, first)]
                found[model, steps, CHANGE] = weigh_groups(groups, (1.0, -1.0, -1.0, 1.0))
    return found


LEADS = """Points above {} with the same pairs and steps. The last row is the lead at the least pairs minus that at the
most."""
LEVELS = """Accuracy (%) on swaps of all tests. Operations are those of a run, forwards and backwards. Where a model has
learnt its training data, `train_pairs` is near 100."""
