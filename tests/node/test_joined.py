"""Figures of two processes, shown as one."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from node.joined import Joined, figures_of


def shown(own: CollectorRegistry, other: CollectorRegistry) -> list[str]:
    text = generate_latest(Joined(own, lambda: figures_of(other))).decode()
    return [line for line in text.splitlines() if "_created" not in line]


def test_a_family_stands_there_once_with_the_series_of_both():
    own, other = CollectorRegistry(), CollectorRegistry()
    for registry, role in ((own, "scheduler"), (other, "dispatcher")):
        Counter("read", "Read.", ["role"], registry=registry).labels(role).inc(3)
    assert shown(own, other) == [
        "# HELP read_total Read.",
        "# TYPE read_total counter",
        'read_total{role="scheduler"} 3.0',
        'read_total{role="dispatcher"} 3.0',
    ]


def test_what_both_count_is_added_up():
    own, other = CollectorRegistry(), CollectorRegistry()
    for registry, count, seconds in ((own, 3, 0.5), (other, 4, 2.0)):
        Counter("read", "Read.", registry=registry).inc(count)
        Histogram("took", "Took.", buckets=(1.0,), registry=registry).observe(seconds)
    assert shown(own, other) == [
        "# HELP read_total Read.",
        "# TYPE read_total counter",
        "read_total 7.0",
        "# HELP took Took.",
        "# TYPE took histogram",
        'took_bucket{le="1.0"} 1.0',
        'took_bucket{le="+Inf"} 2.0',
        "took_count 2.0",
        "took_sum 2.5",
    ]


def test_of_a_gauge_that_both_have_ours_is_shown():
    """Of those without labels the other has one too, at zero: it never set it."""
    own, other = CollectorRegistry(), CollectorRegistry()
    Gauge("as_of", "As of.", registry=own).set(17)
    Gauge("as_of", "As of.", registry=other)
    assert shown(own, other)[-1] == "as_of 17.0"


def test_collecting_twice_shows_the_same():
    own, other = CollectorRegistry(), CollectorRegistry()
    for registry in (own, other):
        Counter("read", "Read.", registry=registry).inc()
    joined = Joined(own, lambda: figures_of(other))
    assert generate_latest(joined) == generate_latest(joined)


def test_what_is_registered_with_it_is_shown_too():
    joined = Joined(CollectorRegistry(), dict)
    Counter("asked", "Asked.", registry=joined).inc()
    assert "asked_total 1.0" in generate_latest(joined).decode()
