"""A false caption of a photograph, wherever it comes from."""

from typing import NamedTuple

VERSION = 1  # of the rules that make false captions: raise it when they make others
PART = "part: "  # begins `how` where the caption is a part of one


class FalseCaption(NamedTuple):
    """A caption that is false of an image, made from one of the image's true captions."""

    image: str
    """Name of the image, as its source gives it (`Photographs.names_of_images`)."""
    caption: str
    """The true caption, or a part of it (`PART`)."""
    kind: str
    """What losses ask for (`storage.false_captions.TEXT_NEGATIVES`): "swap", "replace" or "shuffle"."""
    how: str
    """The way it was made, such as "attribute, listed property"; reports count by it."""
    text: str
    """The false caption."""
