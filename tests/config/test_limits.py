"""Study files that are too large are refused in one sentence, at a line, without much work."""

import math
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mtdlab.analysis.measures.trace import d_trace
from mtdlab.config.source import SpecError
from mtdlab.config.source import read as read_source
from mtdlab.methods.registry import make_settings
from mtdlab.settings import limits
from tests.config.conftest import AtMostCalls, Read
from tests.docs.reference import LIMITS, limits_markdown

STUDY = "study: a\n"
CALLS = 5_000_000
"""Of functions: a second or two. The files below need up to half of them."""
MEGABYTES = 200


def numbered(template: str, count: int) -> str:
    return "".join(template.format(i) for i in range(count))


TENTHS = "temperature: {low: 0.1, high: 100, step: 0.01}"
GRID = "search: {ema_decay: {low: 0.00005, high: 0.99985, step: 0.0001}}\n"
TOO_LARGE = {
    "steps with a schedule": (
        "trainer: {steps: 9000000000000000000, ema_decay_end: 0.99}\n",
        r":2:11: trainer\.steps: 9000000000000000000: must be 10000000 or less",
    ),
    "searched steps": (
        "search: {steps: [10, 9000000000000000]}\n",
        r":2:10: search\.steps: 9000000000000000: must be 10000000 or less",
    ),
    "configurations times seeds": (
        GRID + f"seeds: [{numbered('{}, ', 6_000)}6000]\n",
        r":3:1: seeds: 9,999 configurations with 6,001 seeds each are 60,003,999 trials; a study "
        "has at most 100,000",
    ),
    "configurations times added seeds": (
        GRID + "until: {decided: true, max_seeds: 1000}\n",
        r":3:24: until\.max_seeds: 9,999 configurations with 1,000 seeds each are 9,999,000 trials",
    ),
    "drawn configurations times seeds": (
        "sampler: random\ntrials: 100000\nsearch: {ema_decay: [0.5, 0.6]}\nseeds: [0, 1]\n",
        r":5:1: seeds: 100,000 configurations with 2 seeds each are 200,000 trials",
    ),
    "drawn configurations": (
        "sampler: random\ntrials: 1000000\n",
        r":3:1: trials: 1000000: must be 100000 or less",
    ),
    "bytes": ("# " + "x" * 1_000_000, r"study.yaml: more than 50,000 bytes"),
    "queue": (
        "trainer: {queue_size: 9000000000000000000}\n",
        r":2:11: trainer\.queue_size: 9000000000000000000: must be 100000000 or less",
    ),
    "layers": (
        "trainer: {projection_layers: 101}\n",
        r":2:11: trainer\.projection_layers: 101: must be 100 or less",
    ),
    "lists in lists": (
        "search:\n  - " + "- " * 20_000 + "x\n",
        r":3:\d+: not valid YAML: nested too deeply; at most 20 levels",
    ),
    "indented lists": (
        "search:\n" + "".join(" " * i + "- \n" for i in range(1, 300)),
        r":\d+:\d+: not valid YAML: nested too deeply",
    ),
    "keys in keys": ("? " * 20_000 + "\n", r":2:\d+: not valid YAML: nested too deeply"),
    "brackets": ("search: " + "[" * 40_000, r":2:\d+: not valid YAML: nested too deeply"),
    "per stratum": (
        "search: {mtd: {strata: [1000000000000], per_stratum: 1000000000}}\n",
        r"search\.mtd\.per_stratum: 1000000000: must be 1000 or less",
    ),
    "strata": (
        f"search: {{mtd: {{strata: [{numbered('1{:04}, ', 5000)}9], per_stratum: 1000}}}}\n",
        r":2:10: search\.mtd: 5001 strata of 1000 are more than 10000 configurations",
    ),
    "grid of strata": (
        f"search: {{mtd: {{strata: [{numbered('10{:03}.5, ', 150)}9000], per_stratum: 60}}}}\n",
        r":2:10: search\.mtd: gives a grid of \d+ points; it may have 10000",
    ),
    "profiles": (
        "profiles:\n" + numbered("  p{}: {{seeds: [1]}}\n", 1500),
        r":2:1: profiles: 1500 profiles; at most 20",
    ),
    "keys that stand twice": ("x: 1\n" * 3_000, "50 or more mistakes in .*study.yaml"),
    "unknown keys": (numbered("x{}: 1\n", 2000), "50 or more mistakes"),
    "unknown settings": ("search:\n" + numbered("  x{}: [1]\n", 1500), "50 or more mistakes"),
    "wrong seeds": ("seeds: [" + "x, " * 6_000 + "1]\n", "50 or more mistakes"),
    "skipped": (
        f"search: {{{TENTHS}}}\nskip: [{{temperature: [{numbered('{}.001, ', 4000)}0.2]}}]\n",
        r":3:9: skip\.0\.temperature: 0\.001 matches no point of the grid",
    ),
}


LONG = {
    "keys that stand twice",
    "unknown settings",
    "unknown keys",
    "profiles",
    "strata",
    "wrong seeds",
    "points",
    "skipped",
    "skipped points",
    "skipped values",
    "grid of strata",
    "configurations times seeds",
}
"""Cases of many mistakes, points and skipped points that are like another one, or take seconds."""


def cases(of: dict[str, Any]) -> list[Any]:
    return [
        pytest.param(value, id=name, marks=[pytest.mark.slow] if name in LONG else [])
        for name, value in of.items()
    ]


@pytest.mark.parametrize("case", cases(TOO_LARGE))
def test_what_is_too_large_is_refused_soon(
    read: Read, at_most_calls: AtMostCalls, case: tuple[str, str]
) -> None:
    rest, message = case
    with at_most_calls(CALLS), pytest.raises(SpecError, match=message) as caught:
        read(STUDY + rest)
    # one mistake is one sentence, the line and the place in it
    if "50 or more" not in message:
        assert len(str(caught.value).splitlines()) in (1, 3)
    assert len(str(caught.value)) < 100_000


def test_nothing_of_the_refused_size_is_built(read: Read) -> None:
    read(STUDY)
    tracemalloc.start()
    for name in ("configurations times added seeds", "steps with a schedule"):
        with pytest.raises(SpecError, match=r"study\.yaml"):
            read(STUDY + TOO_LARGE[name][0])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < MEGABYTES * 1e6


LARGE = {
    "points": f"search: {{{TENTHS}}}\n",
    "skipped points": f"search: {{{TENTHS}, ema_decay: [0.75]}}\nskip:\n"
    + "".join(f"- {{temperature: {i / 100}}}\n" for i in range(1000, 2700)),
    "skipped values": f"search: {{{TENTHS}}}\nskip: [{{temperature: ["
    + ", ".join(f"{i / 100}" for i in range(1000, 6000))
    + "]}]\n",
    "steps": "trainer: {steps: 10000000, ema_decay_end: 0.99}\n"
    "search: {ema_decay: [0.5, 0.6]}\nuntil: {decided: true, max_seeds: 10}\n",
    "seeds": "search: {ema_decay: [0.5, 0.6]}\nuntil: {decided: true, max_seeds: 1000}\n",
}


@pytest.mark.parametrize("rest", cases(LARGE))
def test_what_is_as_large_as_allowed_is_read_soon(
    read: Read, at_most_calls: AtMostCalls, rest: str
) -> None:
    with at_most_calls(CALLS):
        spec = read(STUDY + rest)
    assert len(spec.search_trials()) >= 20


@pytest.mark.parametrize("order", ["after-step", "before-target"])
@pytest.mark.parametrize(("steps", "period"), [(1, None), (40, None), (40, 100), (1500, 7)])
def test_the_mtd_of_a_schedule_is_the_mean_over_its_steps(
    order: str, steps: int, period: int | None
) -> None:
    settings = make_settings(
        ema_decay=0.5,
        ema_decay_end=0.97,
        steps=steps,
        ema_schedule_steps=period,
        ema_order=order,
        queue_size=192,
    )
    first = int(order == "before-target")
    share = np.cos(math.pi * np.arange(first, first + steps) / (period or steps)) / 2
    decays = 0.97 - (0.97 - 0.5) * (0.5 + share)
    expected = np.mean(d_trace(decays, settings.queue_size, settings.batch_size))
    assert settings.mtd == pytest.approx(expected, rel=1e-12)


def test_an_endless_file_is_not_read_to_its_end() -> None:
    with pytest.raises(SpecError, match="/dev/zero: more than 50,000 bytes"):
        read_source(Path("/dev/zero"))


def test_a_long_line_is_quoted_around_the_place(read: Read) -> None:
    line = "seeds: [" + "1, " * 5000 + "x, " + "2, " * 5000 + "3]"
    with pytest.raises(SpecError, match=r"seeds\.5000") as caught:
        read(STUDY + line + "\n")
    _, quoted, caret = str(caught.value).splitlines()
    assert len(quoted) <= 402
    assert quoted[caret.index("^")] == "x"


def test_a_key_that_is_a_list_is_refused(read: Read) -> None:
    with pytest.raises(SpecError, match=r":2:3: .*a key is a word, not a list"):
        read(STUDY + "? [a, b]\n: 1\n")


def test_every_limit_is_documented() -> None:
    constants = {name for name in vars(limits) if name.isupper()}
    table = limits_markdown()
    assert len(constants) == len(LIMITS)
    for name in constants:
        assert f"{getattr(limits, name):,}" in table, name
