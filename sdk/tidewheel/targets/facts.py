"""What commands and endpoints are told about their run: the same facts, as variables and as headers."""

from __future__ import annotations

from tidewheel.wire import HandOut


def variables(handout: HandOut) -> dict[str, str]:
    """`TIDEWHEEL_…` for a command's environment."""
    return {f"TIDEWHEEL_{name.upper()}": value for name, value in _facts(handout).items()}


def headers(handout: HandOut) -> dict[str, str]:
    """`tidewheel-…` for a request."""
    return {f"tidewheel-{name.replace('_', '-')}": value for name, value in _facts(handout).items()}


def _facts(handout: HandOut) -> dict[str, str]:
    run = handout.run
    facts = {
        "run_id": run["run_id"],
        "tenant": run["tenant"],
        "schedule": run["schedule"],
        "attempt": str(handout.attempt),
        "may_have_run": "true" if handout.may_have_run else "false",
        "idempotency_key": run["run_id"],
        "fencing_token": str(handout.offset),
    }
    for name in ("nominal_time", "interval_from"):  # A run made by hand has none.
        if (instant := run.get(name)) is not None:
            facts[name] = str(instant)
    return facts
