"""Words by which captions are changed: values that exclude each other, and words that are left alone."""


def each_word(*lines: str) -> frozenset[str]:
    """The words of some lines."""
    return frozenset(word for line in lines for word in line.split())


# Words of one value by property; two values of a property exclude each other, and a higher number includes lower ones.
PROPERTIES = {
    "colour": "red,maroon orange yellow,gold green blue purple pink brown,tan,beige black white gray,grey,silver",
    "size": "large,big,huge,giant small,tiny",
    "length": "long,tall short",
    "age": "young,new old,older,elderly,vintage",
    "material": "wooden,wood metal,steel glass plastic brick stone,concrete,cement paper leather",
    "number": "two three four five six seven",
}
VALUES = {
    word: (name, k)
    for name, groups in PROPERTIES.items()
    for k, group in enumerate(groups.split())
    for word in group.split(",")
}
SHADES = each_word("light dark bright pale deep neon fluorescent baby navy")  # before a value they are part of it
PART_OF_VALUE = each_word("drawn fashioned")  # after a value: "white horse drawn carriage", "old fashioned car"
NO_ATTRIBUTES = each_word("several many other different various multiple few same own more such hot remote double half")
NO_THINGS = each_word(
    "top side back front middle background foreground day night air view way photo picture image game lot lots number",
    "variety kind type types edge line close end center centre distance time shape style set one others display",
    "overview rows row group groups bunch couple",
)
ARTICLES = each_word("a an the some this that these those another each")
OWNERS = each_word("his her its their my your our")
SEXED = each_word("he she his her him himself herself")
SEXES = (("man", "woman"), ("men", "women"), ("boy", "girl"), ("boys", "girls"), ("gentleman", "lady"))
OTHER_SEX = {one: other for both in SEXES for one, other in (both[::-1], both)}
PERSONS = each_word("person people guy guys child children kid kids baby player players adult adults couple rider")
PERSONS |= {*OTHER_SEX}
SYMMETRIC = each_word("to near beside by with and alongside against between among around touching facing")  # at the end
FIXED = each_word("of for as like during including at")  # with exchanged ends these say nothing
# Without "up" and "down": who walks down a road walks up it too.
OPPOSITES = {
    "on top of": "under", "in front of": "behind", "behind": "in front of", "above": "below", "below": "above",
    "under": "on top of", "inside": "outside", "outside": "inside", "over": "under", "on": "under",
}  # fmt: skip
