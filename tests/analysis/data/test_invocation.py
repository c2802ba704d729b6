"""A command with what it was given: written for a shell, and changed."""

import shlex

import pytest

from mtdlab.analysis.data.invocation import ANY_SWEEP, NO_INVOCATION, Invocation

SWEEP = Invocation(
    "sweep", ("my study.yaml",), {"set": ("a=1", "b=[0, 2]"), "retry-failed": (), "jobs": ("2",)}
)


def test_a_command_is_written_for_a_shell() -> None:
    text = "mtdlab sweep 'my study.yaml' --set a=1 --set 'b=[0, 2]' --retry-failed --jobs 2"
    assert str(SWEEP) == text
    assert shlex.split(text) == SWEEP.words
    assert (str(NO_INVOCATION), bool(NO_INVOCATION)) == ("", False)
    assert str(ANY_SWEEP) == "mtdlab sweep FILE"


def test_what_is_no_word_is_quoted() -> None:
    hostile = Invocation("sweep; rm x", ("$(id)",), {"a `b`": ("'",)})
    assert shlex.split(str(hostile)) == ["mtdlab", "sweep; rm x", "$(id)", "--a `b`", "'"]


@pytest.mark.parametrize(
    ("option", "value"), [("set", "b=[0, 2]"), ("retry-failed", ""), ("x", "")]
)
def test_the_last_value_of_an_option_counts(option: str, value: str) -> None:
    assert SWEEP.value(option) == value


def test_options_are_added_replaced_and_removed() -> None:
    assert SWEEP.adding("set", "c=3").options["set"] == ("a=1", "b=[0, 2]", "c=3")
    assert SWEEP.adding("retry-failed").options == SWEEP.options
    assert SWEEP.giving("set", "c=3").options["set"] == ("c=3",)
    assert list(SWEEP.giving("set", "c=3").options) == ["retry-failed", "jobs", "set"]
    assert SWEEP.without("set").options == {"retry-failed": (), "jobs": ("2",)}
    assert SWEEP.without("x") == SWEEP


def test_every_argument_and_value_is_changed() -> None:
    changed = SWEEP.changed(str.upper)
    assert changed.arguments == ("MY STUDY.YAML",)
    assert changed.options == {"set": ("A=1", "B=[0, 2]"), "retry-failed": (), "jobs": ("2",)}
