"""Hard negatives: captions that are false of an image and differ little from its true one.

- `swaps`: the hard negative of a scene, which split files record: its caption with two textures or two places
  exchanged, or with another number. The scene of which it is true is the partner; `swap` tests and quads use it.
- `foils`, `crowd_foils`: the false captions of tests, for each task: swaps, replacements, additions, negations.
- `false_captions`: the negatives of training images. Kind "swap" is the recorded hard negative; "replace" and "shuffle"
  are drawn anew in each step. None has a composition kept for tests, but some are true captions of test images.
"""
