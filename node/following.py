"""The projector under the one contract of everything long-lived."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from projections.projector import Projector


class Following:
    """A projector as a service (`runtime.lifecycle`). It mends itself: a problem makes it unready, never failed."""

    name = "projector"
    failure: BaseException | None = None

    def __init__(self, projector: Projector) -> None:
        self._projector = projector
        self._moved = threading.Condition()
        self._quiet = projector.on_progress(self._tell)

    def start(self) -> None:
        """See `Service`."""
        self._projector.start()

    def ready(self, timeout: float) -> bool:
        """See `Service`."""
        with self._moved:
            return self._moved.wait_for(lambda: self._projector.ready, timeout)

    def stop(self, timeout: float) -> bool:  # noqa: ARG002 -- it ends with the batch in hand
        """See `Service`."""
        self._quiet()
        self._projector.stop()
        return True

    def _tell(self) -> None:
        with self._moved:
            self._moved.notify_all()
