"""Many mutated study files: each is read or refused in a sentence, soon and in little memory.

MTDLAB_TEST_FILES is their number, MTDLAB_TEST_SEED repeats a run; both are printed.
"""

import os
import resource
import time
from pathlib import Path
from random import Random, SystemRandom

import pytest

from mtdlab.config.reader import read_study
from mtdlab.config.source import SpecError
from tests.config.test_mutations import LIBRARY_WORDS, mutated

FILES = int(os.environ.get("MTDLAB_TEST_FILES", "20000"))
SEED = int(os.environ.get("MTDLAB_TEST_SEED") or SystemRandom().randrange(10**9))
MEGABYTES = 200


@pytest.mark.slow
def test_mutated_files_are_read_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "study.yaml"
    path.write_text("study: a\nsearch: {ema_decay: [0.5, 0.75]}\n", encoding="utf-8")
    # imports what later files need
    read_study(path).search_trials()
    before, read, slowest = peak_megabytes(), 0, 0.0
    for index in range(FILES):
        random = Random(f"{SEED}-{index}")
        path.write_text(mutated(random), encoding="utf-8")
        started, message = time.process_time(), ""
        try:
            assert read_study(path).search_trials()
            read += 1
        except SpecError as error:
            message = str(error)
        except BaseException as error:
            raise AssertionError(f"seed {SEED}, file {index}: {path.read_text()!r}") from error
        slowest = max(slowest, time.process_time() - started)
        assert not LIBRARY_WORDS.search(message), f"seed {SEED}, file {index}: {message}"
    grown = peak_megabytes() - before
    with capsys.disabled():
        print(
            f"\n{FILES} mutated files, seed {SEED}: {read} read, {FILES - read} refused, 0 "
            f"tracebacks; slowest {slowest:.2f} s, {grown:.0f} MB more memory"
        )
    assert grown < MEGABYTES
    # of both kinds, else this says little
    assert FILES // 100 < read < FILES


def peak_megabytes() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
