"""Glossy red, like toy plastic."""

from menagerie.envs.shapes.texture import glossy

TEXTURE = glossy(0.62, 0.018, 0.018)
