"""Where several partitions end, in one question."""

import pytest

from runtime.log import UnknownTopic
from runtime.record import TopicPartition
from tests.runtime.logs.words import E0, E1, O0, to


def test_the_ends_of_many_partitions_are_those_of_each(log):
    log.append([*to(E0, "a", "b"), *to(O0, "c")])
    ends = log.end_offsets([E0, E1, O0])
    assert ends == {E0: log.end_offset(E0), E1: log.end_offset(E1), O0: log.end_offset(O0)}
    assert ends[E0] - ends[E1] == 2


def test_the_end_of_what_does_not_exist_is_asked_for_in_vain(log):
    with pytest.raises(UnknownTopic):
        log.end_offsets([E0, TopicPartition("absent", 0)])
