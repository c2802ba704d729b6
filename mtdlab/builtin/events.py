"""Events of the built-in synthetic data set: who does what to whom, where, when and how.

The gold similarity of two events is computed here, from the concepts alone; how `render` words
an event cannot change it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from random import Random

from mtdlab.builtin.concepts import Concept, actions, concepts_under, details, nearness
from mtdlab.builtin.scenes import scenes

GOLD_MAX = 5.0
# Chance that a role is filled as usual.
_USUAL = 0.75


@dataclass(frozen=True)
class Event:
    """What happened. `patient` is None for actions without one; the rest may be None too.

    Two events are the same meaning exactly when they are equal.
    """

    action: Concept
    agent: Concept
    patient: Concept | None = None
    place: Concept | None = None
    time: Concept | None = None
    manner: Concept | None = None


# How much each part of an event counts in the similarity of two events.
WEIGHTS = {
    "action": 0.32,
    "agent": 0.24,
    "patient": 0.28,
    "place": 0.12,
    "time": 0.06,
    "manner": 0.06,
}
# A part that one event leaves unsaid contradicts nothing, so it costs less than a different one.
_UNSAID = 0.5


def _draw(rng: Random, fillers: tuple[tuple[Concept, ...], tuple[Concept, ...]]) -> Concept:
    usual, rare = fillers
    return rng.choice(usual if rng.random() < _USUAL else rare)


def draw_event(rng: Random, action: Concept | None = None) -> Event:
    """A plausible event, of `action` if given, else of any action with equal chance."""
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
    """Gold similarity of two events in 0..5, symmetric; 5 exactly for the same event.

    The weighted share of the parts that agree, near concepts counting in part
    (`concepts.nearness`). Parts that neither event mentions do not count.
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
            total += weight * _UNSAID
    return GOLD_MAX * agreed / total
