"""The heartbeat of a claimed trial, recorded in a thread: also while texts are loaded or scored."""

import threading
from types import TracebackType
from typing import Self

from mtdlab.errors import StorageError
from mtdlab.store import Claim, Owner, Store

HEARTBEAT_SECONDS = 2.0


class ClaimLost(Exception):
    """Another worker claimed this trial while this process was suspended, or it was deleted."""


class Heartbeat:
    """Records the heartbeat of a trial with its last step, every `HEARTBEAT_SECONDS`.

    step  to be recorded next.
    """

    def __init__(self, store: Store, claim: Claim, owner: Owner) -> None:
        self.step = 0
        self._store, self._claim, self._owner = store, claim, owner
        self._lost = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._repeat, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def beat(self) -> None:
        """Record a heartbeat now. A database that fails is tried again at the next one."""
        try:
            self._lost = not self._store.heartbeat(self._claim, self._owner, self.step)
        except StorageError:
            return

    def check(self) -> None:
        """Raise ClaimLost if a heartbeat found that this process no longer owns the trial."""
        if self._lost:
            raise ClaimLost

    def _repeat(self) -> None:
        while not self._lost and not self._over.wait(HEARTBEAT_SECONDS):
            self.beat()
