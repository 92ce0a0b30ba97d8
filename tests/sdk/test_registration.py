"""What can be registered as a task, and what is said about what can't."""

import pytest

from tidewheel import Kafka, RunContext, Worker, isolated
from tidewheel.tasks import register


def test_a_task_is_isolated_in_a_thread_or_in_a_process():
    assert register("it", print, isolate="process").in_process
    assert not register("it", print).in_process
    with pytest.raises(ValueError, match="isolate must be 'thread' or 'process', not 'container'"):
        Worker().task("it", isolate="container")(print)


def test_a_function_that_another_process_could_not_find_is_refused():
    def local():
        pass

    with pytest.raises(ValueError, match="isolate='process' needs a function that its module has under its name"):
        isolated.check(register("it", local, isolate="process"))


@pytest.mark.parametrize("name", ["http:", "command:dump"])
def test_a_task_is_not_called_as_other_targets_are(name):
    with pytest.raises(ValueError, match="that is what other targets are called"):
        Worker().task(name)(print)


def test_a_name_is_registered_once():
    worker = Worker()
    worker.task("it")(print)
    with pytest.raises(ValueError, match="task 'it' is registered twice"):
        worker.task("it")(print)


def test_a_registered_function_stays_what_it_was():
    def it():
        return 42

    assert Worker().task("it")(it) is it


@pytest.mark.parametrize("function", [lambda ctx: None, lambda ctx, day: None])
def test_a_first_parameter_called_ctx_takes_the_context(function):
    assert register("it", function).takes_context


def test_a_first_parameter_annotated_as_the_context_takes_it_under_any_name():
    def it(run: RunContext, day: str) -> None: ...

    task = register("it", it)
    assert (task.takes_context, set(task.fields)) == (True, {"day"})


def test_a_task_that_is_a_context_free_function_is_called_without_one():
    task = register("it", lambda day, ctx=None: None)
    assert (task.takes_context, set(task.fields), set(task.needed)) == (False, {"day", "ctx"}, {"day"})


def test_a_parameter_that_has_no_name_for_callers_cannot_take_a_field_of_the_payload():
    with pytest.raises(ValueError, match="'day' must be callable by keyword"):
        register("it", lambda ctx, day, /: None)


@pytest.mark.parametrize("name", ["", "x" * 257])
def test_a_task_has_a_name_of_bounded_length(name):
    with pytest.raises(ValueError, match="1-256 characters"):
        Worker().task(name)(print)


@pytest.mark.parametrize("slots", [0, -1, 1001])
def test_slots_are_bounded_as_each_report_lists_every_lease(slots):
    with pytest.raises(ValueError, match="slots must be 1-1000"):
        Worker(slots=slots)


def test_a_worker_speaks_http_or_to_kafka_and_not_both():
    with pytest.raises(ValueError, match="not both"):
        Worker(url="http://127.0.0.1:8440", kafka="127.0.0.1:9092")


def test_who_starts_a_worker_says_last_whom_it_speaks_to():
    worker = Worker(kafka="127.0.0.1:9092")
    worker.configure(slots=3)
    assert (worker.url, worker.kafka) == (None, "127.0.0.1:9092")
    worker.configure(url="http://127.0.0.1:8440")
    assert (worker.url, worker.kafka) == ("http://127.0.0.1:8440", None)
    worker.configure(kafka=Kafka(bootstrap="127.0.0.1:9092"))
    assert (worker.url, worker.kafka) == (None, Kafka(bootstrap="127.0.0.1:9092"))


def test_brokers_that_the_environment_names_wrongly_are_refused_when_the_worker_starts(monkeypatch):
    monkeypatch.setenv("TIDEWHEEL_BOOTSTRAP", "kafka:9092")
    worker = Worker()
    worker.task("it")(print)
    with pytest.raises(SystemExit, match="is not encrypted"):
        worker.run()


def test_tasks_are_bounded_as_each_report_names_them():
    worker = Worker()
    for number in range(1000):
        worker.task(f"it-{number}")(print)
    with pytest.raises(ValueError, match="at most 1000 tasks"):
        worker.task("one-more")(print)


@pytest.mark.parametrize("queue", ["", "a/b", ".hidden", "x" * 129])
def test_a_queue_has_a_name_that_topics_can_have(queue):
    with pytest.raises(ValueError, match="queue name"):
        Worker(queue)


def test_workers_without_a_given_name_never_share_one():
    assert Worker().name != Worker().name
