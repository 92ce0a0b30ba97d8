"""The promises of the log port, kept by the simulated Kafka: the tests of every adapter, over this one.

Left out, because they promise what a broker does not: that a log in this process delivers at once what is there, that
whatever a fenced producer tries next raises (a begin is only noted by the client), that transactions stand one behind
the other in all partitions, that nothing was fetched ahead of a trim; and because it measures real time, that a poll
waits as long as it may. The last two are told of this log by `test_reading`.
"""

from collections.abc import Iterator

import pytest

from tests.runtime.logs.conformance.test_ends import *  # noqa: F403 -- their tests are what is wanted
from tests.runtime.logs.conformance.test_keeping import *  # noqa: F403
from tests.runtime.logs.conformance.test_membership import *  # noqa: F403
from tests.runtime.logs.conformance.test_reading import *  # noqa: F403
from tests.runtime.logs.conformance.test_topics import *  # noqa: F403
from tests.runtime.logs.conformance.test_transactions import *  # noqa: F403
from tests.runtime.logs.words import SPECS, HandClock
from tests.simulation.kafka.paced import Paced

for _left_out in (
    "pytestmark",  # of the tests of keeping: they run here once
    "test_a_log_in_this_process_delivers_at_once_what_is_there",
    "test_in_this_process_whatever_a_fenced_producer_tries_next_raises",
    "test_in_this_process_transactions_stand_one_behind_the_other_in_all_partitions",
    "test_a_reader_whose_position_was_trimmed_away_is_told_and_the_others_go_on",
    "test_a_poll_without_records_returns_nothing_when_its_time_is_up",
):
    del globals()[_left_out]

# Some tests ask for the logs of this process by name: each name is a seed here.
SEEDS = {"embedded": 1, "lent": 5, "simulated 1": 2, "simulated 2": 3, "seed 4": 4}


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(params=["seed 4"])
def empty_log(request: pytest.FixtureRequest, clock: HandClock) -> Iterator[object]:
    paced = Paced(SEEDS[request.param], clock)
    yield paced.log
    paced.close()


@pytest.fixture
def log(empty_log):
    empty_log.create(SPECS)
    return empty_log
