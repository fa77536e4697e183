"""From a file to a model that may serve, beside whatever is served meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kpi.catalogue import Catalogue
from kpi.window import KpiWindow
from model.predictor import Forecast
from service.clock import Clock
from service.engine import Ask, Engine, Ladder, Step, Worker
from service.loading import load_model
from service.models.served import ServedModel
from service.settings import Settings

STALL_S = 60.0


class ModelLoader:
    """Loads models one at a time, on a thread of its own.

    Args:
        settings: How a model is run.
        catalogue: What each KPI is.
        engine: Learns what the model costs.
        clock: Tells when it was loaded, and that a model does not come back.
        stall_s: A call of a new model that takes longer is given up.
    """

    def __init__(
        self,
        settings: Settings,
        catalogue: Catalogue,
        engine: Engine,
        clock: Clock,
        stall_s: float = STALL_S,
    ) -> None:
        self._settings = settings
        self._catalogue = catalogue
        self._engine = engine
        self._clock = clock
        self._stall_s = stall_s
        self._worker = Worker("loader")

    async def load(self, file: Path | None) -> ServedModel:
        """A model that has been tried, and of which the engine knows what it costs.

        While the service answers, nothing of this runs on the threads that answer.

        Args:
            file: The checkpoint, or the name of one that ships; the default one for None.

        Raises:
            StartupError: There is none, or it cannot be used; the message says why.
            ModelError: It cannot forecast.
            InferenceError: It does not come back from a call.
        """
        settings, catalogue = self._settings, self._catalogue
        model = await self._worker.call(lambda: load_model(file, settings, catalogue))
        await self.learn(model.ladder)
        model.loaded_ms = self._clock.now_ms()
        return model

    async def learn(self, ladder: Ladder) -> None:
        """Have the engine learn what a ladder costs, beside its own threads where they answer.

        Raises:
            ModelError: It cannot forecast.
            InferenceError: It does not come back from a call.
        """
        await self._engine.learn(ladder, self._call if self._engine.is_running else None)

    def stop(self) -> None:
        """Load nothing more."""
        self._worker.stop()

    async def _call(self, step: Step, windows: Sequence[KpiWindow], ask: Ask) -> Sequence[Forecast]:
        watch = self._clock.call_at(self._clock.monotonic_s() + self._stall_s, self._worker.give_up)
        try:
            return await self._worker.call(
                lambda: step.predictor.predict(windows, ask.horizon, ask.levels)
            )
        finally:
            watch.cancel()
