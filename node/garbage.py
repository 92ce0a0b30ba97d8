"""How a process of ours looks for garbage: seldom."""

from __future__ import annotations

import gc


def collect_rarely() -> None:
    """Nearly all garbage here is freed by reference counts: walking tens of thousands of live records for the rest,
    hundreds of times a second, took a tenth of the time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
