"""What the ablation study varies of SPARO: table 6 of its paper, between attentional pooling and SPARO."""

from menagerie.models.spec import Ablations, Claim

# Subset and task of what the claims are tested on. The paper's are zero-shot classes of ImageNet.
ATTRIBUTES = (("seen_pairs", "swap"), ("unseen_pairs", "swap"), ("unseen_pairs", "replace texture"))


def line(attention: str, norm: bool, projection: bool) -> str:
    """A row of table 6. The paper keeps the last blocks in these, not in SPARO; here each row changes one thing."""
    return f"attention={attention} slot_norm={norm} slot_projection={projection}"


ABLATIONS = Ablations(
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
