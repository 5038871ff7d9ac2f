"""Recipes of scorers that read CLIP's towers out in another way; free of torch."""

# SPARO's paper trains all of its models so, baselines among them (table 0.C.3); the rest is ours (docs/training.md):
# AdamW's epsilon is 1e-8, not 1e-6, gradients are clipped, and the inverse temperature may fall below 1.
SCRATCH = {"learning_rate": 5e-4, "weight_decay": 0.5, "warmup": 3600, "betas": (0.9, 0.98)}
# No paper puts these read-outs on pretrained towers. Towers as CLIP is fine-tuned (models/scorers/clip/spec.py), the
# fresh read-out as OC-CLIP's fresh module.
PRETRAINED = {
    "learning_rate": 2e-4,
    "vision_learning_rate": 4e-6,
    "text_learning_rate": 4e-6,
    "weight_decay": 0.2,
    "warmup": 50,
    "betas": (0.9, 0.95),
}
