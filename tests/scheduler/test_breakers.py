"""A breaker is reset by its dispatcher: the owner of its tenant passes the wish on. A run carries its job's breaker."""

from datetime import timedelta

from schemas import identity, topics
from schemas.facts import BreakerPolicy
from schemas.internal import BreakerResetRequested, CommandAnswered
from tests.scheduler.harness import Shell, definition
from tests.scheduler.test_shards import declare


def test_a_reset_goes_to_the_shard_of_the_queue_and_is_answered_there():
    shell = Shell("2024-01-01T10:00:10", layout=topics.Layout(schedule=1, shard=4))
    shell.send("BreakerReset", name="_", queue="mail", breaker="job:send", note="mended", by="ada")
    (asked,) = shell.all(BreakerResetRequested)
    assert asked == BreakerResetRequested(
        tenant="acme", queue="mail", shard=0, requested_at=shell.now, breaker="job:send", by="ada", note="mended",
        command_id="c1", source="test", reply_to=3,
    )  # fmt: skip
    (output,) = (output for output in shell.outputs if output.topic == topics.RUNS)
    where = (identity.murmur2(b"mail") & 0x7FFFFFFF) % 4
    assert (output.topic, output.partition, output.fact) == (topics.RUNS, where, asked)
    assert shell.all(CommandAnswered) == []


def test_a_reset_goes_to_each_shard_that_the_queue_has_or_had():
    """A shard that the queue has no more may still hold runs behind a breaker."""
    shell = Shell("2024-01-01T10:00:10", layout=topics.Layout(schedule=1, shard=4))
    declare(shell, 3, "mail")
    declare(shell, 2, "mail")
    declare(shell, 4, "other")
    shell.reload()
    shell.send("BreakerReset", name="_", queue="mail", breaker="job:send")
    assert [(asked.shard, asked.shards) for asked in shell.all(BreakerResetRequested)] == [(0, 3), (1, 3), (2, 3)]
    where = (identity.murmur2(b"mail") & 0x7FFFFFFF) % 4
    asked = [output.partition for output in shell.outputs if isinstance(output.fact, BreakerResetRequested)]
    assert asked == [(where + shard) % 4 for shard in (0, 1, 2)]
    declare(shell, None, "mail")
    shell.send("BreakerReset", name="_", queue="mail", all=True)
    assert [asked.shard for asked in shell.all(BreakerResetRequested)[3:]] == [0, 1, 2]


def test_all_of_them_are_asked_for_in_so_many_words_and_an_empty_name_asks_for_nothing():
    shell = Shell("2024-01-01T10:00:10")
    shell.send("BreakerReset", name="_", queue="mail", breaker="")
    assert (shell.answer().status, [fault.pointer for fault in shell.answer().faults]) == (422, ["/data/breaker"])
    assert shell.all(BreakerResetRequested) == []
    shell.send("BreakerReset", name="_", queue="mail", all=True)
    assert [asked.breaker for asked in shell.all(BreakerResetRequested)] == [""]


def test_a_run_carries_the_breaker_that_its_job_gives_and_none_where_it_gives_none():
    shell = Shell("2024-01-01T10:00:10")
    given = {"failures": 5, "share": "80%", "window": "PT2M", "wait": "10s"}
    job = {"target": {"type": "task", "name": "t"}}
    shell.put("a", definition(job={**job, "breaker": given}))
    shell.put("b", definition(job=job))
    shell.until("2024-01-01T10:01:00")
    assert shell.last_run("a").job.breaker == BreakerPolicy(
        failures=5, percent=80, window=timedelta(minutes=2), wait=timedelta(seconds=10), probes=1
    )  # fmt: skip
    assert shell.last_run("b").job.breaker is None
