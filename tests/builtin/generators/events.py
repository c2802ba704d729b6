"""Events of the built-in synthetic data set: action, agent, patient, place, time, manner.

The gold similarity of two events is computed here from their concepts; their wording (`render`)
does not affect it.
"""

from dataclasses import dataclass, fields, replace
from random import Random

from tests.builtin.generators.concepts import (
    ACTIONS,
    DETAILS,
    NOUNS,
    Concept,
    concepts_under,
    nearness,
)

# "action: agents | patients | places", continued in indented lines; patients may be empty. Kinds
# before `>` are usual, those after it rare.
_SCENES = """
cook: person/kitchen > person/adult | food/meal food/vegetable | place/eating > place/home
bake: baker > person/adult person/kitchen | food/baked | place/eating > place/home
fry: person/kitchen > person/adult | food/vegetable steak omelette | place/eating > place/green
boil: person/kitchen > person/adult | food/vegetable pasta soup drink/hot | place/eating
slice: person/kitchen > person/adult person/child | food/vegetable food/fruit food/baked |
    place/eating
peel: person/kitchen > person/adult person/child | food/vegetable food/fruit | place/eating >
    place/green
eat: person/child person/adult > person animal | food/fruit food/baked food/meal > food/vegetable
    | place/eating > place/green place/home
taste: person/kitchen > person/adult person/child | food/meal food/baked drink | place/eating >
    place/town
drink: person/adult > person | drink | place/eating place/home > place/wild place/work
repair: person/craft > person/adult person/farm | thing/vehicle thing/building > thing/furniture
    thing/tool thing/instrument | place/work > place/town
clean: person/adult person/kitchen > person/child | thing/furniture thing/clothing thing/vehicle >
    thing/building animal/pet | place/home place/eating > place/work
build: person/craft > person/farm person/adult | thing/building thing/furniture boat | place/work
    place/town > place/green
assemble: person/craft > person/adult person/child | thing/furniture thing/vehicle thing/toy |
    place/work place/home
break: person/child thief > person animal/pet | thing/furniture thing/toy thing/instrument >
    thing/tool thing/vehicle | place/home > place/town
destroy: person/law > animal/wild person | thing/building thing/vehicle thing/picture >
    thing/reading | place/town place/work
burn: person/law > person/adult | thing/reading thing/building thing/clothing > thing/picture |
    place/wild place/town
buy: person/adult > person | thing/clothing thing/vehicle food/fruit thing/valuable > thing drink
    plant | place/town
steal: thief > person/child animal/wild | thing/valuable thing/vehicle thing/picture > thing
    food/baked | place/town place/culture > place/home
find: person/child policeman > person animal/pet | thing/valuable thing/toy > thing animal/pet |
    place/green place/wild > place/home
sell: person/farm person/craft > person/adult | food/vegetable food/fruit thing/furniture
    thing/vehicle > thing animal/cattle | place/town
lose: person/adult person/child > person | thing/valuable thing/clothing thing/toy > thing/reading
    | place/town place/wild > place/green
give away: person/adult > person | thing/clothing thing/reading thing/toy > thing/valuable food |
    place/town place/care
carry: person/craft person/law > person | thing/tool thing/furniture > thing/instrument animal/pet
    food | place/work place/town
drag: person/farm animal/pet > person | thing/furniture thing/tool > tree boat bush | place/work
    place/green > place/home
lift: person/craft person/law > person | thing/furniture thing/tool > person/child animal/pet |
    place/work > place/home
throw: person/child > person | thing/toy > thing/tool food/fruit thing/clothing | place/green >
    place/wild
kick: person/child > person animal/cattle | thing/toy > thing/furniture thing/building |
    place/green place/town
catch: person/child animal/pet > person | thing/toy > animal/bird thing/valuable | place/green
    place/wild
drive: person/adult person/law mechanic > person | car truck > motorcycle boat | place/town
ride: person/child person/adult > person | bicycle motorcycle horse > boat | place/town
    place/green > place/wild
run: person/law person/child animal/wild > person animal | | place/green place/wild > place/town
walk: person/adult animal/pet > person animal | | place/green place/wild > place/town
swim: person/child duck > person animal | | place/wild
jump: person/child animal/pet > person animal | | place/green > place/wild place/home
chase: animal/pet animal/wild policeman > person/child | animal/bird animal/pet thief animal/wild
    > person/child animal/cattle | place/green place/wild > place/town
follow: policeman animal/pet > person animal | person/adult thief animal/wild > person animal |
    place/town place/wild
hunt: animal/wild > person/farm eagle soldier | animal/wild animal/bird > rabbit sheep |
    place/wild
feed: person/farm person/child > person/adult | animal/cattle animal/bird animal/pet > baby |
    place/work place/green
comfort: person/medical person/adult > person/school | person/child > person/adult animal/pet |
    place/care place/home
heal: person/medical > person/farm | person/child person/adult soldier > animal/pet animal/cattle
    person | place/care
help: person/medical person/school > person | person/adult person/child > person animal |
    place/care place/town
attack: animal/wild soldier > thief animal | animal/cattle animal/bird > person animal |
    place/wild > place/town
bite: animal/pet animal/wild > animal | person/child thief > person animal/pet | place/green >
    place/town
frighten: animal/wild thief > person animal | person/child animal/bird > person animal |
    place/wild place/green
watch: person/adult person/child > person animal/pet | animal/bird animal/wild person/art > person
    animal | place/culture place/wild > place/green
look at: person/adult person/school > person | thing/picture thing/clothing > person thing plant |
    place/culture place/town
hide: person/child thief animal/pet > person | thing/valuable thing/picture thing/toy >
    thing/reading | place/home place/green
read: person/school person/adult > person | thing/reading | place/culture place/home > place/green
write: person/school person/adult > person | book letter poem | place/culture place/home
study: person/school > person/medical person/art | thing/reading > thing/picture animal/bird |
    place/culture place/care
teach: person/school > person/art | student person/child > musician singer dog | place/care >
    place/culture
scold: person/school person/adult > person | person/child student > animal/pet person | place/care
    place/home
paint: artist > person/art person/child person/school | thing/picture thing/building > plant
    animal person/adult | place/culture place/green
draw: artist person/child > person/school | thing/picture plant > animal thing/building person |
    place/care place/culture
photograph: person/adult artist > person | plant animal/wild animal/bird > person thing/building |
    place/wild place/green
play: musician > person/art person/child | thing/instrument | place/culture > place/home
    place/town
plant: person/farm > person/adult | plant food/vegetable | place/green > place/work
water: person/farm > person/adult person/child | plant food/vegetable | place/green
harvest: person/farm > person/adult person/child | food/vegetable food/fruit | place/work
    place/green
sleep: animal/pet baby > person animal | | place/home > place/green place/work
rest: person/farm animal/cattle > person animal | | place/green > place/home place/wild
laugh: person/child person/school > person | | place/care place/culture > place/eating
cry: person/child > person | | place/care place/home
sing: person/art > person animal/bird | | place/culture > place/green place/home
shout: policeman person/child > person | | place/town > place/care
"""


Fillers = tuple[tuple[Concept, ...], tuple[Concept, ...]]
"""The usual and the rare concepts for a role."""


def _fillers(concepts: dict[str, Concept], text: str) -> Fillers:
    usual, _, rare = text.partition(">")
    first, second = (
        tuple(c for kind in part.split() for c in concepts_under(concepts, kind))
        for part in (usual, rare)
    )
    return first, second or first


def _scene(roles: str) -> dict[str, Fillers]:
    who, what, where = roles.split("|")
    people = {"agent": _fillers(NOUNS, who), "patient": _fillers(NOUNS, what)}
    return people | {"place": _fillers(DETAILS, where)}


_LINES = _SCENES.replace("\n    ", " ").strip().splitlines()
SCENES = {name: _scene(roles) for name, _, roles in (line.partition(": ") for line in _LINES)}
"""The concepts that can fill each role, by the action's name."""

GOLD_MAX = 5.0
# Probability that a role is filled by one of its usual concepts.
_USUAL = 0.75


@dataclass(frozen=True)
class Event:
    """An event. `patient` is None for actions without one; place, time and manner are optional.

    Two events have the same meaning if and only if they are equal.
    """

    action: Concept
    agent: Concept
    patient: Concept | None = None
    place: Concept | None = None
    time: Concept | None = None
    manner: Concept | None = None


# Weight of each part of an event in the similarity of two events.
WEIGHTS = {
    "action": 0.32,
    "agent": 0.24,
    "patient": 0.28,
    "place": 0.12,
    "time": 0.06,
    "manner": 0.06,
}
# A part that only one of the events has is no contradiction and costs less than a different one.
_MISSING_WEIGHT = 0.5


def _draw(rng: Random, fillers: Fillers) -> Concept:
    usual, rare = fillers
    return rng.choice(usual if rng.random() < _USUAL else rare)


def draw_event(rng: Random, action: Concept | None = None) -> Event:
    """A plausible event, with `action` if given, else with a uniformly drawn action."""
    action = action or rng.choice(list(ACTIONS.values()))
    scene = SCENES[action.name]
    event = Event(action, _draw(rng, scene["agent"]))
    if scene["patient"][0]:
        patient = _draw(rng, scene["patient"])
        while patient == event.agent:
            patient = _draw(rng, scene["patient"])
        event = replace(event, patient=patient)
    if rng.random() < 0.5:
        event = replace(event, place=_draw(rng, scene["place"]))
    if rng.random() < 0.15:
        event = replace(event, time=rng.choice(concepts_under(DETAILS, "time")))
    if rng.random() < 0.15:
        event = replace(event, manner=rng.choice(concepts_under(DETAILS, "manner")))
    return event


def similarity(left: Event, right: Event) -> float:
    """Gold similarity of two events, from 0 to 5, symmetric; 5 if and only if they are equal.

    Five times the weighted mean similarity (`concepts.nearness`) of their parts; parts that neither
    event has are left out.
    """
    total = agreed = 0.0
    for field in fields(Event):
        one: Concept | None = getattr(left, field.name)
        other: Concept | None = getattr(right, field.name)
        weight = WEIGHTS[field.name]
        if one is not None and other is not None:
            total += weight
            agreed += weight * nearness(one, other)
        elif one is not None or other is not None:
            total += weight * _MISSING_WEIGHT
    return GOLD_MAX * agreed / total
