"""What the ablation study varies of models, and what their papers say of that: OC-CLIP's tables 6 and 7 and figures 3
and 4; SPARO's table 6, between attentional pooling and SPARO; DCSM's functional words."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from menagerie.models.scorers import oc_clip
from menagerie.models.spec import ScorerSpec


@dataclass(frozen=True)
class Claim:
    """A paper's claim on an ablation: on these columns (subset, task) the row is lower (-1) or higher (1)."""

    row: str
    split: str
    columns: tuple[tuple[str, str], ...]
    sign: int
    text: str


@dataclass(frozen=True, eq=False)
class Ablations:
    """What `studies/ablations.py` varies of a model: named rows, each with the options that it changes, such as
    {"narrow": "dim=16"}."""

    rows: Mapping[str, str]
    says: Mapping[str, str] = field(default_factory=dict)
    """For each row, the words by which reports say what it changes."""
    more: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Groups of further rows that are requested together, by name."""
    planes: tuple[tuple[str, str], ...] = ()
    """Pairs of options that groups vary together: where a study has all of their values, its report draws heat maps."""
    axes: Mapping[str, str] = field(default_factory=dict)
    """For each option, what the axes of figures say beside its name."""
    relational: frozenset[str] = frozenset()
    """Fields that change nothing where no caption states a relation."""
    ratio: tuple[str, str] | None = None
    """Two scalar weights whose ratio after training the report shows."""
    ratio_says: str = ""
    """What the report says of it."""
    claims: tuple[Claim, ...] = ()


INITIAL = (1.5, 1.0, 0.5, 0.1)  # of alpha and of beta (appendix A.1)
DEFAULTS = (1.5, 0.5)
OBJECTS, RELATIONS = (16, 32, 64, 128), (8, 16, 32, 64)  # figure 4, in sizes for small towers
SMALL = {name: oc_clip.OC_CLIP.small[name] for name in ("dim", "relation_dim")}
OTHER_OBJECTS = [size for size in OBJECTS if size != SMALL["dim"]]
OTHER_RELATIONS = [size for size in RELATIONS if size != SMALL["relation_dim"]]
ORDERS = (("left_right_unseen_order", "swap"), ("above_under_unseen_order", "swap"))
ATTRIBUTES = (("seen_pairs", "swap"), ("unseen_pairs", "swap"), ("unseen_pairs", "replace texture"))


def sizes(dim: int, relation_dim: int) -> tuple[str, str]:
    """The name and the line of a row with other sizes than those for small towers."""
    named = {"dim": ("objects", dim), "relation_dim": ("relations", relation_dim)}
    others = {name: (what, size) for name, (what, size) in named.items() if size != SMALL[name]}
    name = ", ".join(f"{what} in {size}" for what, size in others.values())
    return name, " ".join(f"{name}={size}" for name, (_, size) in others.items())


OC_CLIP = Ablations(
    rows={
        "no local loss": "local_weight=0.0",
        "mean local loss": "local_mean=True",
        "swapped graph only": "local_negatives=('swapped',)",
        "shuffled graph only": "local_negatives=('shuffled',)",
        "regular attention": "competitive=False",
        "focused competition": "focus=True",
        "no default token": "default_tokens=0",
        "1 default token": "default_tokens=1",
        "joint relation": "relation='joint'",
        **dict(sizes(size, SMALL["relation_dim"]) for size in OTHER_OBJECTS),
        **dict(sizes(SMALL["dim"], size) for size in OTHER_RELATIONS),
    },
    says={
        "no local loss": "without the loss that compares a caption's graph with altered ones",
        "mean local loss": "that loss as a mean over the captions that state relations, not as a sum over the batch",
        "swapped graph only": "in that loss only graphs whose relation has its two things exchanged",
        "shuffled graph only": "in that loss only graphs whose relations are dealt out to other things",
        "regular attention": "each thing spreads over the patches by itself: things don't compete for a patch",
        "focused competition": "things compete, and of its share each takes most where it fits best; not in the paper",
        "no default token": "nothing takes the patches that the caption doesn't mention (as it is: 4 tokens do)",
        "1 default token": "one token takes the patches that the caption doesn't mention, not 4",
        "joint relation": "one network judges a relation's two things together, not one each in a sum",
        **{f"objects in {size}": f"things have vectors of {size} numbers" for size in OTHER_OBJECTS},
        **{f"relations in {size}": f"relations have vectors of {size} numbers" for size in OTHER_RELATIONS},
    },
    more={
        "coefficients": {
            f"alpha {alpha:g}, beta {beta:g}": f"alpha={alpha} beta={beta}"
            for alpha in INITIAL
            for beta in INITIAL
            if (alpha, beta) != DEFAULTS
        },
        "dimensions": dict(
            sizes(dim, relation_dim)
            for dim in OBJECTS
            for relation_dim in RELATIONS
            if (dim, relation_dim) != tuple(SMALL.values())
        ),
    },
    planes=(("beta", "alpha"), ("dim", "relation_dim")),
    axes={
        "beta": "where the weight of relations starts",
        "alpha": "where the weight of things starts",
        "dim": "numbers in the vector of a thing",
        "relation_dim": "numbers in the vector of a relation",
    },
    relational=frozenset(
        {"local_weight", "local_negatives", "local_mean", "relation", "relation_dim", "alpha", "beta"}
    ),
    ratio=("alpha", "beta"),
    ratio_says="It says how much the animals of a caption count beside its relations: alpha weighs the match of each "
    "animal, beta that of each relation. Both are learned, from 1.5 and 0.5 unless the row says otherwise: a ratio of "
    "3.",
    claims=(
        Claim(
            *("no local loss", "spatial", ORDERS, -1),
            "Without the local loss relations are understood less (table 7 of OC-CLIP: swap obj 73.1 against 80.7).",
        ),
        Claim(
            *("regular attention", "binding", ATTRIBUTES, -1),
            "Regular attention, without competition, is a little worse at attributes (table 7 of OC-CLIP: swap att "
            "86.0 against 88.7).",
        ),
        Claim(
            *("joint relation", "spatial", ORDERS, -1),
            "A joint MLP of both slots is worse than the sum of two (table 7 of OC-CLIP: swap obj 78.4 against 80.7).",
        ),
    ),
)


def line(attention: str, norm: bool, projection: bool) -> str:
    """A row of table 6. The paper keeps the last blocks in these, not in SPARO; here each row changes one thing."""
    return f"attention={attention} slot_norm={norm} slot_projection={projection}"


SPARO = Ablations(
    rows={
        "attentional pooling": line("multi", False, False),
        "multi-head, slot projection": line("multi", False, True),
        "multi-head, slot norm": line("multi", True, False),
        "multi-head, both": line("multi", True, True),
        "separate heads": line("separate", False, False),
        "separate heads, slot projection": line("separate", False, True),
        "separate heads, slot norm": line("separate", True, False),
        "separate heads, both": line("separate", True, True),
        "last block kept": "replace_block=False",
    },
    says={
        "attentional pooling": "heads of attention whose outputs a map mixes; LayerNorm and projection of them all as "
        "one vector",
        "multi-head, slot projection": "attentional pooling with a projection of each slot by itself",
        "multi-head, slot norm": "attentional pooling with a LayerNorm of each slot by itself",
        "multi-head, both": "attentional pooling with both of each slot by itself",
        "separate heads": "heads of attention whose outputs nothing mixes; LayerNorm and projection of them all as one "
        "vector",
        "separate heads, slot projection": "separate heads with a projection of each slot by itself",
        "separate heads, slot norm": "separate heads with a LayerNorm of each slot by itself",
        "separate heads, both": "separate heads with both of each slot by itself",
        "last block kept": "SPARO behind each tower's last block, not in its place",
    },
    claims=(
        Claim(
            *("attentional pooling", "binding", ATTRIBUTES, -1),
            "Attentional pooling is worse (table 6: ImageNet 31.2 against 37.0).",
        ),
        Claim(
            *("multi-head, both", "binding", ATTRIBUTES, -1),
            "Heads that are mixed are worse (table 6: 35.9 against 37.0).",
        ),
        Claim(
            *("separate heads, slot norm", "binding", ATTRIBUTES, -1),
            "A projection of all slots as one vector is worse (table 6: 34.4 against 37.0).",
        ),
        Claim(
            *("separate heads", "binding", ATTRIBUTES, -1),
            "Heads that are normalised and projected as one vector are worse (table 6: 34.4 against 37.0).",
        ),
    ),
)

DCSM = Ablations(
    rows={
        "no functional words": "functional_words=()",
        "trained functional vectors": "functional=trained",
    },
    says={
        "no functional words": "words that place, size or deny things are words like others",
        "trained functional vectors": "these words' own vectors are trained, not fixed",
    },
    relational=frozenset({"functional_words", "functional"}),
)

# By the names of the models; a model without an entry has no rows of its own.
ABLATIONS = {"dcsm": DCSM, "oc-clip": OC_CLIP, "sparo": SPARO}


def ablations_of(spec: ScorerSpec) -> Ablations:
    """The ablations of a model; empty for one without an entry."""
    return ABLATIONS.get(spec.name, Ablations({}))
