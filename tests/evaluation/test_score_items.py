"""A score is that of its items; those that a user's function returns are checked."""

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from test_retrieval import write
from test_senteval import lay_out

from mtdlab.analysis.data.items import ItemScores
from mtdlab.analysis.data.tasks import STS
from mtdlab.encoders.loading import Encoder
from mtdlab.errors import TrialError
from mtdlab.evaluation.items import MOST, Items, own_scores
from mtdlab.evaluation.pairs import SUBSETS, Pairs
from mtdlab.evaluation.retrieval import RetrievalTask
from mtdlab.evaluation.suite import Split
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import train
from mtdlab.trial.results import complete
from tests.analysis.conftest import scores_of
from tests.conftest import WORDS, Settings
from tests.evaluation.conftest import embedder_of

CHANGED = "".join(f'{{"_id": "d{number}", "text": "a bird"}}\n' for number in range(1, 5))


def score_of(items: dict[str, Items]) -> float:
    """The score of one trial, from its items by task."""
    gold = [part.gold for part in items.values() if part.gold is not None]
    scores = ItemScores(
        np.array([0]),
        np.concatenate([part.values for part in items.values()])[None],
        np.concatenate(gold) if gold else None,
        {task: len(part.values) for task, part in items.items()},
        "",
    )
    return float(scores_of(scores)[0])


def test_a_reported_score_is_that_of_its_items(settings_of: Settings, tmp_path: Path) -> None:
    """Of graded pairs, of the mean over several sets of them, of labels and of retrieval."""
    # words that the encoder knows, and no sentence twice, for cosines that differ in float32 too
    random = Random(0)
    texts = [" ".join(random.choices(WORDS, k=4)) for _ in range(36)]
    for number, task in enumerate(STS):
        halves = zip(texts[number : number + 12], texts[number + 12 : number + 24], strict=True)
        folder = lay_out(tmp_path, task, [(f"{at % 6}", *both) for at, both in enumerate(halves)])
        if task == "STSB":
            # dev pairs that are the test pairs are refused
            dev = folder / "sts-dev.csv"
            dev.write_text(dev.read_text().replace(WORDS[0], WORDS[1]).replace(WORDS[2], WORDS[3]))
    for file in lay_out(tmp_path, "SST2").iterdir():
        file.write_text("".join(f"{text}\t{at % 2}\n" for at, text in enumerate(texts[:24])))
    folder = write(tmp_path / "animals")
    settings = settings_of(
        evaluation=str(tmp_path), tasks=f"sts,SST2,beir:{folder}", pooling="mean"
    )
    outcome = train(settings, load_inputs(settings), lambda *_: None)
    expected = {
        "sts_dev": {"sts_dev": 12},
        "sts_test": {"sts_test": 12},
        "SST2": {"SST2": 24},
        "beir:animals": {"beir:animals": 2},
        "sts_average": {task: 12 * len(SUBSETS.get(task, [task])) for task in STS},
    }
    for metric, counts in expected.items():
        result = complete(metric, metric, outcome, {})
        assert result.items.keys() == counts.keys(), metric
        assert score_of(dict(result.items)) == pytest.approx(result.values["score"], abs=1e-3)
        for task, count in counts.items():
            assert len(result.items[task].values) == count, task
    digests = {part.digest for part in outcome.items_of("sts_average").values()}
    assert len(digests) == len(STS)
    assert complete("sts_average", "MR", outcome, {}).items == {}


def test_a_digest_is_that_of_the_items(tmp_path: Path, encoder: Encoder) -> None:
    def digest(folder: Path, split: Split) -> str:
        task = RetrievalTask(f"beir:{folder}", encoder, "")
        [score] = task.score(embedder_of(encoder, "mean"), split)
        assert score.items is not None
        return score.items.digest

    first = Pairs(["a", "b"], ["c", "d"], np.array([1.0, 2]))
    assert first.digest == Pairs(["a", "b"], ["c", "d"], np.array([1.0, 2])).digest
    assert first.digest != Pairs(["a", "b"], ["c", "d"], np.array([1.0, 3])).digest
    assert first.digest != Pairs(["a", "b"], ["c", "e"], np.array([1.0, 2])).digest
    data, other = write(tmp_path / "first"), write(tmp_path / "other", corpus=CHANGED)
    assert digest(data, "test") == digest(data, "test")
    assert len({digest(data, "test"), digest(data, "dev"), digest(other, "test")}) == 3


def own_items(
    given: Any, scores: dict[str, float], metric: str | None, origin: str = "abc"
) -> dict[str, Items]:
    returned = {**scores, "per_item": given}
    return own_scores(returned, "own:f", "scores", origin, metric=metric, unit=100)[1]


def test_items_of_a_function_are_those_of_a_score() -> None:
    scores = {"accuracy": 0.75, "other": 0.5}
    found = own_items([1, 1, 0, 1], scores, "accuracy")
    assert found.keys() == {"accuracy"}
    assert found["accuracy"].values.tolist() == [100, 100, 0, 100]
    elsewhere = own_items([1, 1, 0, 1], scores, "accuracy", "d")
    assert found["accuracy"].digest != elsewhere["accuracy"].digest
    named = own_items({"other": np.array([True, False])}, scores, None)
    assert named["other"].values.tolist() == [100, 0]
    assert own_items(None, scores, None) == {}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("text", "the items of accuracy in per_item are no sequence of numbers; return a list"),
        (0.75, "are no sequence of numbers"),
        ([[1, 0], [1, 1]], "are no sequence of numbers"),
        ([[1], [1, 1]], "are no sequence of numbers"),
        (["1", "0"], "are no sequence of numbers"),
        ([1], "the items of accuracy in per_item are 1; return from 2 to 1,000,000"),
        (np.ones(MOST + 1), "are 1,000,001; return from 2 to 1,000,000"),
        ([1, float("nan")], "item 2 of accuracy in per_item is nan; expected a number within"),
        ([1e300, 1], r"item 1 of accuracy in per_item is 1e\+300; expected a number with"),
        ([1, 0], "accuracy in per_item have mean 0.5, and the score is 0.75; return items whose"),
        ({"f1": [1, 0]}, "has items of 'f1'; the returned scores are accuracy, other"),
    ],
)
def test_other_items_are_refused_in_a_sentence(given: Any, message: str) -> None:
    with pytest.raises(TrialError, match=message):
        own_items(given, {"accuracy": 0.75, "other": 0.5}, "accuracy")


def test_of_several_scores_the_items_are_named() -> None:
    with pytest.raises(
        TrialError, match=r"does not say of which score; return \{'a': \[\.\.\.\]\}"
    ):
        own_items([1, 0], {"a": 0.5, "b": 0.5}, None)
