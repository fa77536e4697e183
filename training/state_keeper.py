"""When the state of a run is saved, and what happens where a store does not take it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from training.errors import OtherRunError, StoreError
from training.state import RunState, load_state, save_state
from training.storage import Place

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 900.0
"""How long a store may fail before that ends a run: what it has not taken by then is too much to
train again."""


class StateKeeper:
    """Keeps the state of one run in one place, or nowhere.

    Attributes:
        trouble: Why the state could not be saved the last time, None where it was.
    """

    def __init__(
        self,
        place: Place | None,
        fingerprint: str,
        every_seconds: float,
        clock: Callable[[], float] = time.monotonic,
        *,
        run_name: str = "",
    ) -> None:
        """Keep a state.

        Args:
            place: Where; None keeps none.
            fingerprint: Of the run (`training.fit.run_fingerprint`).
            every_seconds: Time between two savings.
            clock: Seconds that only grow.
            run_name: By which later attempts of the same run know its state; empty: none does.
        """
        self._place = place
        self._fingerprint = fingerprint
        self._every_seconds = every_seconds
        self._clock = clock
        self._run_name = run_name
        self._tried_at = self._saved_at = clock()
        self.trouble: str | None = None

    def load(self) -> RunState | None:
        """The state that lies there; None where none does, or one of this name but of other data.

        Raises:
            ResumeError: It is damaged, or of another run.
            StoreError: The store failed.
        """
        if not self._place:
            return None
        try:
            return load_state(self._place, self._fingerprint)
        except OtherRunError as error:
            if not self._run_name or error.run_name != self._run_name:
                raise
            log.warning("%s is of other data or settings: training begins again", self._place)
            return None

    def save(self, snapshot: Callable[[], RunState]) -> None:
        """Save what `snapshot` returns.

        Raises:
            OSError: It cannot be written; what was there stays.
            PlaceError: It may not be written to the store.
            StoreError: The store failed.
        """
        if self._place:
            save_state(snapshot(), self._place, self._fingerprint, self._run_name)
        self._tried_at = self._saved_at = self._clock()
        self.trouble = None

    def save_when_due(self, snapshot: Callable[[], RunState]) -> None:
        """Save if the last time is long enough ago; a store that fails is asked again next time.

        Raises:
            OSError: It cannot be written; what was there stays.
            PlaceError: It may not be written to the store.
            StoreError: The store has failed for `PATIENCE_SECONDS`.
        """
        if self._clock() - self._tried_at <= self._every_seconds:
            return
        if (error := self._failed(snapshot)) is not None:
            self._tried_at = self._clock()
            unsaved_seconds = self._tried_at - self._saved_at
            if unsaved_seconds > PATIENCE_SECONDS:
                raise error
            self.trouble = f"the state is not saved since {unsaved_seconds:.0f} s: {error}"

    def save_if_possible(self, snapshot: Callable[[], RunState]) -> None:
        """Save, unless the store fails: the steps are done, and what is made of them follows.

        Raises:
            OSError: It cannot be written; what was there stays.
            PlaceError: It may not be written to the store.
        """
        if (error := self._failed(snapshot)) is not None:
            log.warning("the state is not saved: %s", error)

    def _failed(self, snapshot: Callable[[], RunState]) -> StoreError | None:
        try:
            self.save(snapshot)
        except StoreError as error:
            return error
        return None
