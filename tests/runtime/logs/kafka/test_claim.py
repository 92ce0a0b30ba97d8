"""The right to a partition: what is quoted for it, and how it ends."""

import sys
from threading import Thread

import pytest

from runtime.log import Fenced, LogError
from runtime.logs.kafka.claim import Claim, generation, identity
from tests.runtime.logs.words import DEADLINE


def membership(number: int) -> bytes:
    return b"CGMDv2:" + number.to_bytes(4, sys.byteorder, signed=True) + b"group\0member\0\1"


@pytest.mark.parametrize("number", [-1, 0, 1, 2**31 - 1])
def test_the_generation_stands_in_a_captured_membership(number):
    assert generation(membership(number)) == number


def test_we_are_the_same_to_a_group_in_every_generation_until_it_knows_us_by_another_id():
    assert identity(membership(4)) == identity(membership(5)) == b"group\0member\0\1"
    assert identity(membership(5).replace(b"member", b"member-2")) != identity(membership(5))


def test_a_membership_in_a_form_unknown_to_us_is_an_error_and_not_guessed_at():
    with pytest.raises(LogError, match="unknown"):
        generation(b"CGMDv3:....")


def test_the_newest_capture_is_quoted_and_one_without_a_generation_never():
    claim = Claim("scheduler partition 3")
    claim.capture(membership(4))
    claim.capture(membership(-1))
    assert claim.membership() == membership(4)
    claim.capture(membership(5))
    assert claim.membership() == membership(5)


def test_a_claim_that_has_ended_quotes_nothing_and_does_not_come_back():
    claim = Claim("scheduler partition 3")
    claim.capture(membership(4))
    claim.end("the group has asked for it")
    claim.end("we have left the group")
    claim.capture(membership(5))
    for attempt in (claim.check, claim.membership, lambda: claim.settle(membership(4), DEADLINE)):
        with pytest.raises(Fenced, match="scheduler partition 3 is not ours any more: the group has asked for it"):
            attempt()


def test_after_a_refusal_a_newer_membership_is_waited_for():
    claim = Claim("scheduler partition 3")
    claim.capture(membership(4))
    thread = Thread(target=claim.capture, args=(membership(5),))
    thread.start()
    claim.settle(membership(4), DEADLINE)
    thread.join()
    assert claim.membership() == membership(5)


def test_who_hears_nothing_after_a_refusal_has_lost_the_partition():
    claim = Claim("scheduler partition 3")
    claim.capture(membership(4))
    with pytest.raises(Fenced, match="without us"):
        claim.settle(membership(4), 0.01)
