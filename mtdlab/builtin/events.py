"""Events of the built-in synthetic data set: action, agent, patient, place, time, manner.

The gold similarity of two events is computed here from their concepts; their wording (`render`)
does not affect it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from random import Random

from mtdlab.builtin.concepts import Concept, actions, concepts_under, details, nearness
from mtdlab.builtin.scenes import scenes

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


def _draw(rng: Random, fillers: tuple[tuple[Concept, ...], tuple[Concept, ...]]) -> Concept:
    usual, rare = fillers
    return rng.choice(usual if rng.random() < _USUAL else rare)


def draw_event(rng: Random, action: Concept | None = None) -> Event:
    """A plausible event, with `action` if given, else with a uniformly drawn action."""
    action = action or rng.choice(list(actions().values()))
    scene = scenes()[action.name]
    event = Event(action, _draw(rng, scene.agents))
    if scene.patients[0]:
        patient = _draw(rng, scene.patients)
        while patient == event.agent:
            patient = _draw(rng, scene.patients)
        event = replace(event, patient=patient)
    if rng.random() < 0.5:
        event = replace(event, place=_draw(rng, scene.places))
    if rng.random() < 0.15:
        event = replace(event, time=rng.choice(concepts_under(details(), "time")))
    if rng.random() < 0.15:
        event = replace(event, manner=rng.choice(concepts_under(details(), "manner")))
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
