"""SentEval classification: accuracy of a logistic regression on frozen sentence vectors.

SentEval's protocol in its scikit-learn form (`tools/validation.py`): stratified folds, shuffled
with seed 1111; the strength C that is best on held-out folds, among powers of two; accuracy.
Its scikit-learn was of 2018 (liblinear, one class against the rest); here lbfgs and, for TREC, a
softmax. docs/how-to/evaluate-an-encoder.md compares it with SentEval's PyTorch form.

Letters: P sentences or pairs, D features, C strengths. Imports no torch: every worker process
imports this module.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, cpu_count, delayed, parallel_config
from numpy.typing import NDArray

Features = NDArray[np.float64]
Labels = NDArray[np.int64]
Rows = NDArray[np.intp]
Correct = NDArray[np.bool_]
"""Whether each example's class was found, (P,)."""
FOLDS, SEED, MOST_STEPS = 10, 1111, 2000
NESTED: list[float] = [2.0**power for power in range(-2, 4)]
"""SentEval's strengths for tasks without a split, and for those with a dev split."""
HELD_OUT: list[float] = [2.0**power for power in range(-1, 6)]
"""SentEval's strengths for tasks with train and test."""


@dataclass(frozen=True)
class Examples:
    """Features (P, D) and classes (P,)."""

    features: Features
    labels: Labels


@dataclass(frozen=True)
class _Job:
    """A fit on some rows that is checked on others, once for each strength."""

    fit: Rows
    check: Rows
    strengths: list[float]


Advance = Callable[[int, int], None]
"""Called after every fit with the number of those done, and of all."""


def nested_accuracy(data: Examples, advance: Advance) -> tuple[float, Correct]:
    """Mean accuracy x 100 over ten folds; each chooses its strength by ten folds of its own.

    Folds differ by some examples in size, and the score by some hundredths from the share of the
    examples that are correct.
    """
    outer = _folds(data.labels, np.arange(len(data.labels)), NESTED)
    inner = [job for fold in outer for job in _folds(data.labels, fold.fit, NESTED)]
    total = len(inner) + len(outer)
    searched = _run(data, inner, advance, 0, total)
    by_fold = _accuracies(searched).reshape(len(outer), FOLDS, -1)
    final = [
        replace(job, strengths=[_best(accuracies, NESTED)])
        for job, accuracies in zip(outer, by_fold, strict=True)
    ]
    runs = _run(data, final, advance, len(inner), total)
    correct = np.empty(len(data.labels), dtype=np.bool_)
    for job, [checked] in zip(final, runs, strict=True):
        correct[job.check] = checked
    return 100 * float(np.mean(_accuracies(runs))), correct


def split_accuracy(parts: Sequence[Examples], advance: Advance) -> tuple[float, Correct]:
    """Accuracy x 100 on the last part; the strength is chosen on dev, or by folds of train."""
    data = Examples(
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.labels for part in parts]),
    )
    sizes = np.cumsum([len(part.labels) for part in parts])
    fit, rest = np.arange(sizes[0]), np.arange(sizes[-2], sizes[-1])
    jobs = [_Job(fit, np.arange(sizes[0], sizes[1]), NESTED)]
    if len(parts) == 2:
        jobs = _folds(data.labels, fit, HELD_OUT)
    total = len(jobs) + 1
    best = _best(_accuracies(_run(data, jobs, advance, 0, total)), jobs[0].strengths)
    [[correct]] = _run(data, [_Job(fit, rest, [best])], advance, len(jobs), total)
    return 100 * float(np.mean(correct)), correct


def _folds(labels: Labels, rows: Rows, strengths: list[float]) -> list[_Job]:
    # scikit-learn is imported where it is used: it takes half a second, and few studies need it
    from sklearn.model_selection import StratifiedKFold

    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    folds = splitter.split(np.zeros(len(rows)), labels[rows])
    return [_Job(rows[fit], rows[check], strengths) for fit, check in folds]


def _best(accuracies: NDArray[np.float64], strengths: list[float]) -> float:
    """The first strength with the best mean over folds (F, C), to SentEval's two decimals."""
    return strengths[int(np.argmax(np.round(100 * accuracies.mean(axis=0), 2)))]


def _run(
    data: Examples, jobs: list[_Job], advance: Advance, done: int, total: int
) -> list[list[Correct]]:
    """For each job and strength, which of the checked rows are correct."""
    results = []
    # one thread each: the products are small, and more threads would compete for the cores
    with parallel_config("loky", n_jobs=min(len(jobs), cpu_count()), inner_max_num_threads=1):
        runs = Parallel(return_as="generator")(delayed(_check)(data, job) for job in jobs)
        for correct in runs:
            results.append(correct)
            advance(done + len(results), total)
    return results


def _accuracies(runs: list[list[Correct]]) -> NDArray[np.float64]:
    """The share of correct rows of each job and strength, (J, C)."""
    return np.array([[float(np.mean(correct)) for correct in run] for run in runs])


def _check(data: Examples, job: _Job) -> list[Correct]:
    """Which checked rows are correct for each strength; a fit starts where the last one ended."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(max_iter=MOST_STEPS, warm_start=True)
    features, labels = data.features[job.fit], data.labels[job.fit]
    checked, expected = data.features[job.check], data.labels[job.check]
    results = []
    for strength in job.strengths:
        model.set_params(C=strength).fit(features, labels)
        results.append(model.predict(checked) == expected)
    return results
