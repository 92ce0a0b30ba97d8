"""Upstreams of waiting occurrences are mended, run again, put, deleted, and named no longer."""

from scheduler import keys
from schemas import codec
from schemas.facts import OccurrenceDeferred, OccurrenceSkipped, RunCreated
from schemas.linking import WindowAsked
from tests.scheduler.harness import Shell, at, definition
from tests.scheduler.links.waiting import ALL, WINDOW, details, ended, live, pair, told, until, waiting

# --- what is mended -----------------------------------------------------------------------------------------------


def while_a_failure_is_run_again() -> Shell:
    """`report` waits for a failed run of `load`, which a backfill is running again."""
    shell = pair()
    live(shell, "10:10")
    ended(shell, 10, "failed")
    live(shell, "10:40")
    shell.send(
        "BackfillStart", name="load", reprocess="failed",
        **{"from": "2024-01-01T10:00:00Z", "to": "2024-01-01T10:20:00Z"},
    )  # fmt: skip
    assert shell.answer().status < 300
    live(shell, "10:41")
    return shell


def test_a_backfill_that_mends_a_failure_wakes_what_waits():
    shell = while_a_failure_is_run_again()
    shell.finish(shell.last_run("load"))
    told(shell)
    assert shell.created("report") == ["10:30@10:41"]
    shell.reload()


def test_a_backfill_that_fails_again_wakes_nobody():
    shell = while_a_failure_is_run_again()
    shell.finish(shell.last_run("load"), "failed")
    told(shell)
    assert shell.created("report") == []


def test_a_rerun_that_succeeds_wakes_what_waits():
    shell = pair()
    live(shell, "10:10")
    ended(shell, 10, "failed")
    live(shell, "10:40")
    old = shell.run("load.20240101T100000Z")
    whole = codec.parse(codec.encode(old, source="x", time=shell.now)[1])["data"]
    shell.send("RunRerun", name="load", run_id=old.run_id, run=whole)
    assert shell.answer().status == 201
    live(shell, "10:41")
    assert shell.created("report") == []
    shell.finish(shell.last_run("load"))
    told(shell)
    assert shell.created("report") == ["10:30@10:41"]
    shell.reload()


def test_a_hundred_upstreams_of_unlike_periods_have_all_to_be_met():
    shell = Shell("2024-01-01T09:05:00")
    names = [f"load-{minutes}-{number}" for minutes in (5, 10, 15, 20, 60) for number in range(20)]
    for name in names:
        minutes = int(name.split("-")[1])
        cron = "0 * * * *" if minutes == 60 else f"*/{minutes} * * * *"
        shell.put(name, definition(cron, **ALL))
    shell.put("report", waiting(*names, cron="30 10 * * *", span="PT1H"))
    live(shell, "10:31")
    runs = [fact for fact in shell.facts if isinstance(fact, RunCreated)]
    first, last = at("2024-01-01T09:30"), at("2024-01-01T10:30")
    open_runs = [run for run in runs if run.nominal_time and first < run.nominal_time <= last]
    assert len(open_runs) == 20 * (12 + 6 + 4 + 3 + 1)
    for run in open_runs[1:]:
        shell.finish(run)
    told(shell)
    assert shell.created("report") == []
    shell.finish(open_runs[0])
    told(shell)
    assert shell.created("report") == ["10:30@10:31"]
    shell.reload()


def backfilled(first: str) -> Shell:
    """B-O23: the seven days before were skipped, and a backfill, one run at a time, makes up for them from a day on."""
    shell = Shell("2019-11-15T12:00:00")
    shell.put("a", definition("0 0 * * *"))
    shell.put("b", waiting("a", cron="0 1 * * *", span="P7D", offset="-P1D", deadline="P2D"))
    shell.deliver()
    shell.send("SchedulePause", name="a")
    shell.send("SchedulePause", name="b")
    shell.until("2019-11-22T12:00:00")
    shell.send("ScheduleResume", name="a")
    shell.send("ScheduleResume", name="b")
    shell.send("BackfillStart", name="a", max_active=1, **{"from": f"{first}T00:00:00Z", "to": "2019-11-22T12:00:00Z"})
    assert shell.answer().status < 300
    until(shell, "2019-11-23T01:00:00")
    return shell


def of_a(shell: Shell) -> list[RunCreated]:
    return [run for run in shell.all(RunCreated, "a") if run.backfill]


def test_b_waits_for_the_seventh_run_of_a_serial_backfill_of_seven_days():
    shell = backfilled("2019-11-16")
    for count in range(1, 8):
        assert len(of_a(shell)) == count
        assert shell.created("b") == []
        shell.finish(of_a(shell)[-1])
        until(shell, f"2019-11-23T01:0{count}:00")
    assert [run.nominal_time for run in of_a(shell)] == [at(f"2019-11-{day}T00:00:00") for day in range(16, 23)]
    assert shell.created("b") == ["01:00@01:06"]


def test_b_waits_and_is_not_failed_at_once_when_one_of_the_seven_is_missing():
    shell = backfilled("2019-11-17")
    for count in range(1, 7):
        shell.finish(of_a(shell)[-1])
        until(shell, f"2019-11-23T01:0{count}:00")
    assert len(of_a(shell)) == 6
    until(shell, "2019-11-25T00:59:00")
    assert (shell.created("b"), [skip for skip in shell.skipped("b") if "upstream" in skip]) == ([], [])
    until(shell, "2019-11-25T01:00:00")
    assert [skip for skip in shell.skipped("b") if "upstream" in skip] == ["01:00 upstream"]
    skipped = shell.all(OccurrenceSkipped, "b")[-1]
    assert skipped.detail == "a: 2019-11-16T00:00:00Z was skipped: paused, by 2019-11-25T01:00:00Z"


# --- upstreams that come and go -----------------------------------------------------------------------------------


def test_a_schedule_that_never_was_is_waited_for_and_named():
    shell = Shell("2024-01-01T09:45:00")
    shell.put("report", waiting("load", deadline="PT20M"))
    live(shell, "10:50")
    assert [fact.detail for fact in shell.all(OccurrenceDeferred, "report")] == [
        f"waits for load in {WINDOW}", "load: there is no such schedule"
    ]  # fmt: skip
    assert details(shell) == ["load: there is no such schedule, by 2024-01-01T10:50:00Z"]


def test_one_that_is_put_while_it_is_waited_for_is_asked_then():
    shell = Shell("2024-01-01T09:45:00")
    shell.put("report", waiting("load"))
    live(shell, "10:40")
    shell.put("load", definition("0 * * * *", **ALL))
    told(shell)
    assert shell.created("report") == ["10:30@10:40"]


def test_of_one_that_is_deleted_nothing_is_to_come():
    shell = pair(offset="PT1H")
    live(shell, "10:35")
    shell.send("ScheduleDelete", name="load")
    told(shell)
    assert shell.created("report") == ["10:30@10:35"]


def test_an_upstream_that_is_no_longer_named_is_not_waited_for():
    shell = pair()
    live(shell, "10:40")
    shell.put("report", definition("30 * * * *", **ALL))
    told(shell)
    assert shell.created("report") == ["10:30@10:40"]


def test_a_change_frees_what_waits_when_it_takes_effect_and_not_when_it_is_read():
    shell = pair(deadline="PT20M")
    live(shell, "10:40")
    shell.sleep_until("2024-01-01T10:55:00")
    shell.put("report", definition("30 * * * *", **ALL), published="2024-01-01T10:45:00")
    told(shell)
    assert shell.created("report") == ["10:30@10:55"]


def test_what_is_due_under_a_version_that_was_replaced_meanwhile_asks_nobody_who_is_no_longer_named():
    shell = pair()
    live(shell, "10:20")
    shell.sleep_until("2024-01-01T10:31:00")
    shell.put("report", definition("30 * * * *", **ALL), published="2024-01-01T10:30:30")
    told(shell)
    assert shell.all(WindowAsked, "report") == []
    assert shell.created("report") == ["10:30@10:31"]
    shell.reload()


def test_an_upstream_that_is_followed_instead_is_not_waited_for_and_its_questions_are_dropped():
    shell = pair()
    live(shell, "10:40")
    after = [{"schedule": "load", "mode": "run", "condition": "failed"}]
    shell.put("report", definition("30 * * * *", after=after, **ALL))
    told(shell)
    assert shell.created("report") == ["10:30@10:40"]
    assert [key for key in shell.schedule("load").rows.data if key.startswith(keys.QUESTION)] == []
    ended(shell, 10, "failed")
    assert shell.created("report")[1:] == ["after load.20240101T100000Z"]
    shell.reload()


def test_of_several_upstreams_all_have_to_be_met():
    shell = Shell("2024-01-01T09:45:00")
    for name in ("load", "prices"):
        shell.put(name, definition("0 * * * *", **ALL))
    shell.put("report", waiting("load", "prices"))
    shell.deliver()
    live(shell, "10:40")
    ended(shell, 10)
    assert shell.created("report") == []
    shell.finish("prices.20240101T100000Z")
    told(shell)
    assert shell.created("report") == ["10:30@10:40"]
