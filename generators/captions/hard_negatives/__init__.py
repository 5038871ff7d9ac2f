"""Hard negatives: captions that are false of an image and differ little from its true one.

- `swaps`: the hard negative of a scene, which split files record: its caption with two textures or two places
  exchanged, or with another number. The scene of which it is true is the counterfactual; `swap` tests and four-way
  items use it.
- `tasks`: the false captions of tests, for each task: swaps, replacements, additions, negations.

The negatives of training images are `generators.storage.false_captions`.
"""
