"""Glossy yellow, like toy plastic."""

from menagerie.envs.shapes.texture import glossy

TEXTURE = glossy(0.80, 0.58, 0.015)
