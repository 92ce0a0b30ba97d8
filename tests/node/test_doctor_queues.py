"""What a doctor says of queues with several shards."""

from __future__ import annotations

from node.doctor import queues


def queue(shards: int) -> dict[str, object]:
    return {"name": "mail", "definition": {"shards": shards}}


def test_more_shards_than_partitions_are_worth_a_note():
    assert list(queues.more_than_partitions(queue(4), 4)) == []
    assert list(queues.more_than_partitions({"name": "mail", "definition": {}}, 1)) == []
    (finding,) = queues.more_than_partitions(queue(6), 4)
    assert (finding.verdict, finding.what) == (
        "note", "queue mail has 6 shards, and the dispatchers 4 partitions: some share one",
    )  # fmt: skip


def test_a_shard_that_the_queue_has_no_more_is_named_with_what_it_holds():
    first = {"shard": 0, "waiting": 9, "running": 3}
    assert list(queues.leaving({"queue": "mail", "shards": [first]})) == []
    (finding,) = queues.leaving(
        {"queue": "mail", "shards": [first, {"shard": 3, "waiting": 2, "running": 1, "leaving": True}]}
    )
    assert finding.what == (
        "shard 3 of queue mail is left over from before: 2 runs wait in it, 1 are with workers"
    )  # fmt: skip


def test_a_server_that_does_not_tell_is_no_fault():
    (finding,) = queues.examine("http://127.0.0.1:9", 4)
    assert (finding.verdict, finding.what) == ("note", "no queues are told at http://127.0.0.1:9 (ConnectError)")
