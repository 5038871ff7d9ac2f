"""Glossy orange, like toy plastic."""

from menagerie.envs.shapes.texture import glossy

TEXTURE = glossy(0.85, 0.20, 0.008)
