"""Glossy pink, like toy plastic."""

from menagerie.envs.shapes.texture import glossy

TEXTURE = glossy(0.85, 0.22, 0.42)
