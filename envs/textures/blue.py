"""Glossy blue, like toy plastic."""

from menagerie.envs.shapes.texture import glossy

TEXTURE = glossy(0.015, 0.07, 0.60)
