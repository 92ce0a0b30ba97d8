"""What the brokers know of a group."""

from __future__ import annotations

from confluent_kafka import ConsumerGroupState
from confluent_kafka.admin import AdminClient, ConsumerGroupDescription

from runtime.logs.kafka.errors import translating
from runtime.logs.kafka.topics import ANSWER_SECONDS, answer, patiently


def unowned(admin: AdminClient, group: str, partitions: int) -> set[int]:
    """Which of a topic's partitions no member has while the brokers take its group for at rest.

    `group` is its name at the brokers. LogError when nobody answers.
    """
    found = patiently(lambda: _described(admin, group))
    if found.state is not ConsumerGroupState.STABLE:
        return set()
    owned = {place.partition for member in found.members for place in member.assignment.topic_partitions or ()}
    return set(range(partitions)) - owned


def _described(admin: AdminClient, group: str) -> ConsumerGroupDescription:
    what = f"asking for the members of {group}"
    with translating(what):
        futures = admin.describe_consumer_groups([group], request_timeout=ANSWER_SECONDS)
    found: ConsumerGroupDescription | None = answer(futures[group], what)
    assert found is not None, "no error is expected here"
    return found
