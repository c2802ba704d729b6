"""Duration of a training step on long text: SimCSE on whole texts against HiCL on their segments.

    python tests/benchmarks/segments_speed.py CORPUS [--length L] [--batch N] [--steps N]

Lines of CORPUS are joined to documents of more than L tokens. Both methods train all-MiniLM-L6-v2
on the same batches, one step each in turn, so that a slow minute of the machine falls on both.
Printed are the medians of duration and processor time, and the median, least and greatest ratio of
the paired steps; on a machine with other work the processor time is the steadier of the two.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from training_speed import MINILM, UNCOUNTED

from mtdlab.corpus.corpus import open_corpus
from mtdlab.encoders.loading import load_encoder
from mtdlab.methods.registry import make_settings
from mtdlab.settings import TrainerSettings
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import start
from mtdlab.training.state import RunState

Seconds = tuple[float, float]


def documents(corpus: str, length: int) -> Iterator[str]:
    """Consecutive lines joined, as many as give at least `length` tokens."""
    tokenizer = load_encoder(MINILM, 0.0).tokenizer
    lines: list[str] = []
    tokens = 0
    for line in open_corpus(corpus).sentences():
        lines.append(line)
        tokens += len(tokenizer(line, verbose=False)["input_ids"]) - 2
        if tokens >= length:
            yield " ".join(lines)
            lines, tokens = [], 0


def step(state: RunState) -> Seconds:
    """Train one step; its duration, and the processor time of all threads."""
    views = next(state.batches)
    began, used = time.perf_counter(), time.process_time()
    result = state.method(state.step, views)
    result.loss.backward()
    state.optimizer.step()
    state.optimizer.zero_grad()
    state.method.update(state.step, result)
    state.step += 1
    return time.perf_counter() - began, time.process_time() - used


def write_texts(folder: Path, corpus: str, length: int) -> None:
    """The documents, and a few graded pairs: nothing is evaluated, but a run loads some."""
    text = "\n".join(documents(corpus, length)) + "\n"
    (folder / "documents.txt").write_text(text, encoding="utf-8")
    for split in ("dev", "test"):
        (folder / f"{split}.tsv").write_text("a dog\ta cat\t1\na dog\ta dog\t5\na cat\ta cow\t2\n")


def settings_for(method: str, folder: Path, length: int, batch: int) -> TrainerSettings:
    """The method's defaults on documents of `length` tokens."""
    return make_settings(
        method=method,
        encoder=MINILM,
        corpus=str(folder / "documents.txt"),
        evaluation=str(folder),
        max_length=length,
        batch_size=batch,
        device="cpu",
        precision="float32",
    )


def measure(corpus: str, length: int, batch: int, steps: int) -> dict[str, list[Seconds]]:
    """Seconds of each timed step, by method."""
    with tempfile.TemporaryDirectory() as folder:
        write_texts(Path(folder), corpus, length)
        states = {}
        for method in ("simcse", "hicl"):
            settings = settings_for(method, Path(folder), length, batch)
            states[method] = start(settings, load_inputs(settings))
        for state in states.values():
            for _ in range(UNCOUNTED):
                step(state)
        seconds: dict[str, list[Seconds]] = {method: [] for method in states}
        for _ in range(steps):
            for method, state in states.items():
                seconds[method].append(step(state))
    return seconds


def show(kind: str, simcse: list[float], hicl: list[float]) -> None:
    """Print the medians, and the ratio of the paired steps."""
    ratios = [one / other for one, other in zip(simcse, hicl, strict=True)]
    print(
        f"{kind}: SimCSE {median(simcse):.3f} s, HiCL {median(hicl):.3f} s, "
        f"SimCSE / HiCL {median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("corpus")
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20)
    given = parser.parse_args()
    seconds = measure(given.corpus, given.length, given.batch, given.steps)
    print(f"L {given.length}, N {given.batch}, {given.steps} steps each")
    for at, kind in enumerate(("duration", "processor time")):
        show(kind, *([times[at] for times in seconds[name]] for name in ("simcse", "hicl")))


if __name__ == "__main__":
    main()
