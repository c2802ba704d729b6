"""Many mutated tables of runs, files of graded pairs and encoder folders.

Each ends with a documented exit code, and where it is refused, in a sentence without a traceback.
MTDLAB_TEST_INPUTS is their number, MTDLAB_TEST_SEED repeats a run; both are printed.
"""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import pytest

from tests.commands.conftest import Command, command, folder
from tests.config.test_mutations import LIBRARY_WORDS

__all__ = ["command", "folder"]

INPUTS = int(os.environ.get("MTDLAB_TEST_INPUTS", "500"))
SEED = int(os.environ.get("MTDLAB_TEST_SEED") or SystemRandom().randrange(10**9))
CELLS = (
    *("", " ", "nan", "inf", "-inf", "None", "0", "-1", "1e308", "-1e308", "1e5000", "1e-320"),
    *("0,8", "1,234", "1.234,5", "0x10", "1_000", "80 %", "=1+1", '"', '""', "a,b;c\td", "\x00"),
    *(
        "\u200b",
        "ünï",
        "\ufeff",
        "\u202e",
        "💥" * 40,
        "x" * 5000,
        "keep",
        "crash",
        "true",
        "99999999999999999999",
    ),
)
HEADERS = (
    *("score", "seed", "mtd", "state", "status", "number", "run_id", "config", "summary", "method"),
    *("queue_size", "batch_size", "steps", "evaluator", "commit", "n", "mean", "low", "high", "."),
    *(
        "metrics.score",
        "params.lr",
        "config.seed",
        "val_loss",
        "name",
        "",
        " ",
        "_x",
        "STS12",
        "note",
    ),
)
LEDGER = (
    "commit\tval_bpb\tmemory_gb\tstatus\tdescription\n"
    "a1b2c3d\t0.9979\t44.0\tkeep\tbaseline\n"
    "b2c3d4e\t0.9932\t44.2\tkeep\tincrease LR to 0.04\n"
    "d4e5f6a\t0.0000\t0.0\tcrash\tdouble model width\n"
)
RUNS = "seed,lr,score,state\n" + "".join(
    f"{seed},{lr},{70 + seed + 5 * lr + seed * lr},complete\n"
    for seed in range(4)
    for lr in (0.1, 0.2, 0.4)
)
TRACED = "score,seed,ema_decay,queue_size,batch_size\n" + "".join(
    f"{30 + seed + mtd / 20 + seed % 2 * mtd / 50},{seed},{1 - 1 / mtd},0,64\n"
    for seed in range(3)
    for mtd in (2, 5, 8)
)
MEANS = "mtd,mean,low,high\n5,30.5,30,31\n7.5,31.2,31,32\n9,30.1,29,31\n"


def mutate_lines(random: Random, text: str, separator: str) -> bytes:
    """A text of lines of cells with a few changes: of cells, columns, lines, separators, bytes."""
    rows = [line.split(separator) for line in text.splitlines()]
    for _ in range(random.randint(0, 4)):
        row = random.choice(rows) if rows else []
        at = random.randrange(len(row)) if row else 0
        kind = random.randrange(9)
        if kind < 3 and row:
            row[at] = random.choice(CELLS)
        elif kind == 3 and rows and rows[0]:
            rows[0][random.randrange(len(rows[0]))] = random.choice(HEADERS)
        elif kind == 4 and row:
            del row[at]
        elif kind == 5:
            rows.insert(random.randint(0, len(rows)), list(row))
        elif kind == 6 and rows:
            del rows[random.randrange(len(rows))]
        elif kind == 7:
            value = random.choice(CELLS)
            for other in rows[1:]:
                other[at : at + 1] = [value]
        elif kind == 8:
            name = random.choice(HEADERS)
            for index, other in enumerate(rows):
                other.append(random.choice(CELLS) if index else name)
    separator = random.choice((*[separator] * 6, ",", ";", "\t"))
    content = "\n".join(separator.join(row) for row in rows).encode("utf-8", "surrogatepass")
    return mutate_bytes(random, content) if random.random() < 0.15 else content


def mutate_bytes(random: Random, content: bytes) -> bytes:
    """Bytes of which some are changed, cut off or repeated."""
    at = random.randrange(len(content) + 1)
    return random.choice(
        (
            content[:at],
            content[:at] + bytes([random.randrange(256)]) + content[at + 1 :],
            content[:at] + content[random.randrange(len(content) + 1) :],
            content.decode("utf-8", "replace").encode("utf-16"),
            b"",
        )
    )


def mutate_json(random: Random, value: Any) -> Any:
    """A JSON value of which one part is removed or replaced."""
    if isinstance(value, dict | list) and value and random.random() < 0.8:
        key = random.choice([*value]) if isinstance(value, dict) else random.randrange(len(value))
        copy = value.copy()
        if random.random() < 0.3:
            del copy[key]
        else:
            copy[key] = mutate_json(random, value[key])
        return copy
    others = (None, -1, 0, 1, 2**40, 0.5, "", "mean", "[CLS]", [], {}, True, [1, "a"], {"a": 1})
    return random.choice(others)


class Tried:
    """Runs commands on mutated inputs, and counts how they end."""

    def __init__(self, command: Command) -> None:
        self._command = command

    def __call__(self, line: Sequence[str], codes: Sequence[int], what: str) -> bool:
        """Run a command, which may end with these exit codes; whether it was not refused."""
        try:
            done = self._command([*line], tuple(codes))
        except BaseException as error:
            raise AssertionError(f"{what}: mtdlab {' '.join(line)}") from error
        told = done.stdout + done.stderr
        assert "Traceback" not in told, (what, told)
        refused = not done.stdout
        if refused:
            # progress on standard error comes before
            text = done.stderr[done.stderr.rfind("\nmtdlab: ") + 1 :]
            assert text.startswith("mtdlab: "), (what, done)
            first, *others = text.splitlines()
            assert all(line.startswith(("- ", "  ", "mtdlab: ")) for line in others), (what, text)
            assert not LIBRARY_WORDS.search(first), (what, text)
        return not refused


@pytest.fixture
def tried(command: Command) -> Tried:
    return Tried(command)


def report(capfd: pytest.CaptureFixture[str], what: str, read: int) -> None:
    with capfd.disabled():
        print(f"\n{INPUTS} mutated {what}, seed {SEED}: {read} read, {INPUTS - read} refused")
    # of both kinds, else this says little
    assert INPUTS // 20 < read < INPUTS


@pytest.mark.slow
@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
def test_mutated_tables_are_read_or_refused(
    folder: Path, tried: Tried, capfd: pytest.CaptureFixture[str]
) -> None:
    tables = {"runs.csv": RUNS, "traced.csv": TRACED, "ledger.tsv": LEDGER, "means.csv": MEANS}
    sides = {"runs.csv": ("lr=0.1", "lr=0.2"), "ledger.tsv": ("a1b2c3d", "b2c3d4e")}
    read = 0
    for index in range(INPUTS):
        random = Random(f"{SEED}-{index}")
        name = random.choice([*tables])
        separator = "\t" if name == "ledger.tsv" else ","
        content = mutate_lines(random, tables[name], separator)
        (folder / name).write_bytes(content)
        given = ["--score", "val_bpb", "--direction", "minimize", "--scale", "own"]
        line = given if name == "ledger.tsv" else []
        others = ["seed=none", "seed=lr", "state=state", "evaluator=lr", "mtd=seed", "x=y"]
        if random.random() < 0.3:
            line += random.choice(
                (
                    *(["--column", other] for other in others),
                    *(["--score", header] for header in ("lr", "seed", "score")),
                    *(["--scale", scale] for scale in ("fraction", "percent", "own")),
                    ["--direction", "minimize"],
                )
            )
        what = f"seed {SEED}, table {index}: {content!r}"
        read += tried(["report", "--table", name, *line], (0, 2), what)
        if name in sides:
            first, second = sides[name]
            session = random.choice(([], [], ["--session", f"{index % 7}.json"]))
            pair = ["--baseline", first, "--candidate", second, *session]
            tried(["decide", name, *pair, *line], (0, 2, 10, 11, 12), what)
    report(capfd, "tables", read)


@pytest.mark.slow
def test_mutated_pairs_are_read_or_refused(
    folder: Path,
    tried: Tried,
    tiny_encoder: Path,
    tiny_corpus: Path,
    tiny_pairs: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    read = 0
    for index in range(INPUTS):
        random = Random(f"{SEED}-{index}")
        pairs = folder / f"pairs{index}"
        shutil.copytree(tiny_pairs, pairs)
        file = pairs / f"sts-{random.choice(('dev', 'test'))}.csv"
        text = file.read_text()
        if is_own := random.random() < 0.5:
            text = own_layout(text)
        content = mutate_lines(random, text, "\t")
        target = file.with_name(f"{file.stem.removeprefix('sts-')}.tsv") if is_own else file
        file.unlink()
        target.write_bytes(content)
        what = f"seed {SEED}, pairs {index}: {target.name} {content!r}"
        read += tried(["corpus", str(tiny_corpus), "--evaluation", str(pairs)], (0, 2), what)
        if index % 5 == 0:
            inputs = {"encoder": tiny_encoder, "corpus": tiny_corpus, "evaluation": pairs}
            values = {**inputs, "steps": 1, "batch_size": 4, "queue_size": 4}
            given = [f"--set=trainer.{name}={value}" for name, value in values.items()]
            tried(["train", *given], (0, 1, 2), what)
        tried(["evaluate", str(tiny_encoder), "--pairs", str(target)], (0, 2), what)
        shutil.rmtree(pairs)
    report(capfd, "files of pairs", read)


def own_layout(text: str) -> str:
    """Lines of STS-B as the first sentence, the second and the score."""
    rows = (line.split("\t") for line in text.splitlines())
    return "".join("\t".join((*row[5:], row[4])) + "\n" for row in rows)


PARTS: dict[str, Any] = {
    "modules.json": [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {
            "idx": 1,
            "name": "1",
            "path": "1_Pooling",
            "type": "sentence_transformers.models.Pooling",
        },
    ],
    "1_Pooling/config.json": {"word_embedding_dimension": 16, "pooling_mode_mean_tokens": True},
    "sentence_bert_config.json": {"max_seq_length": 32, "do_lower_case": False},
    "config_sentence_transformers.json": {"prompts": {"query": "a "}, "default_prompt_name": None},
}
"""What sentence-transformers writes beside a model."""


@pytest.mark.slow
def test_mutated_encoders_are_read_or_refused(
    folder: Path,
    tried: Tried,
    tiny_encoder: Path,
    tiny_pairs: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    graded, read = folder / "graded.tsv", 0
    graded.write_text(own_layout((tiny_pairs / "sts-test.csv").read_text()))
    for index in range(INPUTS):
        random = Random(f"{SEED}-{index}")
        encoder = folder / f"encoder{index}"
        shutil.copytree(tiny_encoder, encoder)
        (encoder / "1_Pooling").mkdir()
        for name, value in PARTS.items() if random.random() < 0.5 else ():
            (encoder / name).write_text(json.dumps(value))
        files = sorted(path for path in encoder.rglob("*") if path.is_file())
        changed = []
        for path in random.sample(files, random.choice((1, 1, 2))):
            changed.append(str(path.relative_to(encoder)))
            change(random, path)
        what = f"seed {SEED}, encoder {index}: {', '.join(changed)}"
        line = ["evaluate", str(encoder), "--pairs", str(graded)]
        read += tried(line, (0, 1, 2), what)
        shutil.rmtree(encoder)
    report(capfd, "encoder folders", read)


def change(random: Random, path: Path) -> None:
    """Change a file of an encoder: JSON in one part, any in its bytes; or remove it."""
    if path.suffix == ".json" and random.random() < 0.7:
        changed = mutate_json(random, json.loads(path.read_text(encoding="utf-8")))
        path.write_text(json.dumps(changed), encoding="utf-8")
    elif random.random() < 0.8:
        path.write_bytes(mutate_bytes(random, path.read_bytes()))
    else:
        path.unlink()
