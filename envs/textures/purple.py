"""Glossy purple, like toy plastic."""

from menagerie.envs.shapes.texture import glossy

TEXTURE = glossy(0.20, 0.02, 0.42)
