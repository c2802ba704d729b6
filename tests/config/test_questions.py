"""The key questions: what is read, what is refused, what of it identifies a study."""

import pytest

from mtdlab.config.schema import study_schema
from mtdlab.config.source import SpecError
from mtdlab.config.study import StudySpec, plan_of
from tests.config.conftest import Read

STUDY = """\
study: a
search: {ema_decay: [0.75, 0.85, 0.95], queue_size: [64, 512]}
"""
EFFECT = "questions:\n  - effect: ema_decay\n"
UNTIL = "until: {decided: true, max_seeds: 4}\n"


def test_questions_are_read_and_recorded_with_margin_and_alpha(read: Read) -> None:
    spec = read(STUDY + EFFECT + "  - shape: mtd\n")
    assert plan_of(spec)["questions"] == [{"effect": "ema_decay"}, {"shape": "mtd"}]
    assert spec.planned_question().asked.write() == {"effect": "ema_decay"}


def test_without_questions_the_plan_is_recorded_as_before(read: Read) -> None:
    spec = read(STUDY)
    assert [*plan_of(spec)] == ["study", "metric", "margin", "alpha", "beyond_run", "looks"]
    assert spec.planned_question().asked.write() == {"shape": "mtd"}


def test_numbers_of_training_sentences_are_conditions(read: Read) -> None:
    lengths = "search.sentences=[6400, 12800]"
    assert read(STUDY, lengths).planned_question().asked.write() == {"conditions": "mtd"}


@pytest.mark.parametrize("override", ["search.ema_decay=[0.85]", "questions=[{effect: steps}]"])
def test_a_question_about_what_does_not_vary_is_refused_at_its_place(
    read: Read, override: str
) -> None:
    with pytest.raises(SpecError, match="a question is about what varies; change it, or take it"):
        read(STUDY + EFFECT, override)
    assert read(STUDY + EFFECT, "search.ema_decay=[0.85]", "questions=[]").questions == ()


def test_a_value_that_a_profile_took_out_is_named(read: Read) -> None:
    profile = "profiles: {small: {search: {ema_decay: [0.75, 0.85]}}}\n"
    text = STUDY + "questions:\n  - contrast: {ema_decay: [0.95, 0.75]}\n" + profile
    # profiles are checked with the file
    with pytest.raises(SpecError) as error:
        read(text)
    assert "study.yaml:4:5: profile small: questions.0: ema_decay has no value 0.95" in str(
        error.value
    )


def test_all_mistakes_of_questions_are_reported_at_once(read: Read) -> None:
    with pytest.raises(SpecError) as error:
        read(STUDY + "questions: [{shape: ema}, {foo: mtd}, {effect: a}, {effect: a}]\n")
    assert str(error.value).startswith("3 mistakes in ")
    assert "this question stands twice" in str(error.value)


def test_questions_identify_a_study_only_where_they_end_it(read: Read) -> None:
    assert read(STUDY + EFFECT).identity() == read(STUDY).identity()
    derived = read(STUDY + UNTIL).identity()
    assert "questions" not in derived
    # what follows anyway may be declared in a study that was begun without it
    assert read(STUDY + UNTIL + "questions: [{shape: mtd}]\n").identity() == derived
    assert read(STUDY + UNTIL + EFFECT).identity()["questions"] == [{"effect": "ema_decay"}]


def test_until_needs_a_question_that_is_tested(read: Read) -> None:
    probed = "trainer: {probe_every: 2}\nquestions: [{history: mtd}]\n"
    assert read(STUDY + probed)
    with pytest.raises(SpecError, match="history is described, not tested"):
        read(STUDY + UNTIL + probed)


def test_configurations_of_a_sampler_are_not_known_beforehand(read: Read) -> None:
    spec: StudySpec = read(STUDY + EFFECT + "sampler: random\ntrials: 3\n")
    assert [question.kind for question in spec.questions] == ["effect"]


def test_the_schema_knows_the_kinds() -> None:
    described = study_schema()["properties"]["questions"]
    assert {"shape", "best", "effect", "interaction"} <= {*described["items"]["properties"]}
    assert described["items"]["additionalProperties"] is False
