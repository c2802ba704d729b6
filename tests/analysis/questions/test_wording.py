"""Numbers and lists as text."""

import math

from mtdlab.analysis.questions.wording import format_p, join_words


def test_a_p_value_has_a_sign() -> None:
    texts = [format_p(value) for value in (0.0123, 0.0004, math.nan)]
    assert texts == ["p = 0.012", "p < 0.001", "no test"]


def test_words_are_joined_with_commas_and_a_last_and() -> None:
    texts = [join_words(list(words)) for words in ("", "a", "ab", "abc")]
    assert texts == ["", "a", "a and b", "a, b and c"]
