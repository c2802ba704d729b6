"""The table of how long tests take."""

from pathlib import Path

import pytest

from tests.durations import main

XML = """<testsuites><testsuite>
<testcase classname="tests.store.test_a" name="test_one[x]" time="0.250"/>
<testcase classname="tests.store.test_a" name="test_two" time="1.500"/>
<testcase classname="tests.test_b" name="test_three" time="1.500"><skipped/></testcase>
</testsuite></testsuites>"""


def test_tests_are_listed_from_the_slowest_and_summed_by_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "tests.xml").write_text(XML)
    main(str(tmp_path / "tests.xml"), str(tmp_path / "table.csv"))
    assert (tmp_path / "table.csv").read_text().splitlines() == [
        "file,test,seconds",
        "tests/store/test_a.py,test_two,1.500",
        "tests/test_b.py,test_three,1.500",
        "tests/store/test_a.py,test_one[x],0.250",
    ]
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert printed == [
        ["1.8", "s", "tests/store/test_a.py"],
        ["1.5", "s", "tests/test_b.py"],
        ["3.2", "s", "3", "tests"],
    ]
