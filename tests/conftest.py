"""No network, no cache but a temporary one, one thread; and an encoder small enough to train."""

import gc
import multiprocessing
import os
import signal
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import quick_databases

from tests.postgresql import (
    empty_postgresql_url,
    postgresql_server,
    postgresql_template,
    postgresql_url,
)
from tests.shared_places import fail, s3_endpoint, s3_url, shared_url

# others are imported in the fixtures: the process of pytest-xdist that runs no test does without
if TYPE_CHECKING:
    from mtdlab.config.study import StudySpec
    from mtdlab.settings import TrainerSettings

__all__ = [
    "empty_postgresql_url",
    "fail",
    "postgresql_server",
    "postgresql_template",
    "postgresql_url",
    "s3_endpoint",
    "s3_url",
    "shared_url",
]
quick_databases.install()
# imported once by the server that forks the processes of tests
multiprocessing.set_forkserver_preload(["mtdlab.store.store", "mtdlab.trial.slots"])
# ignored where the tests run under nohup or in the background of a script; the tests send them
for number, handler in (
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGINT, signal.default_int_handler),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

Settings = Callable[..., "TrainerSettings"]
SHORT_PROMPTS = {"prompt": "a {sentence} {mask}", "second_prompt": "the {sentence} {mask}"}
"""With long ones all vectors of a random encoder's mask token are equal in float32."""
Written = Callable[..., "StudySpec"]

WORDS = """
a the dog cat man woman bird child runs sleeps eats sings walks reads red old small happy
in on near park house river garden street today slowly quietly again
""".split()  # noqa: SIM905


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Garbage collections are rare and do not visit modules and collected tests, which stay.

    They take a fifth of the processor time otherwise; at the usual thresholds, still a fifteenth.
    """
    gc.disable()
    collected = yield
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()
    return collected


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, object, object]:
    """Fork the server of commands before the first test, if tests that use it were collected."""
    if "forked_commands" not in sys.modules or session.config.option.collectonly:
        return (yield)
    from forked_commands import serving

    with serving():
        return (yield)


def shared_folder(factory: pytest.TempPathFactory, name: str) -> Path:
    """A folder of this run that the processes of pytest-xdist share, for what each would make."""
    base = factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / name
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="session", autouse=True)
def token_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """One thread, and the token cache of this run, not of whoever runs it.

    The parser of the command line is made once, not for each command, which takes 12 ms.
    """
    import torch
    import typer.main

    torch.set_num_threads(1)
    folder = shared_folder(tmp_path_factory, "cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MTDLAB_CACHE", str(folder))
        patch.setattr(typer.main, "get_command", lru_cache(typer.main.get_command))
        yield folder


@pytest.fixture
def figures_not_rendered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compose every figure of a page, but write an empty image: for tests of text and tables.

    Rendering takes most of the time of a page.
    """
    monkeypatch.setattr("mtdlab.analysis.figures.to_svg", lambda _: "<svg></svg>")
    monkeypatch.setattr("mtdlab.analysis.figures.to_png", lambda _: b"\x89PNG\r\n\x1a\n")


@pytest.fixture(scope="session")
def cache_of_few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shared_folder(tmp_path_factory, "cache_of_few")


@pytest.fixture
def figures_not_drawn(
    figures_not_rendered: None,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Figures are not even composed: for tests of commands, which have pages as a result."""
    from matplotlib.figure import Figure

    # the size of a main figure, by which the first screen is laid out
    monkeypatch.setattr(
        "mtdlab.analysis.report.topics.base.compose", lambda *_, **__: Figure(figsize=(7, 3.9))
    )


@contextmanager
def simulating_few(cache: Path) -> Iterator[None]:
    """Simulate critical values from 1,000 tables, not 10,000.

    What is kept of them, in memory and in files, is kept apart from that of other modules.
    """
    from mtdlab.analysis.inference import shapes

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MTDLAB_CACHE", str(cache))
        patch.setattr("mtdlab.analysis.inference.simultaneous._DRAWS", 1_000)
        patch.setattr(shapes, "_cached_tests", lru_cache(shapes._cached_tests.__wrapped__))
        yield


@pytest.fixture(scope="module")
def few_simulated_tables(cache_of_few: Path) -> Iterator[None]:
    """`simulating_few`, for modules that assert no critical value."""
    with simulating_few(cache_of_few):
        yield


@pytest.fixture
def few_simulated_studies(
    few_simulated_tables: None,  # noqa: ARG001
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Few tables, and power from 100 studies, not 1,000: for tests of `plan` without numbers."""
    monkeypatch.setattr("mtdlab.analysis.inference.power._DRAWS", 100)


@pytest.fixture(scope="session")
def tiny_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a random BERT of 2 layers x 16 that knows a few dozen words."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    folder = tmp_path_factory.mktemp("encoder")
    words = folder / "words.txt"
    words.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    tokenizer = BertTokenizer(vocab=str(words), do_lower_case=True)
    words.unlink()
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_sentences() -> list[str]:
    """60 sentences of 3 to 9 known words."""
    random = Random(0)
    return [" ".join(random.choices(WORDS, k=random.randint(3, 9))) for _ in range(60)]


@pytest.fixture(scope="session")
def tiny_corpus(tmp_path_factory: pytest.TempPathFactory, tiny_sentences: list[str]) -> Path:
    """The sentences as a text file."""
    path = tmp_path_factory.mktemp("corpus") / "sentences.txt"
    path.write_text("\n".join(tiny_sentences) + "\n")
    return path


@pytest.fixture(scope="session")
def tiny_pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like STS-B's: pairs that share fewer words the lower their score."""
    folder = tmp_path_factory.mktemp("pairs")
    for seed, split in enumerate(("dev", "test"), 1):
        random = Random(seed)
        lines = []
        for index in range(24):
            first = random.choices(WORDS, k=5)
            changed = index % 6
            second = random.choices(WORDS, k=changed) + first[changed:]
            score = f"{5 - changed}.000"
            lines.append(
                "\t".join(["g", "f", "y", str(index), score, " ".join(first), " ".join(second)])
            )
        (folder / f"sts-{split}.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture(scope="session")
def tiny_inputs(tiny_encoder: Path, tiny_corpus: Path, tiny_pairs: Path) -> dict[str, Any]:
    """What a run reads, as settings."""
    paths = {"encoder": tiny_encoder, "corpus": tiny_corpus, "evaluation": tiny_pairs}
    return {name: str(path) for name, path in paths.items()}


@pytest.fixture(scope="session")
def settings_of(tiny_inputs: dict[str, Any]) -> Settings:
    """Settings of a run of a second, but for what is given."""
    from mtdlab.methods.registry import make_settings

    def settings(**changed: Any) -> "TrainerSettings":
        values = tiny_inputs | {
            "batch_size": 8,
            "steps": 10,
            "evaluate_every": 4,
            "learning_rate": 1e-3,
            "device": "cpu",
            "precision": "float32",
            "max_length": 16,
        }
        if changed.get("method", "mocose") == "mocose":
            values |= {"queue_size": 20, "initial_queue_size": 5}
        return make_settings(**values | changed)

    return settings


@pytest.fixture
def written(tmp_path: Path) -> Written:
    """Write a text to `study.yaml` and read it, with overrides and a profile."""
    from mtdlab.config.reader import read_study

    def write(text: str, *overrides: str, profile: str | None = None) -> "StudySpec":
        path = tmp_path / "study.yaml"
        path.write_text(text)
        return read_study(path, overrides, profile)

    return write


@pytest.fixture
def no_inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in the test's folder; the encoder and texts of a study are not looked for."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mtdlab.trial.trainer.check_inputs", lambda *_, **__: {})
    return tmp_path
