"""From scenes to captions, scene graphs, splits and HDF5 files. Independent of models."""
