"""Rows that go beyond a model's own parts: is it the graph, are the negatives fair, does a model fit at all?

`oracle`: a model that reads scene graphs has something that CLIP hasn't. Rows with CLIP, with other models that read
the same graphs, with errors in the graphs, and with graphs that a parser makes of the caption alone.

`negatives`: every model with swapped captions as negatives beside the same model without; what masks and the first
phase bring; and single animals that are all in one place.

`partial`: captions that leave things and textures out, in training, and what attention does with the things that a
caption of a test leaves out.
"""

from collections.abc import Iterator, Mapping

from menagerie.generators.parsers.graph_source import GRAPHS_AT
from menagerie.models.registry import specs
from menagerie.models.spec import ScorerSpec
from menagerie.studies.ablation.papers import ablations_of

SHARES = (0.05, 0.1, 0.2)
ERRORS = {"dropped_nodes": "nodes dropped", "moved_attributes": "attributes moved"}
WHERE = {"train": "in training", "test": "in tests", "both": "in both"}
PARSERS = ("rules", "spacy-rules")
CONTROLS = ("clip", "clip-phrases", "filip-phrases")
# What a training run has, but for the model: each is left out in turn.
PARTS = {
    "no false-negative mask": "mask_false_negatives=False",
    "no single-object phase": "single_object_phase=0.0",
    "single objects in the centre": "singles_slots=('center',)",
}
# What training captions leave out. Spatial ones state a relation, so that they mention both things.
LEFT_OUT = {
    "": "",
    "attributes left out": "attributes=0.8",
    "things and attributes left out": "mentioned=0.7 attributes=0.8",
}
ATTENTION = ("regular attention", "focused competition")  # rows of a model that has them


def groups(spec: ScorerSpec) -> dict[str, Mapping[str, str]]:
    """Rows of a study of a model, by the name of their group."""
    return {"oracle": dict(oracle(spec)), "negatives": dict(negatives(spec)), "partial": dict(partial(spec))}


def titled(model: str) -> str:
    """A model as reports call it."""
    return specs()[model].title or model


def oracle(spec: ScorerSpec) -> Iterator[tuple[str, str]]:
    """Other models, and other graphs for this one where it reads any."""
    others = [model for model in CONTROLS if model in specs() and model != spec.name]
    yield from ((titled(model), f"model={model}") for model in others)
    if "graphs" not in spec.reads:
        return
    for name, what in ERRORS.items():
        for share in SHARES:
            for place in GRAPHS_AT:
                yield f"{share:.0%} {what} {WHERE[place]}", f"{name}={share} graphs_at={place}"
    yield from ((f"graphs of {parser}", f"graphs={parser}") for parser in PARSERS)


def negatives(spec: ScorerSpec) -> Iterator[tuple[str, str]]:
    """Every model with and without swapped captions, and what training is made of."""
    for model, its in specs().items():
        if model != spec.name:
            yield titled(model), f"model={model}"
        if "captions" not in its.negatives:  # which has them by itself
            yield f"{titled(model)}, swapped captions", f"model={model} text_negatives=('swap',)"
    if spec.local_loss:  # which compares relations with false ones by itself
        yield "no local loss", "local_weight=0.0"
        yield "swapped captions in place of the local loss", "local_weight=0.0 text_negatives=('swap',)"
    for model in dict.fromkeys(("clip", spec.name)):
        yield from ((f"{titled(model)}, {what}", f"model={model} {line}") for what, line in PARTS.items())


def partial(spec: ScorerSpec) -> Iterator[tuple[str, str]]:
    """Every way of leaving out with every attention, but for the model as it is."""
    attentions = {"": ""} | {name: line for name, line in ablations_of(spec).rows.items() if name in ATTENTION}
    for left_out, fields in LEFT_OUT.items():
        for attention, option in attentions.items():
            if name := ", ".join(filter(None, (left_out, attention))):
                yield name, " ".join(filter(None, (fields, option)))
