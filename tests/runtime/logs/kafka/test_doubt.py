"""When a commit leaves doubt: the table of the taint rule."""

import pytest

from runtime.logs.kafka.doubt import Seen, Watch, doubt, own_epoch, troubles

FINE = ("ENDTXN", "[thrd:main]: EndTxn returned NO_ERROR in state CommittingTransaction (may_retry=true)")
AGAIN = ("ENDTXN", "[thrd:main]: EndTxn returned _TIMED_OUT in state CommittingTransaction (may_retry=true)")
MOVED = ("TXNCOORD", "[thrd:main]: Transaction coordinator changed from 10.0.0.1:9092/1 -> 10.0.0.2:9092/2: NOT_COORD")
ASKED = ("TXNCOORD", "[thrd:main]: Querying for transaction coordinator: periodic")


@pytest.mark.parametrize(
    ("seen", "reason"),
    [
        (Seen(), ""),
        (Seen(lines=(FINE,), seconds=0.004), ""),
        (Seen(lines=(FINE,), seconds=1.0), ""),
        (Seen(lines=(ASKED, FINE)), ""),
        (Seen(lines=(FINE,), seconds=1.001), "it took 1.0 s"),
        (Seen(lines=(FINE,), repeated=True), "it had to be repeated"),
        (Seen(lines=(AGAIN, FINE)), f"the client says: {AGAIN[1]}"),
        (Seen(lines=(FINE, MOVED)), f"the client says: {MOVED[1]}"),
        (Seen(lines=(("ENDTXN", "words of a later version"),)), "the client says: words of a later version"),
        (Seen(errors=("_TRANSPORT",), lines=(FINE,)), "meanwhile: _TRANSPORT"),
        (Seen(errors=("_TIMED_OUT", "_ALL_BROKERS_DOWN", "_TIMED_OUT")), "meanwhile: _ALL_BROKERS_DOWN, _TIMED_OUT"),
        (Seen(troubles=2, lines=(FINE,)), "2 requests timed out or connections were lost meanwhile"),
    ],
)
def test_a_commit_leaves_doubt_when_anything_may_have_made_the_client_repeat_it(seen, reason):
    assert doubt(seen) == reason


def test_what_was_noticed_before_a_transaction_is_not_held_against_it():
    watch = Watch()
    watch.log(10, "%s [%s] %s", *_line(AGAIN))
    watch.statistics('{"brokers": {"1": {"req_timeouts": 3}}}')
    watch.begin()
    watch.log(10, "%s [%s] %s", *_line(FINE))
    assert doubt(watch.seen(seconds=0.01, repeated=False)) == ""


def test_what_is_noticed_during_a_transaction_is():
    watch = Watch()
    watch.statistics('{"brokers": {"1": {"req_timeouts": 3}}}')
    watch.begin()
    watch.statistics('{"brokers": {"1": {"req_timeouts": 4}}}')
    assert watch.seen(seconds=0.01, repeated=False) == Seen(troubles=1, seconds=0.01)


def test_the_first_statistics_tell_of_the_connecting_and_count_for_nothing():
    watch = Watch()
    watch.begin()
    watch.statistics('{"brokers": {"1": {"disconnects": 1}}}')
    assert doubt(watch.seen(seconds=0.01, repeated=False)) == ""


def test_troubles_are_counted_over_all_brokers():
    text = (
        '{"brokers": {"a": {"req_timeouts": 1, "txretries": 2, "disconnects": 4, "tx": 99}, "b": {"disconnects": 8}}}'
    )
    assert troubles(text) == 13
    assert troubles("{}") == 0


@pytest.mark.parametrize(
    ("lines", "epoch"),
    [
        ([], None),
        ([("GETPID", "[thrd:main]: Acquiring ProducerId")], None),
        ([("GETPID", "[thrd:main]: Acquired PID{Id:0,Epoch:0}")], 0),
        ([("GETPID", "[thrd:main]: Acquired PID{Id:7,Epoch:3}")], 7 * 65536 + 3),
        ([("GETPID", "Acquired PID{Id:7,Epoch:3}"), ("GETPID", "Acquired PID{Id:7,Epoch:4} (previous …)")], 458756),
        ([("ENDTXN", "Acquired PID{Id:7,Epoch:3}")], None),
    ],
)
def test_the_own_epoch_is_the_pair_that_the_broker_gave_as_one_number(lines, epoch):
    assert own_epoch(lines) == epoch


def test_a_new_epoch_and_a_new_producer_id_are_both_later():
    pairs = [(7, 3), (7, 4), (7, 32767), (8, 0)]
    epochs = [own_epoch([("GETPID", f"Acquired PID{{Id:{id_},Epoch:{epoch}}}")]) for id_, epoch in pairs]
    assert epochs == [458755, 458756, 491519, 524288]


def _line(line: tuple[str, str]) -> tuple[str, str, str]:
    return line[0], "tidewheel#producer-1", line[1]
