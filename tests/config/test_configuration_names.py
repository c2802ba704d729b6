"""The names of configurations: which each fits, what is refused, and that they identify nothing."""

import pytest

from mtdlab.analysis.questions.additions import AdditionsQuestion
from mtdlab.analysis.questions.study import kind_of
from mtdlab.api.plan import list_configurations
from mtdlab.config.source import SpecError
from tests.config.conftest import Read

STUDY = """\
study: a
search:
  method: [simcse, xbm, mocose]
  queue_size: {times: batch_size, values: [1, 2]}
  temperature: {low: 0.1, high: 0.3, step: 0.1}
skip: [{method: [simcse, xbm], temperature: [0.1, 0.2]}, {method: mocose, temperature: 0.1}]
nuisance: {learning_rate: [3e-4, 1e-3], seeds: [900]}
select_by: sts_dev
"""
NAMES = """\
names:
  SimCSE: {method: simcse}
  with a queue: {method: xbm, queue_size: 1, temperature: 0.3}
  with <b>averaged</b> keys: {method: mocose, queue_size: [1], temperature: [0.1, 0.2]}
"""
ADDITIONS = "questions: [additions: [SimCSE, with a queue]]\n"


def test_a_name_is_that_of_the_one_configuration_that_its_point_fits(read: Read) -> None:
    spec = read(STUDY + NAMES)
    named = {spec.names[key]: spec.points()[key] for key in spec.names}
    # a queue size of SimCSE is no part of its configuration, and 0.1 + 0.2 is 0.3
    assert {name: point["method"] for name, point in named.items()} == {
        "SimCSE": "simcse",
        "with a queue": "xbm",
        "with <b>averaged</b> keys": "mocose",
    }
    assert named["with a queue"]["queue_size/batch_size"] == 1
    rows = list_configurations(spec)
    assert next(iter(rows[0])) == "configuration"
    called = {row["configuration"]: row["method"] for row in rows}
    assert called == {None: "mocose"} | {name: each["method"] for name, each in named.items()}
    assert "configuration" not in list_configurations(read(STUDY))[0]


def test_names_are_no_part_of_what_identifies_a_study(read: Read) -> None:
    assert read(STUDY + NAMES).identity() == read(STUDY).identity()


@pytest.mark.parametrize(
    ("names", "why"),
    [
        ("{a: {method: xbm}}", "names.a: fits 2 configurations, which differ in queue_size; name"),
        ("{a: {method: mocose, temperature: 0.1}}", "names.a: fits no configuration of the search"),
        (
            "{a: {temperature: 0.3}}",
            r"fits 5 configurations, which differ in method, queue_size; name one",
        ),
        ("{a: {method: simcse}, b: {method: simcse}}", "names the configuration that is called a;"),
        ("{a: {methd: simcse}}", "names.a.methd: unknown key; did you mean method"),
        ("{a: {learning_rate: 1e-3}}", "names.a.learning_rate: unknown key"),
        ("{a: {method: consert}}", "'consert' matches no point of the grid"),
        ("{a: simcse}", "names.a: 'simcse': write searched settings"),
        ("{'': {method: simcse}}", "a name has 1 to 40 letters on one line"),
        ("{' a': {method: simcse}}", "a name has 1 to 40 letters on one line, and no blanks at"),
        (f"{{{'a' * 41}: {{method: simcse}}}}", "a name has 1 to 40 letters on one line"),
        ('{"a\\nb": {method: simcse}}', "a name has 1 to 40 letters on one line"),
    ],
)
def test_what_is_no_name_of_one_configuration_is_refused(read: Read, names: str, why: str) -> None:
    with pytest.raises(SpecError, match=why):
        read(STUDY + f"names: {names}\n")


def test_a_name_that_stands_twice_is_refused(read: Read) -> None:
    with pytest.raises(SpecError, match="this key stands twice"):
        read(STUDY + "names:\n  a: {method: simcse}\n  a: {method: simcse}\n")


def test_a_sampler_without_a_grid_has_no_configurations_to_name(read: Read) -> None:
    drawn = "study: a\nsearch: {ema_decay: [0.5, 0.9]}\nsampler: random\ntrials: 2\n"
    with pytest.raises(SpecError, match="names: needs sampler: grid; random has no configurations"):
        read(drawn + "names: {a: {ema_decay: 0.5}}\n")


@pytest.mark.parametrize(
    ("question", "why"),
    [
        ("[SimCSE, with heads]", "no configuration is called with heads; names has SimCSE, with a"),
        ("[SimCSE]", r"\['SimCSE'\]: name two configurations or more, each once"),
        ("[SimCSE, with a queue, SimCSE]", "name two configurations or more, each once"),
        ("[1, 2]", r"write additions: .*, and quote 1 or true"),
        ("{SimCSE: 1}", r"write additions: \[SimCSE, with a queue, with heads\]"),
    ],
)
def test_additions_are_of_names_each_once(read: Read, question: str, why: str) -> None:
    with pytest.raises(SpecError, match=why):
        read(STUDY + NAMES + f"questions: [additions: {question}]\n")


def test_additions_without_names_are_refused(read: Read) -> None:
    with pytest.raises(SpecError, match="no configuration is called SimCSE; the file has no names"):
        read(STUDY + ADDITIONS)


def test_other_questions_of_a_study_with_names_are_planned_as_without(read: Read) -> None:
    text = "study: a\nsearch: {ema_decay: [0.5, 0.9], queue_size: [64, 128]}\n"
    named = "names: {short: {ema_decay: 0.5, queue_size: 64}}\n"
    asked = "questions: [effect: ema_decay]\n"
    designs = []
    for given in (text + asked, text + named + asked):
        planned = read(given).planned_question()
        design = kind_of(planned.asked).plan(planned)
        assert design is not None
        assert design.rows is not None
        designs.append(design.rows.tolist())
    assert designs[0] == designs[1]


def test_the_power_of_additions_is_planned(read: Read) -> None:
    planned = read(STUDY + NAMES + ADDITIONS).planned_question()
    assert planned.asked.write() == {"additions": ["SimCSE", "with a queue"]}
    design = AdditionsQuestion.plan(planned)
    assert design.rows is not None
    assert design.rows.tolist() == [[-1.0, 1.0]]
