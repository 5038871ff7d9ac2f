"""Sizes of the small towers; free of torch."""

# Small towers in open_clip's own configuration format; image size, vocabulary and context
# are filled in. They read images through a small convolutional stem, which trains far faster
# than one linear patch projection (Xiao et al. 2021, "Early convolutions help transformers
# see better"). Add one by adding an entry.
SMALL_TOWERS: dict[str, dict] = {
    "nano": {
        "embed_dim": 32,
        "vision_cfg": {"width": 32, "layers": 1, "head_width": 16, "patch_size": 8},
        "text_cfg": {"width": 32, "layers": 1, "heads": 2},
    },
    "micro": {
        "embed_dim": 64,
        "vision_cfg": {"width": 64, "layers": 1, "head_width": 32, "patch_size": 8},
        "text_cfg": {"width": 64, "layers": 1, "heads": 2},
    },
    "mini": {
        "embed_dim": 64,
        "vision_cfg": {"width": 64, "layers": 2, "head_width": 32, "patch_size": 8},
        "text_cfg": {"width": 64, "layers": 2, "heads": 2},
    },
    "broad": {
        "embed_dim": 96,
        "vision_cfg": {"width": 96, "layers": 1, "head_width": 32, "patch_size": 8},
        "text_cfg": {"width": 96, "layers": 1, "heads": 3},
    },
    "small": {
        "embed_dim": 128,
        "vision_cfg": {"width": 128, "layers": 4, "head_width": 32, "patch_size": 8},
        "text_cfg": {"width": 128, "layers": 3, "heads": 4},
    },
}
