"""Any split, any of its fields: which models learn the tests of a recipe?

The study behind the two grids, for recipes of every kind and of your own: a training run per model, place and
seed, where a place is one value of each field that --axes varies.

    python studies/split_study.py --preset smoke      # tiny world, two rules, a minute on 2 cores
    python studies/split_study.py                     # textures that depend on their animals
    python studies/split_study.py --preset counting   # one to four copies of an animal
    python studies/split_study.py --recipe mine.toml --models clip oc-clip mine.py:Late
    python studies/split_study.py --recipe mine.toml --axes test_pairs=0.1,0.3 views=2,8
    python studies/split_study.py --split split.h5   # an existing split file
"""

from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar

import tyro

from menagerie.envs.core.errors import UserError, choose
from menagerie.envs.core.options import FIRST, WHAT
from menagerie.generators.splits.binding import BindingRecipe
from menagerie.generators.splits.counting import CountingRecipe
from menagerie.generators.splits.dependence import DependenceRecipe
from menagerie.generators.splits.recipe import SplitRecipe
from menagerie.studies.frame.command import main
from menagerie.studies.frame.grids import PAPER, SMOKE, Grid


@dataclass(frozen=True)
class Config(Grid):
    """A grid over a recipe's fields."""

    plain_recipe: ClassVar[SplitRecipe] = DependenceRecipe()

    pairs: tuple[float, ...] = (0.5,)
    """Fractions of the trainable pairs, or of counted animals."""
    hard_negatives: tuple[float, ...] = (0.0,)
    """Fractions of these pairs that have hard negatives too."""
    axes_given: Annotated[tuple[str, ...], tyro.conf.arg(name="axes"), WHAT, FIRST] = ()
    """Fields of the recipe with their values: information=0.2,0.45 views=2,8. A list as left/right+above/under."""

    @property
    def title(self) -> str:
        return f"{self._kind.title}: which models distinguish true captions from false ones?"

    @property
    def axes(self) -> dict[str, tuple[Any, ...]]:
        given = [parse_axis(type(self.recipe_given), text) for text in self.axes_given]
        names = [name for name, _ in given]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise UserError(f"--axes names {twice} twice; write all its values as {twice}=A,B")
        return super().axes | dict(given)

    def with_recipe(self, recipe: SplitRecipe) -> "Config":
        return replace(super().with_recipe(recipe), axes_given=())


def parse_axis(kind: type[SplitRecipe], text: str) -> tuple[str, tuple[Any, ...]]:
    """Parse an axis such as "views=2,8" into its field and its values. Raise if recipes of the kind have no such field,
    or if a value has another type."""
    name, _, values = text.partition("=")
    defaults = {item.name: item.default for item in fields(kind)}
    if name in ("seed", "world"):
        raise UserError(f"--axes {text}: {name} is no axis; use --{name}{'s' * (name == 'seed')}")
    default = defaults[choose(f"field of {kind.kind} recipes", name, defaults)]
    try:
        return name, tuple(convert_value(default, value) for value in values.split(","))
    except ValueError as error:
        raise UserError(f"--axes {text}: {name} has values such as {default!r}; write {name}=A,B ({error})") from error


def convert_value(default: Any, text: str) -> Any:
    if isinstance(default, tuple):
        return tuple(filter(None, text.split("+")))
    if isinstance(default, bool):
        return {"yes": True, "no": False}[choose("value", text, ("yes", "no"))]
    return type(default)(text)


TWO_RULES = BindingRecipe(world="tiny", hold_out=("texture=red & animal=rabbit", "texture[0]=grass"))
PRESETS: dict[str, Config] = {
    "smoke": Config(**SMOKE, pairs=(0.5,), base=TWO_RULES, hold_out=TWO_RULES.hold_out, views=2),
    "laptop": Config(tuned="laptop", views=4, axes_given=("information=0.2,0.4,0.6",)),
    "counting": Config(tuned="laptop", base=CountingRecipe(), views=CountingRecipe.views, pairs=(0.25, 0.75)),
    "paper": Config(
        **PAPER | {"pairs": (0.5,), "hard_negatives": (0.0,)}, views=4, axes_given=("information=0.2,0.3,0.4,0.5,0.6",)
    ),
}


if __name__ == "__main__":
    main(PRESETS)
