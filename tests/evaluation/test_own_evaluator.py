"""A user's function as the metric: its contract, what it sees, and what is refused."""

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from mtdlab.config.reader import read_study
from mtdlab.config.source import SpecError
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.external import score_external
from mtdlab.methods.user_modules import ensure_imported, import_evaluator, present_evaluator
from mtdlab.training.inputs import check_inputs, load_inputs
from mtdlab.training.loop import train
from tests.conftest import Settings
from tests.evaluation.conftest import embedder_of
from tests.training.test_resume import assert_resumes

Named = Callable[..., str]
TEXTS = """
import numpy as np
import torch

TEXTS = {"dev": ["a dog runs", "the cat", "a bird"], "test": ["the red house", "a cat", "old man"]}

def spread(vectors):
    assert vectors.shape == (3, 16) and vectors.dtype == np.float32
    return float(1 - np.corrcoef(vectors)[0, 1])
"""
SPLIT = f"""{TEXTS}
def score(encode, split):
    torch.rand(1)  # must not change what the training draws
    return {{"spread": spread(encode(TEXTS[split])), "constant": 0.25}}
"""
ALONE = f"""{TEXTS}
def score(encode):
    return {{"spread": spread(encode(TEXTS["test"]))}}
"""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    import_evaluator(None)


@pytest.fixture
def named(tmp_path: Path, request: pytest.FixtureRequest) -> Named:
    """Writes a module of a name of its own and imports its function `score`."""

    def write(text: str, function: str = "score") -> str:
        path = tmp_path / f"metric_{abs(hash((request.node.name, text)))}.py"
        path.write_text(text)
        import_evaluator(f"{path}:{function}")
        return str(path)

    return write


def test_a_function_of_a_split_selects_on_dev_and_reports_test(
    named: Named, settings_of: Settings
) -> None:
    named(SPLIT)
    settings = settings_of(
        tasks="evaluator", select_on="evaluator:spread:dev", evaluate_every=2, dropout=0.3
    )
    outcome = train(settings, load_inputs(settings), lambda *_: None)
    scores = outcome.after.by_name()
    seen = [float(value) for value in outcome.curve["score"] if math.isfinite(value)]
    assert scores["evaluator:spread:dev"] == pytest.approx(max(seen))
    assert outcome.best_step == 2 * (1 + seen.index(max(seen)))
    assert scores["evaluator:constant"] == scores["evaluator:constant:dev"] == 25
    assert outcome.score_of("evaluator:spread")[0] == scores["evaluator:spread"]
    assert outcome.score_of("evaluator:spread")[1] != scores["evaluator:spread"]
    assert scores["evaluator:spread"] != scores["evaluator:spread:dev"]


def test_a_function_of_encode_alone_is_reported_and_never_selects(
    named: Named, settings_of: Settings
) -> None:
    named(ALONE)
    settings = settings_of(tasks="evaluator")
    scores = train(settings, load_inputs(settings), lambda *_: None).after.by_name()
    assert "evaluator:spread" in scores
    assert not any(name.startswith("evaluator") and name.endswith(":dev") for name in scores)
    settings = settings_of(tasks="evaluator", select_on="evaluator:spread:dev")
    with pytest.raises(MtdlabError, match=r"no dev data; .* second argument, split, to the fun"):
        check_inputs(settings)


def test_its_items_are_recorded_with_the_metric(named: Named, settings_of: Settings) -> None:
    named("""
def score(encode, split):
    return {"good": 0.5, "other": 0.25, "per_item": {"good": [1, 0, 0.5]}}
""")
    # inputs of their own: loaded ones have the function of another test
    settings = settings_of(tasks="evaluator", max_length=15)
    outcome = train(settings, load_inputs(settings), lambda *_: None)
    [items] = outcome.items_of("evaluator:good").values()
    assert (items.kind, items.values.tolist()) == ("mean", [100, 0, 50])
    assert outcome.items_of("evaluator:other") == {}


def test_it_does_not_change_the_training(named: Named, settings_of: Settings) -> None:
    named(SPLIT)
    plain, with_it = settings_of(), settings_of(tasks="evaluator")
    losses = [
        list(train(settings, load_inputs(settings), lambda *_: None).curve["loss"])
        for settings in (plain, with_it)
    ]
    assert losses[0] == losses[1]
    inputs = load_inputs(with_it)
    state = torch.get_rng_state()
    assert len(score_external(embedder_of(inputs.encoder), inputs.external)) == 4
    assert torch.equal(state, torch.get_rng_state())


def test_a_run_that_it_selects_resumes_with_the_same_bits(
    named: Named, settings_of: Settings, tmp_path: Path
) -> None:
    named(SPLIT)
    settings = settings_of(tasks="evaluator", select_on="evaluator:spread:dev", evaluate_every=3)
    assert_resumes(settings, (5,), tmp_path / "checkpoints")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 0.5", "returned a value of type float; expected a dict of floats by name, such"),
        ("return {}", "returned no score; expected a dict of floats"),
        ("return {'a': float('nan')}", "returned a nan; expected a finite number"),
        (
            "return {'a': -1e308}",
            r"returned 'a', which is -1.000e\+308; numbers within 1e\+30 of 0",
        ),
        (
            "return {'a': 10**5000}",
            r"returned 'a', which is 1.000e\+5000; numbers within 1e\+30 of",
        ),
        ("return {'a': 'good'}", "returned 'a': a value of type str; expected a dict"),
        ("return {'a': True}", "returned 'a': a value of type bool; expected"),
        ("return {1: 0.5}", "returned 1: a value of type float; expected a dict"),
        ("return {'a:b': 0.5}", "returned a score named 'a:b'"),
        ("return {'a': 1 / 0}", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "py:score: SystemExit: 3"),
        ("raise GeneratorExit", "py:score: GeneratorExit"),
        ("return {'a': encode('text')}", "TypeError: encode takes a list of texts"),
        ("return {'per_item': [1, 0]}", "returned no score; expected"),
        ("return {'a': 0.5, 'per_item': [1, 1]}", "items of a in per_item have mean 1, and the sc"),
        ("return {'other': 0.5}", r"evaluator:mine: the function .* no such score; did you mean"),
    ],
)
def test_what_it_returns_is_checked_on_the_untrained_encoder(
    named: Named, settings_of: Settings, body: str, message: str
) -> None:
    named(f"def score(encode):\n    {body}\n")
    with pytest.raises(MtdlabError, match=message):
        check_inputs(settings_of(tasks="evaluator"), scores=["evaluator:mine"])


def test_a_new_study_does_not_scale_a_score_in_a_unit_of_its_own(
    named: Named, settings_of: Settings
) -> None:
    named("def score(encode):\n    return {'mine': 3.2, 'share': -1.0000001}\n")
    settings = settings_of(tasks="evaluator")
    with pytest.raises(MtdlabError, match=r"evaluator:mine: .* returns 3\.2, and scores are"):
        check_inputs(settings, scores=["evaluator:mine"], is_new=True)
    check_inputs(settings, scores=["evaluator:share"], is_new=True)
    # begun when it was scaled
    check_inputs(settings, scores=["evaluator:mine"])
    lower = settings_of(tasks="evaluator:-mine")
    check_inputs(lower, scores=["evaluator:-mine"], is_new=True)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("x", "--evaluator x: it is spelled MODULE:FUNCTION, such as my_metric.py:score"),
        ("gone.py:score", "--evaluator gone.py: no such file"),
        ("builtins:len", "--evaluator builtins: builtins is no module of Python files; name one"),
        ("no_such_module:score", "--evaluator no_such_module: no file no_such_module"),
        ("FILE:gone", "has no function gone; choose from"),
        ("FILE:number", "has no function number; "),
        ("FILE:many", r"takes \(a, b, c\); it must take \(encode\), or \(encode, split\)"),
    ],
)
def test_what_it_names_is_checked(tmp_path: Path, name: str, message: str) -> None:
    path = tmp_path / "my_metric.py"
    path.write_text("number = 1\ndef score(encode): ...\ndef many(a, b, c): ...\n")
    with pytest.raises(MtdlabError, match=message):
        import_evaluator(name.replace("FILE", str(path)))
    assert present_evaluator() is None


STUDY = "study: a\nmetric: evaluator:spread\nsearch: {ema_decay: [0.5, 0.9]}\n"


def test_a_study_with_it_names_it_and_records_its_content(named: Named, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(STUDY)
    with pytest.raises(SpecError, match="evaluator:spread needs a function; name it with --eval"):
        read_study(file)
    named(ALONE)
    alone = read_study(file)
    assert (alone.select_by, alone.fixed().select_on) == ("sts_dev", "dev")
    named(SPLIT)
    spec = read_study(file)
    assert (spec.select_by, spec.fixed().select_on) == ("evaluator:spread:dev",) * 2
    assert spec.fixed().tasks == "evaluator"
    assert spec.imports != alone.imports
    assert [*spec.imports] == ["evaluator score"]


def test_a_changed_function_is_refused_in_a_worker(named: Named, tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text(STUDY)
    path = named(ALONE)
    [module] = read_study(file).user_modules
    import_evaluator(None)
    ensure_imported([module])
    assert present_evaluator() == module
    from mtdlab.user_code import execute

    Path(path).write_text(SPLIT)
    execute.cache_clear()
    with pytest.raises(MtdlabError, match=r"--evaluator .*: changed while the sweep was running"):
        ensure_imported([module])
