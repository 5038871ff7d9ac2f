"""Worlds of photographs from Debian's package tuxpaint-stamps-default, which the user installs."""
