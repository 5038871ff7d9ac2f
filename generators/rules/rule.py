"""Hold-out rules: one line of text that is true or false of a scene.

A rule compares fields of a scene and joins the comparisons by `&` (or `and`), `|` (`or`), `!` (`not`)
and parentheses; `not` binds closest, then `and`, then `or`:

    texture=red & animal=cat                        a red cat, beside anything
    (texture=red) & (animal=cat)                    something red, and a cat of any texture
    pair={cat, lion}                                a cat and a lion, and nothing else
    animal=felines, pair={felines, bear}            the same of any animal of a group
    relation=above & second=orca                    something above an orca
    background=city                                 any scene in the city
    count=2 & texture[0]=texture[1]                 two things of one texture
    not (animal=cat or background={city, desert})   no cat, and in neither of these

Fields
    animal, texture, slot, size   of a thing; with an index, as in animal[0], of that thing in the scene's
                                  order, which is that of the slots' names ("left" before "right"); size in
                                  worlds that have sizes
    background, count, view       of the scene
    relation                      left, right, above, under, or none: `above` and `under` are true of the same
                                  scenes, but turn round which thing is `first`
    first, second                 the animal that `relation=` in the same conjunction puts first (with
                                  `relation=under` the lower one), else that in the relation's first slot
    pair                          the two animals of a scene of two things, in any order

Values are names of the world, quoted where they contain a keyword; groups of animals, which mean any of
their animals; a set in braces, which means any of its values; whole numbers for count and view, and only
count knows <, <=, > and >=; or an indexed field, as in texture=texture[1].

Which thing: in one chain of &, all comparisons of animal, texture, slot and size without an index refer to
one thing. Parentheses, another side of `or`, and `not` start a chain of their own, also for `first`. Hence
`not animal=cat` is true of scenes without a cat, `animal!=cat` of scenes with another animal than a cat. A
comparison with something that a scene lacks (an index beyond its things, the `first` of a single thing, the
`pair` of three) is false, with != too.
"""

from dataclasses import dataclass, field

from menagerie.envs.scene import Scene
from menagerie.envs.world import Groups, World
from menagerie.generators.rules.parser import Parser
from menagerie.generators.rules.tree import Expression


@dataclass(frozen=True)
class Rule:
    """A parsed rule, with its text."""

    text: str
    expression: Expression = field(repr=False)
    groups: Groups = ()
    """Groups that the rule names, with their animals."""

    def matches(self, scene: Scene) -> bool:
        """Whether the rule is true of `scene`."""
        return self.expression.matches(scene)


def parse_rule(text: str, world: World) -> Rule:
    """Parse a rule; raises, with the character's position, for a syntax error or a name that `world` lacks."""
    parser = Parser(text, world)
    expression = parser.rule()
    return Rule(text, expression, tuple(group for group in world.groups if group[0] in parser.used))
