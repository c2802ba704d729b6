"""`mtdlab claims`: the claims of the papers in the studies of a database."""

import json

import pytest

from mtdlab.analysis.data.claims import load_claims
from mtdlab.analysis.data.meaning import PublishedFileError
from tests.analysis.report.test_claims_topic import CLUSTERS, SLICES
from tests.commands.conftest import Command, Recorded

STUDIES = {study.name: study for study in (SLICES, CLUSTERS)}


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """A database of two studies."""
    monkeypatch.setattr("mtdlab.store.recorded.study_names", lambda _: [*STUDIES])
    monkeypatch.setattr("mtdlab.store.frames.load_frames", lambda name, *_, **__: STUDIES[name])


@pytest.mark.usefixtures("stored")
def test_all_studies_of_the_database_are_read(command: Command) -> None:
    lines = command("claims").stdout.splitlines()
    assert lines[0].split() == [
        *("verdict", "claim", "source", "published", "here", "low", "high", "holm", "study")
    ]
    assert lines[1].split()[:2] == ["replicated", "slice-middle"]
    assert lines[3].split()[0] == "contradicted"
    assert lines[4].startswith("less than half as large as printed (direction open)")
    assert "claims are asked by no study here (--json lists them); files: " in " ".join(lines)
    assert "table7-initial-queue" in " ".join(lines)
    assert " ".join(lines).endswith(
        "2 replicated, 1 contradicted and 1 less than half as large as printed (direction open) of "
        "4 tested claims. If none of them were true, chance would make at most 0.1 as claimed on "
        "average. Not every test is evidence of its own: in 4 some of the same runs."
    )


@pytest.mark.usefixtures("stored")
def test_as_json_every_claim_has_an_entry(command: Command) -> None:
    printed = json.loads(command("claims clusters --json").stdout)
    found = {entry["name"]: entry for entry in printed["claims"]}
    assert {*found} == {claim.name for claim in load_claims()}
    assert found["clusters-ten"]["verdict"] == "replicated"
    assert found["slice-middle"]["verdict"] == "not tested"
    assert found["slice-middle"]["mean"] is None
    assert printed["summary"].startswith("1 replicated and 1 less than half as large")


def test_a_study_without_claims_and_one_that_is_missing(
    command: Command, recorded: Recorded
) -> None:
    storage = f"--storage {recorded.storage}"
    text = command(f"claims {storage}").stdout
    assert text.splitlines()[-1].startswith(f"None of {len(load_claims())} claims was tested.")
    assert "no study other in" in command(f"claims other {storage}", 5).stderr


def test_an_edited_file_is_a_sentence(
    command: Command, monkeypatch: pytest.MonkeyPatch, recorded: Recorded
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise PublishedFileError("claims.yaml, a: was edited")

    monkeypatch.setattr("mtdlab.analysis.report.topics.claims.load_claims", fail)
    storage = f"--storage {recorded.storage}"
    assert command(f"claims {storage}", 2).stderr == "mtdlab: claims.yaml, a: was edited\n"
    monkeypatch.setattr("mtdlab.analysis.questions.claim.load_claims", fail)
    assert command(f"report tiny {storage}", 2).stderr == "mtdlab: claims.yaml, a: was edited\n"
