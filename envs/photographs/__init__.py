"""Photographs in worlds: cut-outs that stand where animals do, and several pictures to a background."""
