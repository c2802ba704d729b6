"""What a study costs: counted by hand, and against a sweep's own database."""

import json
import shutil
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from mtdlab.config.reader import read_study
from mtdlab.config.study import StudySpec
from mtdlab.corpus import tokens
from mtdlab.corpus.corpus import Corpus, open_corpus
from mtdlab.corpus.lines import Tally
from mtdlab.corpus.tokens import TokenStore, tokenise
from mtdlab.cost import estimate as estimates
from mtdlab.cost import measure as measures
from mtdlab.cost import sample as samples
from mtdlab.cost.measure import Measured, extrapolate, kind_of, measure, time_steps
from mtdlab.cost.sample import Sample, take_sample
from mtdlab.device import Device
from mtdlab.encoders.loading import load_encoder
from mtdlab.errors import MtdlabError
from mtdlab.methods.registry import make_settings
from mtdlab.settings import TrainerSettings
from mtdlab.sweep.run import Execution, sweep
from mtdlab.training.inputs import check_inputs, load_inputs
from mtdlab.trial.signals import StopRequest


@pytest.fixture
def tiny(tiny_encoder: Path, tiny_corpus: Path, tiny_pairs: Path) -> TrainerSettings:
    return make_settings(
        encoder=str(tiny_encoder),
        corpus=str(tiny_corpus),
        evaluation=str(tiny_pairs),
        batch_size=8,
        queue_size=16,
        initial_queue_size=4,
        learning_rate=1e-3,
        steps=6,
        evaluate_every=3,
    )


@pytest.fixture
def study(tiny: TrainerSettings, tmp_path: Path) -> StudySpec:
    names = ("encoder", "corpus", "evaluation", "initial_queue_size", "steps", "evaluate_every")
    trainer = tiny.model_dump(include={*names, "learning_rate"})
    # a sweep wants one batch of the default's size
    trainer["corpus"] = str(tmp_path / "corpus.txt")
    Path(trainer["corpus"]).write_text(2 * Path(tiny.corpus).read_text())
    path = tmp_path / "study.yaml"
    path.write_text(
        f"study: tiny\ntrainer: {json.dumps(trainer)}\n"
        "search: {batch_size: [4, 16], queue_size: [16], ema_decay: [0.5, 0.9]}\nseeds: [0, 1]\n"
    )
    return read_study(path)


SAMPLE = Sample(
    Path(),
    "",
    {"dev": 100, "last": 100, "test": 200, "all": 1300, "sts_average": 500},
    load=10.0,
    tokenise=50.0,
)


def test_the_tokens_of_a_trials_evaluations_by_hand() -> None:
    """Three evaluations on 100 tokens, a last look at the test pairs and at the tasks."""
    assert SAMPLE.encoded(make_settings(steps=10, evaluate_every=4)) == 3 * 100 + 200 + 1000


def test_choosing_on_test_looks_at_test_more_often() -> None:
    dev, test, last = (
        SAMPLE.encoded(make_settings(steps=10, evaluate_every=5, select_on=on))
        for on in ("dev", "test", "last")
    )
    assert last == dev
    # two evaluations of 100 more tokens, one last look of 100 less
    assert test - dev == 100


def test_choosing_on_the_average_looks_at_all_its_sets() -> None:
    """Three evaluations of 500 tokens, a last look at dev and test and at the tasks."""
    trial = make_settings(steps=10, evaluate_every=4, select_on="sts_average")
    assert SAMPLE.encoded(trial) == 3 * 500 + 100 + 200 + 1000


def test_the_sets_of_an_average_are_counted(tiny: TrainerSettings, tmp_path: Path) -> None:
    folder, sample = tmp_path / "senteval", tmp_path / "sample"
    sample.mkdir()
    shutil.copytree(tiny.evaluation, folder / "STS" / "STSBenchmark")
    settings = tiny.model_copy(update={"evaluation": str(folder)})
    trials = [settings.model_copy(update={"select_on": "sts_average"})]
    tokens = take_sample(trials, sample).tokens
    assert tokens["sts_average"] == tokens["test"] > 0


def test_workers_share_trials_as_they_come() -> None:
    """Trials of 100, 1, 1 seconds on two workers: the second does both short ones meanwhile."""
    assert estimates.share([100.0, 1.0, 1.0], 2) == 100
    assert estimates.share([100.0, 1.0, 1.0], 1) == 102


def test_kinds_differ_by_what_a_step_costs() -> None:
    base = make_settings()
    same: list[dict[str, Any]] = [
        *({"ema_decay": 0.5}, {"seed": 7}, {"steps": 3}, {"learning_rate": 1.0}),
        *({"fgsm_epsilon": 1e-8}, {"initial_queue_size": 0}, {"temperature": 0.1}),
    ]
    sizes = [{"batch_size": 32}, {"queue_size": 1024}, {"max_length": 16}, {"prediction_dim": 3}]
    other: list[dict[str, Any]] = [
        *({"fgsm_epsilon": 0.0}, {"fgsm_gradient": "current"}, {"max_gradient_norm": 1.0}),
        *({"augmentation": "position-shuffle"}, {"queue_clusters": 5}, {"method": "simcse"}),
    ]
    changed = [*sizes, {"predictor_hidden_dim": 3}, *other]
    assert {kind_of(base.model_copy(update=change)) for change in same} == {kind_of(base)}
    kinds = {kind_of(base.model_copy(update=change)) for change in changed}
    assert len(kinds | {kind_of(base)}) == len(changed) + 1


def test_a_checkpoint_holds_the_momentum_encoder_too_where_there_is_one() -> None:
    assert make_settings().encoder_copies == 2
    assert make_settings(method="simcse").encoder_copies == 1


def test_a_step_with_another_batch_follows_from_two_that_were_timed() -> None:
    """Three seconds of its own and one a sentence, 2 bytes of its own and 10 a sentence."""
    one, five = (np.array([3.0 + size, 2.0 + 10 * size, 0.0]) for size in (1, 5))
    # half way between the line through both, 13, and proportion to the larger, 16
    assert extrapolate(1, one, 5, five, 10).tolist() == pytest.approx([14.5, 102.0, 0.0])
    assert extrapolate(1, one, 5, five, 5).tolist() == pytest.approx(five.tolist())
    # nothing but the first batch fitted into the time: 4 and 16
    assert extrapolate(1, one, 1, one, 4).tolist() == pytest.approx([10.0, 12.0, 0.0])
    # a smaller step that took longer says nothing about a constant cost: 2 and 4
    slow, fast = np.array([3.0, 5.0, 0.0]), np.array([2.0, 5.0, 0.0])
    assert extrapolate(1, slow, 2, fast, 4).tolist() == pytest.approx([3.0, 5.0, 0.0])


def test_the_first_step_is_left_out(tiny: TrainerSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes 30 s, since kernels are built in it, and those after it 1 s."""
    times = iter([30.0, 31.0, 32.0])
    monkeypatch.setattr(measures, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    assert time_steps(tiny, load_inputs(tiny), 1.5, StopRequest()) == pytest.approx(1.0)


def test_a_step_is_repeated_for_the_time_that_there_is(
    tiny: TrainerSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([0.0, 1.0, 4.0, 5.0, 6.0, 7.0])
    monkeypatch.setattr(measures, "time", SimpleNamespace(perf_counter=lambda: next(times)))
    assert time_steps(tiny, load_inputs(tiny), 5.5, StopRequest()) == pytest.approx(1.5)


def timed(monkeypatch: pytest.MonkeyPatch, cost: Any) -> list[int]:
    """Steps that take what `cost` says, without being run; returns the batches asked for."""
    asked, now = list[int](), 0.0

    def read_clock() -> float:
        nonlocal now
        now += 0.1
        return now

    def time_steps(settings: TrainerSettings, _: object, seconds: float, *__: object) -> float:
        nonlocal now
        asked.append(settings.batch_size)
        now += max(measures.FEWEST * cost(settings), seconds)
        return float(cost(settings))

    monkeypatch.setattr(measures, "time", SimpleNamespace(perf_counter=read_clock))
    monkeypatch.setattr(measures, "time_steps", time_steps)
    return asked


def run_measure(kinds: list[TrainerSettings], folder: Path) -> Measured:
    sample, values = take_sample(kinds[:1], folder), [kind.model_dump() for kind in kinds]
    return measure((), values, sample, StopRequest())


def test_fast_steps_are_measured_as_they_are(
    tiny: TrainerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = timed(monkeypatch, lambda settings: settings.batch_size * 1e-4)
    kinds = [tiny.model_copy(update={"batch_size": size}) for size in (4, 8, 16)]
    found = run_measure(kinds, tmp_path)
    assert found.steps == {
        kind_of(kind): pytest.approx(cost)
        for kind, cost in zip(kinds, (4e-4, 8e-4, 16e-4), strict=True)
    }
    # each with its own batch, after the first quick ones
    assert asked == [4, 16, 4, 8, 4, 4]


def test_a_slow_step_follows_from_smaller_batches(
    tiny: TrainerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.3 s and 0.02 s a sentence: a step of 512 is never run."""
    asked = timed(monkeypatch, lambda settings: 0.3 + 0.02 * settings.batch_size)
    # 1 GB of a GPU and 10 MB a sentence
    monkeypatch.setattr(Device, "gpu_memory", lambda _: 1_000_000_000 + 10_000_000 * max(asked))
    kinds = [tiny.model_copy(update={"batch_size": size}) for size in (256, 512)]
    found = run_measure(kinds, tmp_path)
    assert found.gpu_memory == pytest.approx(1e9 + 512e7, rel=0.05)
    for kind in kinds:
        cost = 0.3 + 0.02 * kind.batch_size
        assert cost < found.steps[kind_of(kind)] < 1.5 * cost
    assert max(asked) < 128


def test_other_words_are_looked_at_each(
    tiny: TrainerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cost(settings: TrainerSettings) -> float:
        return settings.batch_size * (3e-3 if settings.augmentation != "none" else 1e-3)

    timed(monkeypatch, cost)
    shuffled = tiny.model_copy(update={"augmentation": "position-shuffle"})
    found = run_measure([tiny, shuffled], tmp_path)
    costs = {kind_of(tiny): 8e-3, kind_of(shuffled): 24e-3}
    assert found.steps == pytest.approx(costs)


def test_an_estimate_is_the_sum_of_what_was_measured(
    study: StudySpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two workers with steps of 1 and 3 s, on average 2 s, and 0.01 s for a token."""
    kinds, token = {kind_of(trial) for trial in estimates.trials_of(study)}, study.fixed().encoder
    measured = [
        Measured(
            104.0,
            dict.fromkeys(kinds, seconds),
            {token: 0.01},
            *(100, 0, 30, 10),
            encoders={},
        )
        for seconds in (1.0, 3.0)
    ]
    monkeypatch.setattr(estimates, "time", SimpleNamespace(time=lambda: 100.0))
    monkeypatch.setattr(estimates, "take_sample", lambda *_: SAMPLE)
    monkeypatch.setattr(estimates, "call_in_forks", lambda *_: measured)
    monkeypatch.setattr(estimates, "ForkServer", lambda *_: SimpleNamespace(close=lambda: None))
    found = estimates.estimate(study, jobs=2)
    # imported once for all; the sweep and a worker open; tokens are made once; a worker scores
    assert found.start == pytest.approx(4 + 2 * 10 + 50 + 13)
    # six steps, two evaluations, a last look at the test pairs and at the tasks
    assert found.evaluation == pytest.approx(2 * 1 + 2 + 10)
    assert found.trial == pytest.approx((6 * 2 + 14, 6 * 2 + 14))
    # eight trials on two workers
    assert found.seconds == pytest.approx((found.start + 4 * 26, found.start + 4 * 26))
    # two checkpoints of two copies of the trained weights; a model has the others once
    assert found.worker_memory == 100 + 2 * 2 * 10
    assert found.model == 2 * 10 + 20 + estimates.TOKENIZER


def test_real_steps_grow_with_the_batch(
    tiny: TrainerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In processor time: by the clock, a pause of this process can be longer than a step."""
    monkeypatch.setattr(measures, "time", SimpleNamespace(perf_counter=time.process_time))
    corpus = tmp_path / "larger.txt"
    corpus.write_text(16 * Path(tiny.corpus).read_text())
    larger = tiny.model_copy(update={"corpus": str(corpus)})
    kinds = [larger.model_copy(update={"batch_size": size}) for size in (2, 480)]
    monkeypatch.setattr(measures, "STEADY_SECONDS", 0.2)
    found = run_measure(kinds, tmp_path)
    # a factor of 240 in work, 8 in time: most of a step of few sentences does not depend on them
    small, large = (found.steps[kind_of(kind)] for kind in kinds)
    assert 0 < small < large < 10
    assert 0 < found.token[tiny.encoder] < 1e-2
    assert found.memory > 50e6


def test_a_sample_knows_the_whole(tiny: TrainerSettings, tmp_path: Path) -> None:
    # tokenises the corpus, whichever tests ran before
    check_inputs(tiny)
    sample = take_sample([tiny], tmp_path)
    inputs = load_inputs(tiny)
    dev, test = (sum(map(len, task.sentences.tokens)) for task in (inputs.dev, inputs.test))
    assert sample.tokens == {"dev": dev, "last": dev, "test": test, "all": dev + test}
    assert sample.tokenise == 0.0
    assert (tmp_path / "sentences.txt").read_text() == Path(tiny.corpus).read_text()


def test_a_sample_of_pairs_is_of_pairs(tiny: TrainerSettings, tmp_path: Path) -> None:
    """So that the steps that are timed read two texts."""
    path = tmp_path / "pairs.tsv"
    path.write_text("a dog runs\tthe dog\n\tempty\n" + "a cat\tthe cat sleeps\n" * 60)
    settings = tiny.model_copy(update={"corpus": f"pairs:{path}"})
    (tmp_path / "sample").mkdir()
    sample = take_sample([settings], tmp_path / "sample")
    assert sample.corpus == f"pairs:{tmp_path / 'sample' / 'pairs.txt'}"
    assert Path(sample.corpus.removeprefix("pairs:")).read_text() == path.read_text().replace(
        "\tempty\n", ""
    )
    assert len(load_inputs(sample.of(settings)).views) == 2


def test_tokens_that_are_not_made_yet_take_time(
    tiny: TrainerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, now = tmp_path / "long.txt", 0.0

    def write(part: Corpus, *arguments: Any) -> Tally:
        nonlocal now
        now += 1e-3 * sum(1 for _ in part.sentences())
        return original(part, *arguments)

    original = tokens._write
    monkeypatch.setattr(tokens, "_write", write)
    monkeypatch.setattr(samples, "time", SimpleNamespace(perf_counter=lambda: now))
    corpus.write_text("a dog runs\n" * 50_000)
    settings = tiny.model_copy(update={"corpus": str(corpus)})
    (tmp_path / "sample").mkdir()
    whole = take_sample([settings], tmp_path / "sample").tokenise
    # a millisecond a sentence; the share of the file is known to a block
    assert whole == pytest.approx(50, rel=0.1)
    encoder = load_encoder(tiny.encoder, 0.1)
    tokenise(open_corpus(str(corpus)), encoder.tokenizer, tiny.max_length)
    assert take_sample([settings], tmp_path / "sample").tokenise == 0


def test_every_view_of_a_method_is_tokenised(
    tiny: TrainerSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The original text, the same repeated, and the repeated text in documents."""
    corpus = tmp_path / "views.txt"
    corpus.write_text("a dog runs\na cat sleeps\n" * 40)
    chosen = {"corpus": str(corpus), "augmentation": "repetition:0.3"}
    trials = [
        make_settings(**tiny.model_dump(include={"encoder", "evaluation"}), **chosen, method=name)
        for name in ("simcse", "contriever")
    ]
    seen = []

    def record(corpus: Corpus, *arguments: Any) -> TokenStore:
        seen.append(corpus.name.partition(", ")[2])
        return tokenise(corpus, *arguments)

    monkeypatch.setattr(samples, "tokenise", record)
    assert take_sample(trials, tmp_path).tokenise > 0
    assert sorted(seen) == ["", "documents", "documents, repetition:0.3", "repetition:0.3"]
    seen.clear()
    check_inputs(trials[0], batch_size=8)
    take_sample(trials, tmp_path)
    assert sorted(seen) == ["documents", "documents, repetition:0.3"]


@pytest.mark.slow
def test_a_study_is_estimated_as_it_then_runs(
    study: StudySpec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = estimates.estimate(study, jobs=1)
    assert (found.trials, found.workers) == (8, 1)
    assert found.threads == max(1, torch.multiprocessing.cpu_count())
    assert 0 < found.trial[0] <= found.trial[1]
    assert found.memory > found.worker_memory > 50e6
    result = sweep(study, f"sqlite:///{tmp_path / 'a.db'}", Execution(jobs=1))
    assert result.counts == {"COMPLETE": 8}
    assert found.database == pytest.approx((tmp_path / "a.db").stat().st_size, rel=0.3)


def test_a_study_that_samples_is_estimated_from_draws(study: StudySpec, tmp_path: Path) -> None:
    path = tmp_path / "drawn.yaml"
    path.write_text(
        "study: a\nsampler: random\ntrials: 20\nmetric: sts_dev\nseeds: [0, 1]\n"
        "search: {batch_size: {low: 4, high: 64}, initial_queue_size: {low: 8, high: 900}}\n"
    )
    sizes = [trial.batch_size for trial in estimates.trials_of(read_study(path))]
    # queues below 128 cannot take the default's random start
    assert len(sizes) == 40
    assert 5 < len(set(sizes)) < estimates.SAMPLED_CONFIGURATIONS
    assert 4 <= min(sizes) < np.mean(sizes) < max(sizes) <= 64
    path.write_text(path.read_text().replace("low: 8", "low: 513"))
    with pytest.raises(MtdlabError, match="none of 30 settings drawn can be trained"):
        estimates.trials_of(read_study(path))
    assert len(estimates.trials_of(study)) == 8


def test_what_is_not_there_is_said(tiny: TrainerSettings, tmp_path: Path) -> None:
    with pytest.raises(MtdlabError, match="encoder no/such: neither a folder here nor"):
        take_sample([tiny.model_copy(update={"encoder": "no/such"})], tmp_path)
