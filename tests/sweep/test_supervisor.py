"""What a sweep makes of what it reads: deaths, errors, signals, phases, notes, limits."""

import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from stub_store import begin_trial, claim_trial, end_trial

from mtdlab.config.reader import parse_study
from mtdlab.config.study import StudySpec
from mtdlab.errors import MtdlabError, StorageError, TrialError
from mtdlab.store.claims import Result
from mtdlab.store.owner import this_process
from mtdlab.store.progress import ProgressReader
from mtdlab.store.store import Store, record_error
from mtdlab.sweep import fork_server
from mtdlab.sweep.engine import Death, Engine, Work
from mtdlab.sweep.open_study import open_study
from mtdlab.sweep.supervisor import Supervisor
from mtdlab.terminal import following_phases
from mtdlab.trial import worker
from mtdlab.trial.signals import StopRequest
from mtdlab.trial.study import Job, OpenStudy
from mtdlab.trial.worker import report_error

SPEC = parse_study("a", "study: a\ntrainer: {steps: 4}\nsearch: {ema_decay: [0.5, 0.75]}\n", [])
COMPLETE = Result("COMPLETE", values={"score": 1.0})


class NoWorkers(Engine):
    """Workers that do what the test gives, one deed at each start; then the sweep is stopped."""

    def __init__(self, *deeds: Callable[[Work], None]) -> None:
        self.deeds, self.told = list(deeds), list[Death]()
        self.shown = list[str]()

    @property
    def count(self) -> int:
        """None runs."""
        return 0

    def start(self, wanted: int, work: Work) -> None:
        """Do the next deed."""
        assert wanted == 1
        if self.deeds:
            self.deeds.pop(0)(work)
        else:
            work.stop.request()

    def deaths(self) -> list[Death]:
        """Those that the test tells."""
        told, self.told = self.told, []
        return told

    def stop(self) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """Nothing is held."""

    def wait(self, seconds: float) -> None:
        """Waits for nothing."""


def supervised(spec: StudySpec, store: Store, engine: Engine, folder: Path) -> Supervisor:
    """The supervisor of a sweep of a recorded study."""
    study = OpenStudy(Job(spec, store.database.url, folder), store)
    return Supervisor(Work(study, store.begin_sweep(this_process()), StopRequest()), engine)


@pytest.fixture
def store(url: str) -> Store:
    """Of the study of two trials."""
    return open_study(SPEC, url)


@pytest.fixture
def run(store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Run a sweep whose workers do as given; what it prints."""

    def call(*deeds: Callable[[Work], None], engine: NoWorkers | None = None) -> str:
        supervised(SPEC, store, engine or NoWorkers(*deeds), tmp_path).run()
        return capsys.readouterr().err

    return call


def die_without_a_trial(engine: NoWorkers, *deaths: Death) -> Sequence[Callable[[Work], None]]:
    return [lambda _, death=death: engine.told.append(death) for death in deaths]


def test_workers_that_die_while_they_start_end_the_sweep(run: Callable[..., str]) -> None:
    engine = NoWorkers()
    engine.deeds += die_without_a_trial(engine, *[Death("signal 9: Killed", 1, -9)] * 3)
    with pytest.raises(TrialError, match=r"workers end while they start \(signal 9: Killed\)"):
        run(engine=engine)


def test_a_trial_that_ends_in_between_says_that_workers_start(
    run: Callable[..., str], store: Store
) -> None:
    engine = NoWorkers()
    death = Death("signal 9: Killed", 1, -9)

    def end(work: Work) -> None:
        assert store.finish(store.claim(this_process(), work.sweep), COMPLETE)

    engine.deeds += die_without_a_trial(engine, death, death)
    engine.deeds += [end, *die_without_a_trial(engine, death, death)]
    assert run(engine=engine).count("a worker process died (signal 9: Killed)") == 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_a_worker_stops_the_sweep(
    store: Store, tmp_path: Path, number: signal.Signals
) -> None:
    engine = NoWorkers()
    engine.deeds += die_without_a_trial(engine, Death("", 1, 128 + number))
    supervisor = supervised(SPEC, store, engine, tmp_path)
    supervisor.run()
    assert supervisor._stop.exit_code == 128 + number


def test_an_interrupt_that_a_worker_s_code_raises_is_a_signal(
    monkeypatch: pytest.MonkeyPatch, url: str, tmp_path: Path
) -> None:
    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr(worker, "work", interrupt)
    assert fork_server.run_trials(Job(SPEC, url, tmp_path), 1, StopRequest()) == 130


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (StorageError("the database is gone"), StorageError, "^the database is gone$"),
        (MtdlabError("no such encoder"), MtdlabError, "^no such encoder$"),
        (ZeroDivisionError("in the middle"), RuntimeError, "^ZeroDivisionError: in the middle"),
    ],
)
def test_an_error_in_a_worker_is_raised_in_the_sweep(
    run: Callable[..., str], error: Exception, kind: type[Exception], message: str
) -> None:
    def fail(work: Work) -> None:
        code = report_error(work.study.job.url, work.sweep, error)
        assert code == getattr(error, "exit_code", 1)

    with pytest.raises(kind, match=message) as caught:
        run(fail)
    assert type(caught.value) is kind
    assert hasattr(caught.value, "__notes__") == (kind is RuntimeError)


def test_the_first_error_of_a_worker_stays(store: Store, url: str) -> None:
    sweep = store.begin_sweep(this_process())
    for message in ("first", "second"):
        record_error(url, sweep, {"exit_code": 2, "message": message})
    error = ProgressReader(url, store.study_id, sweep).read().error
    assert error == {"exit_code": 2, "message": "first"}
    # of a sweep that has ended nothing is left to record
    store.end_sweep(sweep)
    record_error(url, sweep, {"exit_code": 2, "message": "late"})
    assert ProgressReader(url, store.study_id, sweep).read().error is None


def test_phases_of_workers_are_those_of_their_sweep(run: Callable[..., str], store: Store) -> None:
    def load(work: Work) -> None:
        claim = store.claim(this_process(), work.sweep)
        assert claim is not None
        assert store.begin(claim, claim.parameters or {}, {"steps": 4, "method": "simcse"}, 2.0)
        assert store.heartbeat(claim, 0, "loading encoder tiny")

    begun: list[str] = []
    with following_phases(begun.append):
        run(load)
    # told at each reading; `Phases` prints it once
    assert set(begun) == {"loading encoder tiny"}


def test_a_note_that_follows_the_result_is_shown(run: Callable[..., str], store: Store) -> None:
    claims = []

    def end(work: Work) -> None:
        claims.append(store.claim(this_process(), work.sweep))
        assert store.finish(claims[-1], Result("FAIL", "no score", note="resumed after step 2"))

    def note(_work: Work) -> None:
        store.add_note(claims[0], "model not saved")

    printed = run(end, note)
    assert printed.count("  trial 0: resumed after step 2\n") == 1
    assert printed.count("  trial 0: resumed after step 2; model not saved\n") == 1


def test_a_sweep_claims_nothing_after_its_limit_or_its_end(store: Store) -> None:
    """Another sweep goes on."""
    limited = store.begin_sweep(this_process(), max_failed=1)
    other = store.begin_sweep(this_process())
    end_trial(store, Result("FAIL", "as the test asks"))
    assert store.claim(this_process(), limited) is None
    claim = store.claim(this_process(), other)
    assert claim is not None
    assert store.release(claim)
    store.end_workers(other)
    assert store.has_ended(other)
    assert store.claim(this_process(), other) is None
    # it was requested by nobody
    assert not store.continue_sweep(other)
    store.request_stop()
    assert store.continue_sweep(limited)


def test_a_claim_tells_the_version_of_the_record(store: Store) -> None:
    """By it a worker knows whether it has to read the record again."""
    first = begin_trial(store)
    assert store.release(first)
    assert claim_trial(store).version == first.version
    store.record_once("precision", "float32")
    assert store.record_once("precision", "bfloat16") == "float32"
    changed = claim_trial(store).version
    assert changed == (first.version or 0) + 1
