"""Generation of sentences from events: templates, tenses, voices and synonyms.

A `Wording` fixes all choices of form, so that two sentences can differ in form only (one event, two
wordings) or in meaning only (two events, one wording).
"""

import re
from dataclasses import dataclass, replace
from random import Random

from tests.builtin.generators.concepts import Concept
from tests.builtin.generators.events import Event

# {a} agent, {p} patient, {base} {past} {pp} {ing} forms of the verb. The active templates are also
# used without a patient.
_ACTIVE = (
    "{a} {past} {p}",
    "{a} was {ing} {p}",
    "{a} is {ing} {p}",
    "{a} has {pp} {p}",
    "it was {a} that {past} {p}",
    "{a} did {base} {p}",
)
_PASSIVE = (
    "{p} was {pp} by {a}",
    "{p} is being {pp} by {a}",
    "{p} has been {pp} by {a}",
    "what {a} {past} was {p}",
)
# Frames add words without content, which an encoder has to learn to ignore.
_FRAMES = (
    "{}",
    "i heard that {}",
    "they told us that {}",
    "it is quite true that {}",
    "everyone could see that {}",
    "the story goes that {}",
    "{}, as far as we know",
    "{}, or so they say",
)
_FRAME_FREQUENCY = (7, 2, 2, 2, 2, 2, 2, 2)
# Relative frequency of each template, in order.
_FREQUENCY = (60, 16, 8, 6, 5, 5)
_IRREGULAR = {
    "bite": "bit bitten biting",
    "break": "broke broken breaking",
    "build": "built built building",
    "buy": "bought bought buying",
    "catch": "caught caught catching",
    "cut": "cut cut cutting",
    "draw": "drew drawn drawing",
    "drink": "drank drunk drinking",
    "drive": "drove driven driving",
    "eat": "ate eaten eating",
    "feed": "fed fed feeding",
    "find": "found found finding",
    "give": "gave given giving",
    "hide": "hid hidden hiding",
    "leap": "leapt leapt leaping",
    "lose": "lost lost losing",
    "put": "put put putting",
    "read": "read read reading",
    "ride": "rode ridden riding",
    "run": "ran run running",
    "sell": "sold sold selling",
    "sing": "sang sung singing",
    "sleep": "slept slept sleeping",
    "steal": "stole stolen stealing",
    "swim": "swam swum swimming",
    "teach": "taught taught teaching",
    "throw": "threw thrown throwing",
    "weep": "wept wept weeping",
    "write": "wrote written writing",
}
_DOUBLING = {"chop", "drag", "grab", "jog", "lug", "nap", "scrub", "sip"}


@dataclass(frozen=True)
class Verb:
    """An action's forms: base, past, past participle, -ing form."""

    base: str
    past: str
    pp: str
    ing: str


def conjugate(expression: str) -> Verb:
    """The forms of a verb expression; its first word is inflected ("cut up", "cutting up")."""
    verb, _, rest = expression.partition(" ")
    if verb in _IRREGULAR:
        past, pp, ing = _IRREGULAR[verb].split()
    else:
        stem = verb + verb[-1] if verb in _DOUBLING else verb
        if verb.endswith("e"):
            past, ing = verb + "d", verb[:-1] + "ing"
        elif verb.endswith("y") and verb[-2] not in "aeo":
            past, ing = verb[:-1] + "ied", verb + "ing"
        else:
            past, ing = stem + "ed", stem + "ing"
        pp = past
    return Verb(*(f"{form} {rest}".strip() for form in (verb, past, pp, ing)))


@dataclass(frozen=True)
class Wording:
    """All choices of form. Numbers are indices of a template, frame or synonym, modulo their count.

    `words` are the choices for action, agent, patient, place, time and manner.
    """

    passive: bool
    template: int
    definite: tuple[bool, bool]
    fronted: bool
    frame: int
    words: tuple[int, ...]


def draw_wording(rng: Random) -> Wording:
    """A random wording, passive with probability 0.3."""
    return Wording(
        passive=rng.random() < 0.3,
        template=rng.choices(range(len(_FREQUENCY)), _FREQUENCY)[0],
        definite=(rng.random() < 0.85, rng.random() < 0.85),
        fronted=rng.random() < 0.15,
        frame=rng.choices(range(len(_FRAMES)), _FRAME_FREQUENCY)[0],
        words=tuple(rng.randrange(12) for _ in range(6)),
    )


def reword(rng: Random, wording: Wording, *, words: float, frame: float, form: float) -> Wording:
    """Another wording; `words`, `frame` and `form` are the probabilities that a part is replaced.

    A concept with a single word keeps it.
    """
    fresh = draw_wording(rng)
    other = fresh if rng.random() < form else wording
    # shifts of 1 and 5 change the index for two and for three synonyms
    numbers = (n + rng.choice((1, 5)) if rng.random() < words else n for n in wording.words)
    kept = wording.frame if rng.random() >= frame else fresh.frame
    return replace(other, frame=kept, words=tuple(numbers))


def _word(concept: Concept, number: int) -> str:
    return concept.words[number % len(concept.words)]


def _noun(concept: Concept, number: int, definite: bool) -> str:
    word = _word(concept, number)
    bare = word.lstrip("~")
    if definite:
        return f"the {bare}"
    if word != bare:
        return f"some {bare}"
    return f"{'an' if bare[0] in 'aeiou' else 'a'} {bare}"


def function_words() -> set[str]:
    """The words of templates, frames and articles, and punctuation."""
    text = " ".join((*_ACTIVE, *_PASSIVE, *_FRAMES, "the a an some . ,"))
    return set(re.findall(r"[a-z]+|[.,]", re.sub(r"{.*?}", " ", text)))


def render(event: Event, wording: Wording) -> str:
    """The event as an English sentence, capitalised, with a full stop."""
    action, agent, patient, place, time, manner = wording.words
    a = _noun(event.agent, agent, wording.definite[0])
    p = _noun(event.patient, patient, wording.definite[1]) if event.patient else ""
    templates = _PASSIVE if wording.passive and event.patient else _ACTIVE
    template = templates[wording.template % len(templates)]
    clause = template.format(a=a, p=p, **vars(conjugate(_word(event.action, action)))).strip()
    said = ((event.manner, manner), (event.place, place), (event.time, time))
    adjuncts = [_word(part, number) for part, number in said if part is not None]
    if wording.fronted and adjuncts:
        clause = f"{adjuncts.pop()}, {clause}"
    sentence = _FRAMES[wording.frame].format(" ".join([clause, *adjuncts]))
    return sentence[0].upper() + sentence[1:] + "."
