"""Turns scenes into captions, scene graphs, splits and HDF5 files. Independent of models."""
