"""Second opinions: croniter 7.0 and cronsim 2.8, on what they get right.

Where we leave them out, and why (each fault is shown below, so that this list shrinks when they are mended):

    both       answer in whole minutes after a gap: Monrovia's ends at 00:44:30, they say 00:45
    croniter   reads a range of one number, `5-5`, as the whole field
               takes the whole week `0-6` for `*` beside a day field with a step: the day rule changes
               takes an expression that can never fire
               loses an occurrence in a fold of half an hour (Lord Howe)
               runs a fixed time in both passes of a fold: that is our `both`, and its only policy
    cronsim    reads `a-a/n` as `a/n`
               goes back in time for ever in a fold that begins inside an hour (Chatham)
               lets six-field expressions follow the real clock: no policy, so it is not asked about them
               joins day fields by Debian's rule and runs a fixed time once, in the first pass: our defaults

Neither knows `L-n`, `nW` or a policy; cronsim knows no ranges that wrap.
"""

from datetime import UTC, datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scheduler.occurrences import CronError, CronTrigger, parse, zone
from scheduler.occurrences.cron import DayRule
from tests.scheduler.occurrences.instants import at, cron, due, written

ANSWERS = 12
ZONES = ["UTC", "Europe/London", "America/New_York", "America/Sao_Paulo", "Asia/Kolkata", "Africa/Cairo"]
MOMENTS = st.integers(at("2001-01-01T00:00Z"), at("2060-01-01T00:00Z"))


def fields(low: int, high: int) -> st.SearchStrategy[str]:
    number = st.integers(low, high)
    lists = st.lists(number, min_size=2, max_size=4).map(lambda numbers: ",".join(map(str, numbers)))
    steps = st.integers(2, high - low).map(lambda step: f"*/{step}")
    ranges = st.tuples(st.integers(low, high - 2), st.integers(1, 9), st.integers(1, 5)).map(
        lambda drawn: f"{drawn[0]}-{min(high - 1, drawn[0] + drawn[1])}" + (f"/{drawn[2]}" if drawn[2] > 1 else "")
    )
    return st.one_of(st.just("*"), number.map(str), lists, steps, ranges)


EXPRESSIONS = st.tuples(fields(0, 59), fields(0, 23), fields(1, 31), fields(1, 12), fields(0, 6)).map(" ".join)


def ours(text: str, name: str, start: int, day_rule: DayRule) -> list[int]:
    trigger, answers = CronTrigger(parse(text, day_rule=day_rule), zone(name)), [start]
    while len(answers) <= ANSWERS and (following := trigger.next_after(answers[-1])) is not None:
        answers.append(following)
    return answers[1:]


def local(start: int, name: str) -> datetime:
    return datetime.fromtimestamp(start, UTC) if name == "UTC" else datetime.fromtimestamp(start, ZoneInfo(name))


def by_cronsim(text: str, name: str, start: int, count: int = ANSWERS) -> list[int]:
    return [int(moment.timestamp()) for moment in islice(CronSim(text, local(start, name)), count)]


def by_croniter(text: str, name: str, start: int, count: int = ANSWERS, day_rule: DayRule = "literal") -> list[int]:
    walk = croniter(text, local(start, name), implement_cron_bug=day_rule == "vixie")
    return [int(walk.get_next(datetime).timestamp()) for _ in range(count)]


def readable(text: str) -> bool:
    try:
        parse(text)
    except CronError:
        return False  # it can never fire; that is tested elsewhere
    return True


@given(text=EXPRESSIONS, start=MOMENTS, name=st.sampled_from(ZONES))
@settings(max_examples=150)
def test_cronsim_agrees_on_five_fields_where_gaps_and_folds_begin_with_the_hour(text, start, name):
    assume(readable(text))
    answers = by_cronsim(text, name, start)
    assert answers == ours(text, name, start, "vixie")[: len(answers)]


@given(text=EXPRESSIONS, start=MOMENTS, day_rule=st.sampled_from(["vixie", "literal"]))
@settings(max_examples=100)
def test_croniter_agrees_in_utc_under_both_day_rules(text, start, day_rule):
    assume(readable(text))
    assert by_croniter(text, "UTC", start, day_rule=day_rule) == ours(text, "UTC", start, day_rule)


# -------------------------------------------------------------------------------------- why some things are left out


def test_croniter_reads_a_range_of_one_number_as_the_whole_field():
    assert written(by_croniter("0 0 5-5 * *", "UTC", at("2024-01-01T00:00Z"), 1)) == ["2024-01-02T00:00Z"]
    assert due(cron("0 0 5-5 * *"), "2024-01-01T00:00Z", "2024-02-01T00:00Z") == ["2024-01-05T00:00Z"]


def test_croniter_takes_the_whole_week_beside_a_step_for_a_star():
    assert written(by_croniter("0 0 */4 * 0-6", "UTC", at("2024-01-01T00:00Z"), 1)) == ["2024-01-05T00:00Z"]
    assert written(ours("0 0 */4 * 0-6", "UTC", at("2024-01-01T00:00Z"), "literal"))[0] == "2024-01-02T00:00Z"


def test_croniter_takes_what_can_never_fire():
    assert croniter.is_valid("0 0 31 2 *")


def test_croniter_loses_an_occurrence_in_a_fold_of_half_an_hour():
    start = at("2025-04-05T14:40Z")
    assert written(by_croniter("*/20 * * * *", "Australia/Lord_Howe", start, 1)) == ["2025-04-05T15:30Z"]
    assert written([cron("*/20 * * * *", "Australia/Lord_Howe").next_after(start) or 0]) == ["2025-04-05T15:10Z"]


def test_croniter_runs_a_fixed_time_in_both_passes_of_a_fold():
    start = at("2024-11-02T12:00Z")
    both = ["2024-11-03T05:30Z", "2024-11-03T06:30Z"]
    assert written(by_croniter("30 1 * * *", "America/New_York", start, 2)) == both
    assert due(cron("30 1 * * *", "America/New_York", fold="both"), "2024-11-02T12:00Z", "2024-11-04T00:00Z") == both


def test_cronsim_reads_a_range_of_one_number_with_a_step_as_a_range_to_the_end():
    assert written(by_cronsim("0 4-4/1 * * *", "UTC", at("2024-01-01T04:00Z"), 1)) == ["2024-01-01T05:00Z"]
    assert due(cron("0 4-4/1 * * *"), "2024-01-01T04:01Z", "2024-01-02T05:00Z") == ["2024-01-02T04:00Z"]


def test_cronsim_goes_back_in_time_in_a_fold_that_begins_inside_an_hour():
    answers = by_cronsim("*/15 */3 * * *", "Pacific/Chatham", at("2025-04-05T13:30Z"), 5)
    assert answers != sorted(answers)


def test_cronsim_lets_six_fields_follow_the_real_clock():
    six = by_cronsim("0 30 1 * * *", "America/New_York", at("2024-11-02T12:00Z"), 2)
    assert six[1] - six[0] == timedelta(hours=1).total_seconds()


def test_both_answer_in_whole_minutes_after_a_gap_that_ends_between_two():
    start = at("1972-01-06T12:00Z")
    assert written(by_cronsim("30 0 * * *", "Africa/Monrovia", start, 1)) == ["1972-01-07T00:45Z"]
    assert written(by_croniter("30 0 * * *", "Africa/Monrovia", start, 1)) == ["1972-01-07T00:45Z"]
    assert written([cron("30 0 * * *", "Africa/Monrovia").next_after(start) or 0]) == ["1972-01-07T00:44:30Z"]
