"""What the ablation study varies of OC-CLIP, and what its paper says of it (tables 6 and 7, figures 3 and 4)."""

from menagerie.models.spec import Ablations, Claim

INITIAL = (1.5, 1.0, 0.5, 0.1)  # of alpha and of beta (appendix A.1)
DEFAULTS = (1.5, 0.5)
OBJECTS, RELATIONS = (16, 32, 64, 128), (8, 16, 32, 64)  # figure 4, in sizes for small towers
SMALL = {"dim": 64, "relation_dim": 32}  # table 11 has 256 and 128
OTHER_OBJECTS = [size for size in OBJECTS if size != SMALL["dim"]]
OTHER_RELATIONS = [size for size in RELATIONS if size != SMALL["relation_dim"]]
ORDERS = (("left_right_unseen_order", "swap"), ("above_under_unseen_order", "swap"))
ATTRIBUTES = (("seen_pairs", "swap"), ("unseen_pairs", "swap"), ("unseen_pairs", "replace texture"))


def sizes(dim: int, relation_dim: int) -> tuple[str, str]:
    """The name and the line of a row with other sizes than those for small towers."""
    its = {"dim": ("objects", dim), "relation_dim": ("relations", relation_dim)}
    others = {name: (what, size) for name, (what, size) in its.items() if size != SMALL[name]}
    name = ", ".join(f"{what} in {size}" for what, size in others.values())
    return name, " ".join(f"{name}={size}" for name, (_, size) in others.items())


ABLATIONS = Ablations(
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
