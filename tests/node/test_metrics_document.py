"""docs/guides/metrics.md names every metric as it is, and none that is not."""

from __future__ import annotations

from pathlib import Path

from runtime.telemetry import DESCRIBED, LABEL_VALUES_MAX, PREFIX, Metric

DOCUMENT = Path(__file__).parents[2] / "docs/guides/metrics.md"
UNITS = ("_seconds", "_ratio", "_records", "_total", "_records_left", "_left")
WITHOUT_UNIT = {  # a number of things or a yes, by their names
    "clock_held", "partition_failed", "state_differs", "recovering", "queue_paused", "role_partitions", "runs_queued",
    "runs_running", "workers", "event_streams", "worker_slots_free", "backfills_open", "breakers_open",
    "records_unanswered",
}  # fmt: skip


def line_of(name: Metric) -> str:
    kind, help_, labels, _ = DESCRIBED[name]
    shown = ", ".join(f"`{label}`" for label in labels) or "none"
    return f"| `{PREFIX}{name.value}` | {kind.__name__.lower()} | {shown} | {help_} |"


def lines() -> list[str]:
    return [line for line in DOCUMENT.read_text(encoding="utf-8").splitlines() if line.startswith(f"| `{PREFIX}")]


def test_every_metric_is_described():
    assert set(DESCRIBED) == set(Metric)


def test_the_document_has_a_line_for_each_metric_as_the_list_says_it():
    assert sorted(lines()) == sorted(map(line_of, Metric))


def test_a_name_ends_in_its_unit():
    assert [name.value for name in Metric if not name.value.endswith(UNITS) and name.value not in WITHOUT_UNIT] == []


def test_the_document_tells_the_bounds_of_labels():
    text = DOCUMENT.read_text(encoding="utf-8")
    assert [label for label, most in LABEL_VALUES_MAX.items() if f"`{label}` {most}" not in text] == []
