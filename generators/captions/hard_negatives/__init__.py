"""Hard negatives: captions that are false of an image and differ little from its true one.

- `swaps`: the hard negative of a scene, which split files record: two textures, two places or the number exchanged.
  The scene that it describes is the scene's partner. Binding tests and quads compare it with the caption.
- `foils`: the false captions of tests, made for each task of a test subset: swaps, replacements, additions, negations.
- `false_captions`: the false captions of training images, drawn anew in each epoch as negatives of a loss; they reveal
  nothing that a split keeps for its tests.
"""
