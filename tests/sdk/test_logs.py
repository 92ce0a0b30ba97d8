"""What runs write reaches the server: of every kind of task and target, while they run, and never in their way."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.sdk import isolated_tasks
from tests.sdk.fake_server import Hangup, Response, Server, over_http, run
from tests.sdk.logs.test_capture import handout, texts
from tests.sdk.test_commands import named, script
from tests.sdk.test_http_target import LOOPBACK, calling
from tidewheel import Logs, Worker, jsontext
from tidewheel.errors import Unreachable
from tidewheel.logs.capture import Capture
from tidewheel.logs.redaction import Redaction
from tidewheel.logs.shipping import Shipping
from tidewheel.logs.sources import CURRENT, LISTENING, printing
from tidewheel.targets.settings import Http, Settings
from tidewheel.testing import Line, await_task, run_task

pytestmark = pytest.mark.anyio

LOG = logging.getLogger("acme.reports")
ERROR = ["attempt 1 of run nightly.20260308T020000Z failed: ValueError", "Traceback (most recent call last):"]


@pytest.fixture(autouse=True)
def from_info_on(caplog) -> None:
    caplog.set_level(logging.INFO)


@pytest.fixture
def logs() -> Iterator[None]:
    LISTENING.start()
    yield
    LISTENING.stop()


async def lines_of(queue: Any, lease: str, count: int) -> list[dict[str, Any]]:
    await queue.until(lambda: len(queue.lines(lease)) >= count)
    lines: list[dict[str, Any]] = queue.lines(lease)
    return lines


# --- what is heard ---


async def test_what_a_plain_function_logs_is_in_the_log_of_its_run(queue, start):
    def speak():
        LOG.info("counted %d rows", 3)

    await start(speak=speak)
    [lease] = await queue.hand_out(run("speak"))
    [line] = await lines_of(queue, lease, 1)
    assert {**line, "at": "…"} == {
        "line": 0, "at": "…", "stream": "log", "level": "INFO", "text": "acme.reports: counted 3 rows",
    }  # fmt: skip


async def test_coroutines_that_run_at_once_are_told_apart(queue, start):
    both = asyncio.Barrier(2)

    async def speak(name):
        await both.wait()
        LOG.info("first of %s", name)
        await both.wait()
        await asyncio.to_thread(LOG.info, "second of %s", name)

    await start(speak=speak)
    a, b = await queue.hand_out(run("speak", {"name": "a"}), run("speak", {"name": "b"}, run_id="nightly.b"))
    await queue.finished(a)
    await queue.finished(b)
    assert [line["text"] for line in await lines_of(queue, a, 2)] == [
        "acme.reports: first of a", "acme.reports: second of a",
    ]  # fmt: skip
    assert [line["text"] for line in await lines_of(queue, b, 2)] == [
        "acme.reports: first of b", "acme.reports: second of b",
    ]  # fmt: skip


async def test_a_thread_of_a_tasks_own_is_heard_through_the_context(queue, start):
    def speak(ctx):
        unknown = threading.Thread(target=LOG.info, args=("said by nobody",))
        known = threading.Thread(target=ctx.log.info, args=("said by the run",))
        carried = threading.Thread(target=contextvars.copy_context().run, args=(LOG.info, "carried"))
        for thread in (unknown, known, carried):
            thread.start()
            thread.join()

    await start(speak=speak)
    [lease] = await queue.hand_out(run("speak"))
    await queue.finished(lease)
    assert [line["text"] for line in await lines_of(queue, lease, 2)] == ["said by the run", "acme.reports: carried"]


async def test_what_is_printed_is_heard_and_printed_all_the_same(queue, start, capsys):
    def speak():
        print("out")  # noqa: T201 -- heard
        print("err", file=sys.stderr)  # noqa: T201 -- heard
        sys.stdout.write("without an end")

    with printing():
        await start(speak=speak)
        [lease] = await queue.hand_out(run("speak"))
        await queue.finished(lease)
    lines = await lines_of(queue, lease, 3)
    assert [(line["stream"], line["text"]) for line in lines] == [
        ("stdout", "out"), ("stderr", "err"), ("stdout", "without an end"),
    ]  # fmt: skip
    assert capsys.readouterr() == ("out\nwithout an end", "err\n")


async def test_an_error_is_in_the_log_with_its_traceback(queue, start):
    def fail():
        raise ValueError("no such day")

    await start(fail=fail)
    [lease] = await queue.hand_out(run("fail"))
    await queue.finished(lease)
    lines = await lines_of(queue, lease, 3)
    assert [line["text"] for line in lines][:2] == ERROR
    assert lines[-1]["text"] == "ValueError: no such day"


async def test_a_process_is_heard_and_what_it_starts(queue):
    worker = Worker(**queue.options, name="w1", grace_seconds=0.0, logs=Logs(patterns=("s[0-9]+",)))
    worker.task("talk", isolate="process")(isolated_tasks.talk)
    await worker.start()
    [lease] = await queue.hand_out(run("talk", {"secret": "s1234567"}))
    assert (await queue.finished(lease))["outcome"] == "succeeded"
    await lines_of(queue, lease, 4)
    assert queue.texts(lease, "log") == ["logged ***"]
    assert queue.texts(lease, "stdout") == ["printed ***", "said by a child"]
    assert queue.texts(lease, "stderr") == ["written below Python"]
    await worker.stop()


async def test_the_last_words_of_a_process_that_dies_are_heard(queue):
    worker = Worker(**queue.options, name="w1", grace_seconds=0.0)
    worker.task("print_and_die", isolate="process")(isolated_tasks.print_and_die)
    await worker.start()
    [lease] = await queue.hand_out(run("print_and_die"))
    assert (await queue.finished(lease))["error"]["type"] == "ProcessDied"
    assert [line["text"] for line in await lines_of(queue, lease, 1)] == ["last words"]
    await worker.stop()


async def test_a_command_is_heard_on_both_streams(queue):
    worker = Worker(**queue.options, name="w1", grace_seconds=0.0)
    worker.serve(Settings(commands={"it": script("echo out; echo err >&2; echo password=hunter2")}))
    await worker.start()
    [lease] = await queue.hand_out(named())
    await queue.finished(lease)
    await lines_of(queue, lease, 3)
    assert (queue.texts(lease, "stdout"), queue.texts(lease, "stderr")) == (["out", "password=***"], ["err"])
    await worker.stop()


@over_http
async def test_an_endpoints_answer_is_heard_by_its_status_and_the_head_of_its_body(queue):
    async def answer(_request):
        return Response({"rows": 3}, status=500)

    async with Server(answer) as endpoint:
        port = int(endpoint.url.rpartition(":")[2])
        worker = Worker(**queue.options, name="w1", grace_seconds=0.0)
        worker.serve(Settings(http=Http(allow=(LOOPBACK,), plain=True, ports=frozenset({port}))))
        await worker.start()
        [lease] = await queue.hand_out(calling(endpoint.url + "/hook?key=1"))
        await queue.finished(lease)
        await lines_of(queue, lease, 2)
        assert queue.texts(lease, "http") == [f"POST {endpoint.url}/hook answered 500, 11 bytes", '{"rows": 3}']
        await worker.stop()


# --- when ---


async def test_lines_can_be_read_while_the_task_runs(queue, start):
    go = asyncio.Event()

    async def speak():
        LOG.info("begun")
        await go.wait()

    await start(speak=speak)
    [lease] = await queue.hand_out(run("speak"))
    assert [line["text"] for line in await lines_of(queue, lease, 1)] == ["acme.reports: begun"]
    assert ("finished", lease) not in queue.told
    go.set()
    await queue.finished(lease)


async def test_what_a_process_prints_can_be_read_while_it_runs(queue):
    worker = Worker(**queue.options, name="w1", grace_seconds=0.0)
    worker.task("print_and_wait", isolate="process")(isolated_tasks.print_and_wait)
    await worker.start()
    [lease] = await queue.hand_out(run("print_and_wait"))
    assert [line["text"] for line in await lines_of(queue, lease, 1)] == ["early"]
    await worker.stop()


@over_http
async def test_the_last_lines_are_there_before_the_outcome(queue, start):
    async def speak():
        LOG.info("last")

    await start(speak=speak)
    for _ in range(5):
        [lease] = await queue.hand_out(run("speak"))
        await queue.finished(lease)
        assert queue.told.index(("log", lease)) < queue.told.index(("finished", lease))


@over_http
async def test_a_drain_says_what_was_written_and_how_it_ended(queue, start):
    async def speak():
        LOG.info("begun")
        await asyncio.Event().wait()

    worker = await start(speak=speak)
    [lease] = await queue.hand_out(run("speak"))
    await queue.reported("started", lease)
    await worker.stop()
    assert (await queue.finished(lease))["outcome"] == "interrupted"
    assert queue.texts(lease) == ["acme.reports: begun"]


# --- in nobody's way ---


@over_http
async def test_runs_go_on_and_are_reported_while_no_lines_are_taken(queue, start, caplog):
    def away(_written):
        raise Hangup

    async def speak():
        LOG.info("unheard")
        return 7

    queue.refuse_log = away
    await start(speak=speak)
    for _ in range(3):
        [lease] = await queue.hand_out(run("speak"))
        assert (await queue.finished(lease))["result"] == 7
    assert "logs of runs cannot be sent" in caplog.text
    assert queue.logs == []


@over_http
async def test_lines_are_sent_again_until_they_arrive_as_they_were(queue, start):
    tries: list[Any] = []

    def second_time(written):
        tries.append(written)
        return Response({"title": "later"}, status=503) if len(tries) == 1 else None

    async def speak():
        LOG.info("kept")

    queue.refuse_log = second_time
    await start(speak=speak)
    [lease] = await queue.hand_out(run("speak"))
    assert [line["text"] for line in await lines_of(queue, lease, 1)] == ["acme.reports: kept"]
    assert tries[0] == tries[1]


@over_http
async def test_an_older_server_that_takes_no_logs_costs_only_them(queue, start, caplog):
    queue.refuse_log = lambda written: Response({"title": "Not Found"}, status=404)
    await start(speak=lambda: LOG.info("unheard"))
    [lease] = await queue.hand_out(run("speak"))
    assert (await queue.finished(lease))["outcome"] == "succeeded"
    await queue.until(lambda: True)
    assert "the server takes no logs of runs" in caplog.text
    assert "1 lines of run nightly.20260308T020000Z (default.0.1) are lost" in caplog.text


@over_http
async def test_lines_of_a_lease_that_is_refused_are_not_sent_again(queue, start, caplog):
    def other(written):
        refused = [{"lease": each["lease"], "reason": "other_lease"} for each in written["attempts"]]
        return Response({"refused": refused})

    queue.refuse_log = other
    await start(speak=lambda: LOG.info("forged"))
    [lease] = await queue.hand_out(run("speak"))
    assert (await queue.finished(lease))["outcome"] == "succeeded"
    assert queue.logs == []


@over_http
async def test_a_job_that_writes_without_end_costs_its_own_lines_only(queue, start):
    writing = asyncio.Event()

    async def noisy():
        for number in range(30_000):
            LOG.info("line %d", number)
        writing.set()

    async def quiet():
        await writing.wait()
        LOG.info("one line")

    await start(noisy=noisy, quiet=quiet)
    loud, calm = await queue.hand_out(run("noisy"), run("quiet", run_id="nightly.b"))
    await queue.finished(calm)
    assert queue.texts(calm) == ["acme.reports: one line"]
    await queue.finished(loud)
    lines = await lines_of(queue, loud, 1_000)
    await queue.until(lambda: queue.texts(loud)[-1] == "acme.reports: line 29999")
    lines = queue.lines(loud)
    assert (
        sum(line.get("dropped", 0) for line in lines) + len([each for each in lines if each["stream"] == "log"])
        == 30_000
    )


async def test_nothing_is_heard_where_that_is_not_wanted(queue):
    worker = Worker(**queue.options, name="w1", grace_seconds=0.0, logs=Logs(enabled=False))
    worker.task("speak")(lambda: LOG.info("unheard"))
    await worker.start()
    [lease] = await queue.hand_out(run("speak"))
    await queue.finished(lease)
    await worker.stop()
    assert queue.logs == []
    assert LISTENING not in logging.getLogger().handlers


async def test_secrets_of_the_environment_stay_in_the_process(queue, start, monkeypatch):
    monkeypatch.setenv("REPORTS_API_TOKEN", "tok-1234567")
    await start(speak=lambda: LOG.info("using tok-1234567"))
    [lease] = await queue.hand_out(run("speak"))
    assert [line["text"] for line in await lines_of(queue, lease, 1)] == ["acme.reports: using ***"]


# --- in tests of tasks ---


def test_a_tasks_test_sees_its_log():
    worker = Worker()

    @worker.task("speak")
    def speak():
        LOG.info("logged")
        print("printed")  # noqa: T201 -- heard

    ended = run_task(worker, "speak")
    assert ended.log == (Line("log", "INFO", "acme.reports: logged"), Line("stdout", "", "printed"))


async def test_a_coroutines_test_sees_its_log():
    worker = Worker()

    @worker.task("speak")
    async def speak(ctx):
        ctx.log.warning("logged")

    assert (await await_task(worker, "speak")).log == (Line("log", "WARNING", "logged"),)


def test_where_nobody_set_up_logging_warnings_are_still_seen(capsys):
    root = logging.getLogger()
    handlers, root.handlers = root.handlers, []
    LISTENING.start()
    try:
        LOG.warning("seen")
        LOG.info("not seen")
    finally:
        LISTENING.stop()
        root.handlers = handlers
    assert capsys.readouterr().err == "seen\n"


def test_fields_that_are_called_like_ours_cost_no_task_its_log_call(logs):
    LOG.warning("of another", extra={"tenant": {"id": 1}, "run_id": ["r"], "attempt": [1]})


def test_a_record_whose_text_cannot_be_had_is_told_by_its_place():
    class Mute:
        def __repr__(self) -> str:
            raise RuntimeError

    capture = Capture(handout(), Redaction())
    heard = CURRENT.set(capture)
    LISTENING.handle(LOG.makeRecord(LOG.name, logging.WARNING, "here.py", 7, Mute(), (), None))
    CURRENT.reset(heard)
    assert texts(capture) == ["acme.reports: a log record that cannot be formatted (RuntimeError), of here.py:7"]


def test_a_stream_that_is_heard_stays_what_it_was(capsys):
    before = sys.stdout
    with printing():
        assert (sys.stdout.encoding, sys.stdout.errors) == (before.encoding, before.errors)
        assert sys.stdout is not before


async def test_whatever_goes_wrong_with_some_lines_others_are_sent(logs, caplog):
    sent: list[Any] = []

    async def send(chunks):
        sent.append([jsontext.loads(line)["text"] for chunk in chunks for line in chunk.lines])
        if len(sent) == 1:
            raise KeyError("of a kind that nobody thought of")
        return {}

    shipping = Shipping(send, Redaction(), 1)
    shipping.start()
    for number in (1, 2):
        capture = shipping.open(handout(f"default.0.{number}.key"))
        capture.write("stdout", f"line {number}")
        shipping.end(capture.handout.lease)
        await shipping.flush(capture)
    await shipping.close()
    assert sent == [["line 1"], ["line 2"]]
    assert "1 lines of run nightly.20260308T020000Z (default.0.1) are lost" in caplog.text


async def test_of_attempts_that_are_over_so_many_wait_and_no_more():
    async def send(_chunks):
        raise Unreachable("away")

    shipping = Shipping(send, Redaction(), 1)
    kept = [shipping.open(handout(f"default.0.{number}.key")) for number in range(210)]
    for capture in kept:
        capture.write("stdout", "x")
        shipping.end(capture.handout.lease)
    assert [capture.lost for capture in kept] == [1] * 9 + [0] * 201
