"""I12: no tenant sees anything of another."""

from schemas import topics
from simulation.checkers import tenants
from simulation.evidence import marker
from simulation.history import Call
from tests.simulation.checkers.given import at, calm, created, event, finished, handed_out, of_schedule, told


def found(given, **fields) -> list[str]:
    return told(tenants.check(given.evidence(**fields)))


def call(**answer) -> Call:
    return Call(number=7, kind="read", tenant="acme", name="s", started_at=at("12:00:00"), answer=answer)


def test_a_tenant_sees_its_own():
    given = calm()
    given.append(topics.RUN_OUTCOMES, finished(result={"of": marker("acme")}))
    assert found(given, history=(call(note=marker("acme")),)) == []
    assert tenants.observed(given.evidence()) == 1


def test_a_marker_in_the_record_of_another_is_found():
    given = calm()
    given.append(topics.RUN_OUTCOMES, finished(result={"of": marker("umbrella")}))
    assert found(given) == ["I12 run-outcomes-0@2: run.finished of tenant acme holds the marker of umbrella"]


def test_a_marker_in_the_run_that_is_handed_out_for_another_is_found():
    given = calm()
    run = created(labels={"of": marker("umbrella")})
    given.append(topics.dispatch_topic("default"), handed_out(run, 9))
    assert found(given) == ["I12 dispatch.default-0@2: run.handed_out of tenant acme holds the marker of umbrella"]


def test_an_event_under_the_name_of_another_is_found():
    given = calm()
    given.append(topics.RUN_EVENTS, event("run.deferred", subject="umbrella/s", tenant="acme", schedule="s"))
    assert found(given) == ["I12 run-events-0@10: run.deferred of acme/s has the subject umbrella/s"]


def test_an_answer_with_the_marker_of_another_is_found():
    assert found(calm(), history=(call(runs=[marker("umbrella")]),)) == [
        "I12 call 7, read: what tenant acme is shown holds the marker of umbrella"
    ]


def test_a_row_with_the_marker_of_another_is_found():
    rows = ({"tenant": "acme", "labels": marker("acme")}, {"tenant": "acme", "labels": marker("umbrella")})
    assert found(calm(), read_model={"runs": rows}) == [
        "I12 read model, runs: what tenant acme is shown holds the marker of umbrella"
    ]


def test_facts_of_a_partition_are_nobodys():
    given = calm()
    both = [of_schedule("x", tenant="_", schedule="_", said=[marker("acme"), marker("umbrella")])]
    given.append(topics.RUN_EVENTS, both[0])
    assert found(given) == []
