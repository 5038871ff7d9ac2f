"""Even colours: glossy like toy plastic, white like plaster, turquoise like glazed clay."""

from menagerie.envs.shapes.texture import even_texture

TEXTURE_BLUE = even_texture(0.015, 0.07, 0.60)
TEXTURE_ORANGE = even_texture(0.85, 0.20, 0.008)
TEXTURE_PINK = even_texture(0.85, 0.22, 0.42)
TEXTURE_PURPLE = even_texture(0.20, 0.02, 0.42)
TEXTURE_RED = even_texture(0.62, 0.018, 0.018)
TEXTURE_TURQUOISE = even_texture(0.01, 0.42, 0.40, specular=0.3, gloss=50.0)
TEXTURE_WHITE = even_texture(0.66, 0.655, 0.64, grain=0.03, specular=0.12, gloss=30.0)
TEXTURE_YELLOW = even_texture(0.80, 0.58, 0.015)
