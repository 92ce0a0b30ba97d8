"""I17: no secret anywhere."""

from runtime.record import TopicPartition
from schemas import topics
from simulation.checkers import no_secret
from simulation.evidence import Committed
from simulation.history import Call
from tests.simulation.checkers.given import at, calm, finished, rested, store, told

SECRET = "hunter2"


def found(given, **fields) -> list[str]:
    return told(no_secret.check(rested(given, canaries=("other", SECRET), **fields)))


def test_a_secret_that_was_used_stands_nowhere():
    assert found(calm()) == []
    assert no_secret.observed(rested(calm(), canaries=(SECRET,))) == 43


def test_without_a_secret_nothing_is_proved():
    assert no_secret.observed(rested(calm())) == 0


def test_a_secret_in_a_value_a_key_or_a_header_is_found_and_not_repeated():
    given = calm()
    given.append(topics.RUN_OUTCOMES, finished(result={"password": SECRET}))
    given.append(topics.RUN_OUTCOMES, finished(), key=SECRET.encode())
    given.append(topics.RUN_OUTCOMES, finished(), headers={"authorization": SECRET})
    assert found(given) == [f"I17 run-outcomes-0@{offset}: holds secret 2" for offset in (2, 3, 4)]


def test_a_secret_in_an_aborted_record_is_found():
    aborted = {TopicPartition(topics.LINKS, 0): (Committed(4, None, SECRET.encode(), (), at("12:00:00")),)}
    assert found(calm(), aborted=aborted) == ["I17 links-0@4: holds secret 2"]


def test_a_secret_on_a_disk_in_an_answer_a_row_or_a_text_is_found():
    given = calm()
    call = Call(number=1, kind="read", tenant="acme", name="s", started_at=at("12:00:00"), answer={"secret": SECRET})
    assert found(
        given, stores=(store(given, "scheduler", {b"\0\0x": SECRET.encode()}),), history=(call,),
        read_model={"runs": ({"note": SECRET},)}, texts={"log of node-1": f"key={SECRET}"},
    ) == [
        "I17 store of scheduler-0 on node-1: holds secret 2",
        "I17 call 1, read: holds secret 2",
        "I17 read model, runs: holds secret 2",
        "I17 log of node-1: holds secret 2",
    ]  # fmt: skip
