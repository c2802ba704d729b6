"""The vocabulary of the built-in synthetic data set, and the taxonomy that defines similarity.

A concept is one meaning with several synonyms ("doctor", "physician"). Concepts are the leaves of a
tree of kinds (an onion is a vegetable, a vegetable is food), and their similarity (`nearness`)
depends on the tree alone, not on spelling. The tables are plain text: one line per kind, `;`
between concepts, `,` between synonyms.
"""

from dataclasses import dataclass

SAME_KIND = 0.45
SAME_FIELD = 0.2

# "kind path: concepts". A leading ~ marks a word that takes no "a" (bread).
_NOUNS = """
person/medical: doctor, physician; nurse, caregiver; dentist
person/kitchen: chef, cook; waiter, waitress; baker
person/farm: farmer, rancher; gardener, landscaper
person/craft: carpenter, woodworker; mechanic, repairman; builder, construction worker
person/art: artist, painter; musician, instrumentalist; singer, vocalist
person/school: teacher, instructor; student, pupil; professor, lecturer
person/law: policeman, police officer, cop; thief, burglar, robber; soldier, infantryman
person/child: boy, schoolboy; girl, schoolgirl; baby, infant, newborn; kid, child
person/adult: man, guy, gentleman; woman, lady; grandmother, grandma, granny; grandfather, grandpa
animal/pet: dog, hound; cat, feline; rabbit, bunny
animal/cattle: cow, bull; horse, stallion; sheep, lamb; pig, hog
animal/wild: wolf, coyote; bear, grizzly; lion, lioness; deer, fawn
animal/bird: eagle, hawk; duck, duckling; chicken, hen; parrot, cockatoo
food/vegetable: onion; carrot; potato; cabbage, lettuce
food/fruit: apple; banana; orange, tangerine; pear
food/baked: ~bread, bread loaf; cake, cupcake; cookie, biscuit; pie, pastry
food/meal: ~soup, ~stew; ~pasta, ~spaghetti; steak, ~beef; omelette
drink/hot: ~coffee, espresso; ~tea, ~herbal tea; ~cocoa, ~hot chocolate
drink/cold: ~beer, ~ale; ~wine, ~red wine; ~juice, ~lemonade
thing/vehicle: car, automobile; truck, lorry; bicycle, bike; boat, ship; motorcycle, motorbike
thing/instrument: guitar; piano; violin, fiddle; drum; flute
thing/tool: hammer, mallet; saw, chainsaw; shovel, spade; ladder
thing/furniture: table, desk; chair, stool; sofa, couch; bed, mattress; bookcase, bookshelf
thing/building: house, cottage; barn, shed; bridge, footbridge; fence, railing; roof, rooftop
thing/reading: book, novel; newspaper, tabloid; letter; poem, verse; magazine, journal
thing/clothing: coat, jacket; shirt, blouse; hat, cap; shoe, boot; dress, gown
thing/toy: ball, football; doll, teddy bear; frisbee; kite
thing/picture: painting, artwork; portrait; sketch, drawing; photo, photograph
thing/valuable: ring, wedding ring; necklace, pendant; wallet, purse; ~money, ~cash
plant/growing: tree, oak; flower, rose; bush, shrub; ~grass, lawn
"""

# "kind path: concepts"; each word carries its preposition.
_PLACES = """
place/eating: in the kitchen; in the restaurant, in the diner, at the cafe
place/home: in the bedroom; in the living room, in the lounge
place/care: in the hospital, in the clinic; in the school, in the classroom
place/culture: in the theater, on the stage; in the museum, in the gallery; in the library
place/work: in the garage; on the farm, in the barnyard
place/town: in the street, on the road; in the shop, in the store, at the market
place/green: in the park; in the garden, in the backyard
place/wild: in the forest, in the woods; by the river, near the stream; on the beach, at the seaside
"""

_TIMES = """
time/day: in the morning, at dawn; at night, after dark
time/week: on monday; on sunday, at the weekend
time/season: in winter; in summer
"""

_MANNERS = """
manner/pace: quickly, rapidly, in a hurry; slowly
manner/mood: happily, cheerfully; angrily, furiously
manner/noise: quietly, silently, without a sound; loudly, noisily
"""

# "kind path: concepts"; only the first word of an action is inflected.
_ACTIONS = """
food/cooking: cook, prepare; bake; fry; boil
food/cutting: slice, cut up, chop; peel
food/consuming: eat, devour, consume; taste, sample; drink, sip
work/mending: repair, fix; clean, wash, scrub
work/making: build, construct; assemble, put together
work/breaking: break, smash; destroy, demolish, wreck; burn
trade/getting: buy, purchase; steal, snatch; find, discover, locate
trade/giving: sell; lose, misplace; give away, donate
motion/carrying: carry, lug, haul; drag, pull; lift, pick up
motion/throwing: throw, toss; kick; catch, grab
motion/riding: drive, steer; ride
motion/going: run, sprint, jog; walk, stroll; swim; jump, leap
meeting/chasing: chase, pursue; follow, walk behind; hunt, stalk
meeting/caring: feed; comfort, console; heal, cure; help, assist
meeting/harming: attack, assault; bite; frighten, scare
meeting/seeing: watch, observe; look at, stare at; hide, conceal
mind/reading: read; write, compose; study, examine
mind/teaching: teach, instruct; scold, yell at
art/drawing: paint; draw, sketch; photograph, film
art/music: play, perform on; sing
garden/growing: plant; water; harvest
rest/sleeping: sleep, nap, doze; rest, relax
feeling/voice: laugh, giggle; cry, weep; shout, yell
"""


@dataclass(frozen=True)
class Concept:
    """One meaning: its position in the taxonomy and its synonyms.

    Attributes:
        name: the first word, unique within the data set.
        path: kinds from the broadest to the narrowest, then the name of the concept.
        words: the expressions for the concept; a leading `~` marks a word without "a".
    """

    name: str
    path: tuple[str, ...]
    words: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The narrowest kind above the concept, as `broad/narrow`."""
        return "/".join(self.path[:-1])


def _parse(table: str) -> dict[str, Concept]:
    concepts: dict[str, Concept] = {}
    for line in table.strip().splitlines():
        kind, _, entries = line.partition(": ")
        for entry in entries.split(";"):
            words = tuple(word.strip() for word in entry.split(","))
            name = words[0].lstrip("~")
            concepts[name] = Concept(name, (*kind.split("/"), name), words)
    return concepts


NOUNS, ACTIONS = _parse(_NOUNS), _parse(_ACTIONS)
"""The concepts by name: of people, animals, things and plants, and of actions."""
DETAILS = _parse(_PLACES) | _parse(_TIMES) | _parse(_MANNERS)
"""The concepts of places, times and manners by name; their words carry the preposition."""


def concepts_under(concepts: dict[str, Concept], kind: str) -> list[Concept]:
    """The concepts of `kind` ("animal/pet"), or the one named `kind`. Raises KeyError for none."""
    if kind in concepts:
        return [concepts[kind]]
    prefix = tuple(kind.split("/"))
    matching = [c for c in concepts.values() if c.path[: len(prefix)] == prefix]
    if not matching:
        raise KeyError(f"no concept or kind {kind!r}")
    return matching


def nearness(left: Concept, right: Concept) -> float:
    """Similarity of two concepts in the taxonomy, from 0 to 1, symmetric.

    1 for the same concept, `SAME_KIND` for siblings (onion, carrot), `SAME_FIELD` for cousins
    (onion, apple), 0 across fields (onion, hammer).
    """
    shared = 0
    for one, other in zip(left.path, right.path, strict=True):
        if one != other:
            break
        shared += 1
    return (0.0, SAME_FIELD, SAME_KIND, 1.0)[shared]
