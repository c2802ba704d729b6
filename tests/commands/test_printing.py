"""Numbers as the commands print them."""

import math

import pytest

from mtdlab.commands.printing import print_table


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.985, "0.985"),
        (0.5, "0.5"),
        (14.666667, "14.67"),
        (202.5, "202.5"),
        (5e-9, "5e-09"),
        (12345.6, "12346"),
        (512, "512"),
        (None, "–"),
        (math.nan, "–"),
        ("mocose", "mocose"),
    ],
)
def test_a_cell(value: object, shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    print_table([{"a": value}])
    assert capsys.readouterr().out.split() == ["a", shown]
