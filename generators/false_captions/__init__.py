"""False captions of photographs: published, made from true captions, or made while loading."""
