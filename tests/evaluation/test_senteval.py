"""SentEval's files: read as they are, pointed at where they do not fit, warned of where short."""

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mtdlab.analysis.data.tasks import STS, TRANSFER
from mtdlab.config.reader import read_study
from mtdlab.encoders.loading import Encoder
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.evaluate import ScoreReport, as_fields, as_text
from mtdlab.evaluation.pairs import (
    BINARY,
    PUBLISHED,
    SUBSETS,
    Labelled,
    Split,
    describe_shortfall,
    load_task,
    sts_benchmark_pairs,
    task_folder,
)
from mtdlab.evaluation.suite import Suite
from mtdlab.settings import Representation
from mtdlab.settings.tasks import KNOWN, parse_tasks
from mtdlab.training.present import data_warnings
from tests.evaluation.conftest import SHARED, embedder_of

SPLITS: tuple[Split, ...] = ("train", "dev", "test")
Graded = Sequence[tuple[str, str, str]]


def files_of(task: str, graded: Graded = ()) -> dict[str, bytes]:
    """A small task as SentEval lays it out: 12 pairs a file, or 12 sentences a class.

    graded   score and sentences of the pairs of an STS task.
    """
    turns = range(12)
    if task in SUBSETS:
        rows = graded or [(f"{turn % 6}.5", f"a dog {turn}", f"the cat {turn}") for turn in turns]
        texts = "".join(f"{first}\t{second}\n" for _, first, second in rows).encode()
        scores = "".join(f"{score}\n" for score, _, _ in rows).encode()
        files = {f"STS.input.{name}.txt": texts for name in SUBSETS[task]}
        return files | {f"STS.gs.{name}.txt": scores for name in SUBSETS[task]}
    if task == "STSB":
        words = ["dog", "cat", "man", "woman", "bird", "child", "runs", "sleeps", "eats", "red"]
        rows = graded or [
            (f"{turn % 6}.0", f"the {words[turn % 10]}", f"a {words[-turn % 7]} walks")
            for turn in turns
        ]
        text = "".join(f"g\tf\ty\t1\t{score}\t{one}\t{other}\n" for score, one, other in rows)
        return {f"sts-{split}.csv": text.encode() for split in ("train", "dev", "test")}
    if task == "SICKR":
        rows = graded or [(f"{turn % 6}.0", f"a {turn}", "b") for turn in turns]
        text = "".join(f"1\t{one}\t{other}\t{score}\tNEUTRAL\r\n" for score, one, other in rows)
        return {"SICK_test_annotated.txt": f"pair_ID\tA\tB\tscore\tjudgment\r\n{text}".encode()}
    if task == "SST2":
        rows = "".join(f"film {turn}\t{turn % 2}\n" for turn in range(24))
        return {f"sentiment-{split}": rows.encode() for split in ("train", "dev", "test")}
    if task == "TREC":
        rows = "".join(f"{kind}:x What {turn} ?\n" for kind in ("HUM", "LOC") for turn in turns)
        content = rows.encode() + b"NUM:x \xb5 ?\n" * 10
        return {"train_5500.label": content, "TREC_10.label": content}
    if task == "MRPC":
        rows = "".join(f"{turn % 2}\t1\t2\ta {turn}\tb {turn}\n" for turn in range(24))
        content = f"\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n{rows}".encode()
        return {f"msr_paraphrase_{split}.txt": content for split in ("train", "test")}
    names = {
        "MR": ("rt-polarity.neg", "rt-polarity.pos"),
        "CR": ("custrev.neg", "custrev.pos"),
        "SUBJ": ("subj.subjective", "subj.objective"),
        "MPQA": ("mpqa.neg", "mpqa.pos"),
    }[task]
    return {
        names[label]: b"".join(b"caf\xe9 %d %d\n" % (label, turn) for turn in turns)
        for label in (0, 1)
    }


def lay_out(data: Path, task: str, graded: Graded = ()) -> Path:
    folder = task_folder(task, data)
    assert folder is not None
    folder.mkdir(parents=True)
    for name, content in files_of(task, graded).items():
        (folder / name).write_bytes(content)
    return folder


ON_DISK = (*STS, *TRANSFER)
ALIKE = {"STS13", "STS14", "STS15", "STS16", "CR", "SUBJ", "MPQA"}
"""Tasks with the layout of another one."""


@pytest.mark.parametrize("task", ON_DISK)
def test_a_task_is_read_from_where_senteval_keeps_it(task: str, tmp_path: Path) -> None:
    parts = load_task(task, lay_out(tmp_path, task))
    expected = (
        len(SUBSETS[task]) * 12
        if task in SUBSETS
        else {"STSB": 12, "SICKR": 12}.get(task, 34 if task == "TREC" else 24)
    )
    assert [len(part) for part in parts] == [expected] * len(parts)
    assert len(parts) == {"SST2": 3, "TREC": 2, "MRPC": 2}.get(task, 1)
    first = parts[0]
    if isinstance(first, Labelled):
        assert set(first.gold) == ({3, 4, 5} if task == "TREC" else {0, 1})
    else:
        assert first.gold[:6].tolist() == [at + (0.5 if task in SUBSETS else 0) for at in range(6)]


def test_latin_1_is_read_where_senteval_writes_it(tmp_path: Path) -> None:
    train, _ = load_task("TREC", lay_out(tmp_path, "TREC"))
    assert train.first[-1] == "\u00b5 ?"
    [whole] = load_task("MR", lay_out(tmp_path, "MR"))
    assert whole.first[0] == "caf\u00e9 0 0"
    assert whole.gold.tolist() == [0] * 12 + [1] * 12


def test_subsets_stand_one_after_the_other_without_empty_gold(tmp_path: Path) -> None:
    folder = lay_out(tmp_path, "STS13")
    (folder / "STS.gs.OnWN.txt").write_text("\n" * 11 + "4\n")
    [pairs] = load_task("STS13", folder)
    assert pairs.gold.tolist() == [at % 6 + 0.5 for at in range(12)] * 2 + [4]
    assert pairs.first[-1] == "a dog 11"


def test_an_empty_line_of_a_class_file_is_a_sentence(tmp_path: Path) -> None:
    folder = lay_out(tmp_path, "CR")
    (folder / "custrev.neg").write_bytes(b"a\n\n" + b"b\n" * 9)
    assert load_task("CR", folder)[0].first[:3] == ["a", "", "b"]


DAMAGE = [
    ("STS12", "STS.gs.MSRvid.txt", b"1\n2\n", r"STS.gs.MSRvid.txt:3: 2 scores for the 12 pairs of"),
    ("STS12", "STS.input.MSRvid.txt", b"a\tb\n", r"gs.MSRvid.txt:2: 12 scores for the 1 pairs"),
    ("STS12", "STS.input.MSRvid.txt", b"a\tb\na b\n", r"MSRvid.txt:2: 1 columns; 2 are needed"),
    ("STS12", "STS.gs.MSRvid.txt", b"high\n" * 12, r"STS.gs.MSRvid.txt:1: 'high' is no score"),
    ("STS12", "STS.gs.MSRvid.txt", b"", r"STS.gs.MSRvid.txt: is empty"),
    (
        "STS12",
        "STS.input.MSRvid.txt",
        b"a\tb\n\xe9\tb\n",
        r"txt:2: holds byte 0xe9",
    ),
    ("STS12", "STS.input.MSRvid.txt", b"a\tb\na\0\tb\n", r"txt:2: holds byte 0x00"),
    ("STS12", "STS.input.MSRvid.txt", b"a\t \n" * 12, r"txt:1: holds an empty sentence"),
    ("SICKR", "SICK_test_annotated.txt", b"1\ta\tb\n", r"txt:1: 3 columns; 4 are needed"),
    ("SICKR", "SICK_test_annotated.txt", b"h\th\th\th\n1\t3\ta\tb\n", r"txt:2: 'b' is no score"),
    ("SICKR", "SICK_test_annotated.txt", b"h\th\th\th\n", r"0 scored pairs; at least 2"),
    ("MR", "rt-polarity.pos", b"a\n" * 9, r"21 sentences in 2 classes; .* 10 sentences"),
    (
        "MR",
        "rt-polarity.pos",
        "a\n".encode("utf-16"),
        r"pos:1: .* save it as LATIN-1",
    ),
    ("SST2", "sentiment-dev", b"1\tgood\n", r"sentiment-dev:1: 'good' is no label; 0, 1 are"),
    ("SST2", "sentiment-dev", b"good 1\n", r"sentiment-dev:1: 1 columns"),
    ("TREC", "TREC_10.label", b"HUM:x who ?\nwho ?\n", r"label:2: 'who \?' is no label; ABBR, "),
    ("TREC", "TREC_10.label", b"HUM:x\n", r"TREC_10.label:1: holds an empty sentence"),
    ("TREC", "train_5500.label", b"HUM:x who ?\n" * 20, r"20 sentences in 1 classes"),
    ("MRPC", "msr_paraphrase_test.txt", b"h\n2\t1\n", r"test.txt:2: 2 columns; 5 are needed"),
    ("MRPC", "msr_paraphrase_test.txt", b"h\t\t\t\t\n2\t1\t1\ta\tb\n", r"txt:2: '2' is no label"),
]


@pytest.mark.parametrize(("task", "file", "content", "message"), DAMAGE)
def test_what_does_not_fit_is_pointed_at(
    task: str, file: str, content: bytes, message: str, tmp_path: Path
) -> None:
    folder = lay_out(tmp_path, task)
    (folder / file).write_bytes(content)
    with pytest.raises(MtdlabError, match=message) as caught:
        load_task(task, folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("task", ON_DISK)
def test_a_missing_file_is_named(task: str, tmp_path: Path) -> None:
    folder = lay_out(tmp_path, task)
    file = folder / ("sts-test.csv" if task == "STSB" else sorted(files_of(task))[-1])
    file.unlink()
    with pytest.raises(MtdlabError, match=rf"{file.name}: cannot be read: no such file") as caught:
        load_task(task, folder)
    assert "give a folder in SentEval's layout" in str(caught.value)


def mutated(content: bytes) -> st.SearchStrategy[bytes]:
    """Truncated, with inserted bytes, permuted lines or columns, another encoding, or any bytes."""
    lines = content.split(b"\n")
    return st.one_of(
        st.integers(0, len(content)).map(lambda at: content[:at]),
        st.tuples(st.integers(0, len(content)), st.binary(max_size=6)).map(
            lambda cut: content[: cut[0]] + cut[1] + content[cut[0] :]
        ),
        st.permutations(lines).map(b"\n".join),
        st.just(b"\n".join(b"\t".join(reversed(line.split(b"\t"))) for line in lines)),
        st.sampled_from(["utf-16", "utf-8", "latin-1"]).map(
            lambda name: ("\u00e9 " + content.decode("latin-1")).encode(name)
        ),
        st.lists(st.sampled_from([b"1", b"a", b"\t", b"\n", b"\r", b"nan", b"\xff", b":"])).map(
            b"".join
        ),
        st.binary(max_size=60),
    )


def is_read(task: str, folder: Path) -> bool:
    """Whether a task is read, as complete rows; else the error is one line with the folder."""
    parts, refusal = (), ""
    try:
        parts = load_task(task, folder)
    except MtdlabError as error:
        refusal = str(error)
    assert "\n" not in refusal
    assert bool(parts) != (str(folder) in refusal)
    for part in parts:
        assert len(part.first) == len(part)
        assert len(part.second) in (len(part), 0)
    return bool(parts)


@pytest.mark.parametrize(
    "task",
    [pytest.param(task, marks=[pytest.mark.slow] if task in ALIKE else []) for task in ON_DISK],
)
def test_whatever_a_file_holds_it_is_read_or_refused(task: str, tmp_path: Path) -> None:
    folder = lay_out(tmp_path, task)
    files = files_of(task)
    outcomes = set()

    @settings(
        max_examples=60,
        deadline=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def fuzz(data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(files)))
        (folder / name).write_bytes(data.draw(mutated(files[name])))
        outcomes.add(is_read(task, folder))
        (folder / name).write_bytes(files[name])

    fuzz()
    assert outcomes == {True, False}


def test_names_of_tasks() -> None:
    assert parse_tasks("STSB, STS12,builtin") == ("STS12", "STSB", "builtin")
    assert parse_tasks("transfer,sts") == (*STS, *TRANSFER)
    assert parse_tasks(",".join(KNOWN)) == KNOWN
    assert parse_tasks("") == ()
    with pytest.raises(ValueError, match=r"task 'STS17': not known; write sts, transfer or"):
        parse_tasks("STS12,STS17")
    with pytest.raises(ValueError, match="task '': not known"):
        parse_tasks("STS12,,STSB")


def test_the_splits_of_sts_b_that_are_there(tmp_path: Path) -> None:
    assert sts_benchmark_pairs(tmp_path, SPLITS) == {}
    folder = lay_out(tmp_path, "STSB")
    [(name, pairs)] = sts_benchmark_pairs(tmp_path, SPLITS).items()
    assert (name, len(pairs)) == ("STS-B train + dev + test", 36)
    (folder / "sts-train.csv").unlink()
    [(name, pairs)] = sts_benchmark_pairs(tmp_path, SPLITS).items()
    assert (name, len(pairs)) == ("STS-B dev + test", 24)
    [(name, pairs)] = sts_benchmark_pairs(tmp_path, ("test",)).items()
    assert (name, len(pairs)) == ("STS-B test", 12)
    shutil.rmtree(folder)


@pytest.mark.skipif(
    not (SHARED / "STS/STSBenchmark/sts-train.csv").is_file(), reason=f"no STS-B at {SHARED}"
)
def test_published_count_of_positives() -> None:
    [pairs] = sts_benchmark_pairs(SHARED, SPLITS).values()
    assert int((pairs.gold > 4).sum()) == 1491


def test_a_class_that_is_cut_short_is_named_with_both_counts(tmp_path: Path) -> None:
    """SUBJ with 20 of the 5,000 lines of one class."""
    folder = lay_out(tmp_path, "SUBJ")
    (folder / "subj.subjective").write_text("a film .\n" * 20)
    (folder / "subj.objective").write_text("a city .\n" * 5000)
    found = describe_shortfall("SUBJ", load_task("SUBJ", folder))
    assert found == "subj.subjective has 20 of the 5,000 published sentences"
    (folder / "subj.subjective").write_text("a film .\n" * 5000)
    assert describe_shortfall("SUBJ", load_task("SUBJ", folder)) == ""


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("TREC", "its train split has 34 of the 5,452 published sentences; its test split has 34 "),
        ("MRPC", "its train split has 24 of the 4,076 published pairs; its test split has 24 of "),
        ("STSB", "its test split has 12 of the 1,379 published pairs"),
        ("SST2", ""),
        ("STS13", ""),
    ],
)
def test_splits_are_counted_where_their_size_is_known(
    task: str, expected: str, tmp_path: Path
) -> None:
    found = describe_shortfall(task, load_task(task, lay_out(tmp_path, task)))
    assert found.startswith(expected)
    assert bool(found) == bool(expected)


@pytest.mark.parametrize("task", PUBLISHED)
def test_published_files_are_complete(task: str) -> None:
    folder = task_folder(task, SHARED)
    if folder is None or not folder.is_dir():
        pytest.skip("the published files are not part of the repository")
    parts = load_task(task, folder)
    found = np.bincount(parts[0].gold) if task in BINARY else [len(part) for part in parts]
    assert tuple(found) == PUBLISHED[task]
    assert describe_shortfall(task, parts) == ""


def test_the_score_carries_the_warning(encoder: Encoder, tmp_path: Path) -> None:
    lay_out(tmp_path, "STSB")
    suite = Suite(["STSB"], tmp_path, encoder.sentences)
    scores = suite.score_all(suite.embed(embedder_of(encoder)))
    report = ScoreReport("m", Representation("cls"), None, "cpu", scores, [], [])
    warning = "its test split has 12 of the 1,379 published pairs"
    assert scores[0].score is not None
    assert f"warning: STSB: {warning}" in as_text(report)
    assert as_fields(report)["tasks"][0]["warning"] == warning


def test_a_sweep_names_short_tasks(tmp_path: Path) -> None:
    for task in ("CR", "STS13"):
        lay_out(tmp_path / "data", task)
    path = tmp_path / "study.yaml"
    trainer = {"evaluation": str(tmp_path / "data"), "tasks": "CR,STS13"}
    path.write_text(f"study: a\ntrainer: {json.dumps(trainer)}\nsearch: {{ema_decay: [0.5]}}\n")
    no_pairs, *short = data_warnings(read_study(path))
    assert "sts-dev.csv: cannot be read" in no_pairs
    assert short == [
        "task CR: custrev.neg has 12 of the 1,368 published sentences; custrev.pos has 12 of the "
        "2,407 published sentences"
    ]
