"""The AsyncAPI (3.0) document: every topic with its key, retention and messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from schemas import durations, facts, internal, linking, operations, topics
from schemas.commands import COMMANDS
from schemas.facts import FACTS, Fact
from schemas.topics import Cleanup, Family, Retention, TopicSpec

Document = dict[str, Any]

# What stands on each topic. Changelogs hold rows and decision records, whose form is the runtime's own affair.
CARRIES: Mapping[str, tuple[type[Fact], ...]] = {
    topics.SCHEDULES: (internal.ScheduleCurrent,),
    topics.CATALOG: (facts.CatalogEntry,),
    topics.VERSIONS: (internal.ScheduleVersion,),
    topics.REJECTIONS: (facts.CommandRejected,),
    topics.RUNS: (facts.RunCreated, facts.RunCancelRequested, internal.RunInquired),
    topics.ATTEMPTS: (internal.WorkerReport,),
    topics.REPLIES: (internal.CommandAnswered,),
    topics.LOGS: (internal.RunLogged,),
    topics.RUN_EVENTS: tuple(
        fact for fact in FACTS if fact not in (facts.CatalogEntry, facts.CommandRejected, facts.DeadLetter)
    )
    + linking.IN_STORIES,
    topics.LINKS: linking.ON_LINKS,
    topics.RUN_OUTCOMES: (facts.RunFinished,),
    topics.DEAD_LETTERS: (facts.DeadLetter,),
    topics.OPERATIONS: operations.OPERATIONS,
    topics.WORKERS: (internal.WorkerListed,),
}
_DISPATCH = "dispatch.queue"
_SIZES = {
    Family.SCHEDULE: "one count for all topics keyed by schedule",
    Family.SHARD: "one count for runs, attempts and logs",
    Family.ONE: "1",
    Family.INBOX: str(topics.INBOXES),
    Family.REPLY: str(topics.REPLY_PARTITIONS),
}


def document(version: str) -> Document:
    """AsyncAPI of every topic with its default retention."""
    table = topics.topic_table(Retention())
    channels = {spec.name.removeprefix(topics.PREFIX): _channel(spec, messages_of(spec.name)) for spec in table}
    channels[_DISPATCH] = _dispatch()
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Tidewheel",
            "version": version,
            "description": "Records are structured CloudEvents 1.0. A consumer drops event ids it knows, and ignores "
            "fields and types that it does not know. Channels marked x-internal are documented, not promised.",
        },
        "defaultContentType": "application/cloudevents+json",
        "channels": channels,
        "operations": _operations(channels),
        "components": {"messages": _messages(channels)},
    }


def messages_of(topic: str) -> tuple[str, ...]:
    """The types that stand on a topic."""
    if topic == topics.SCHEDULE_CHANGES:
        return tuple(COMMANDS)
    return tuple(fact.TYPE for fact in CARRIES.get(topic, ()))


def schema_path(type_: str) -> str:
    """Where the schema of a type's data stands, below `published/`."""
    return f"{'commands' if type_ in COMMANDS else 'facts'}/{type_}.json"


def _channel(spec: TopicSpec, types: Iterable[str]) -> Document:
    marks = {"x-internal": True} if spec.internal else {}
    return {
        "address": spec.name,
        **marks,
        "description": f"Key: {spec.key}. Partitions: {_SIZES[spec.family]}.",
        "messages": {type_: {"$ref": f"#/components/messages/{type_}"} for type_ in types},
        "bindings": {"kafka": {"bindingVersion": "0.5.0", "topicConfiguration": _configuration(spec)}},
        "x-key": spec.key,
        "x-retention": _kept(spec),
    }


def _kept(spec: TopicSpec) -> str:
    if spec.retention is None:
        return "until compacted"
    kept = durations.render(spec.retention)
    return f"compacted after {kept}" if spec.cleanup is Cleanup.COMPACT else kept


def _configuration(spec: TopicSpec) -> Document:
    if spec.cleanup is Cleanup.COMPACT:
        return {"cleanup.policy": ["compact"]}
    kept = {} if spec.retention is None else {"retention.ms": spec.retention // timedelta(milliseconds=1)}
    return {"cleanup.policy": ["delete"], **kept}


def _dispatch() -> Document:
    types = (internal.HandOut.TYPE, internal.LeaseNotice.TYPE, internal.QueueLayout.TYPE)
    channel = _channel(topics.dispatch_spec("{queue}", Retention()), types)
    return channel | {"parameters": {"queue": {"description": "A queue's name."}}}


def _operations(channels: Mapping[str, Document]) -> Document:
    """Seen from outside, as AsyncAPI wants it from the application: we receive commands and send facts."""
    return {
        f"{'receive' if name == 'schedule-changes' else 'send'}-{name}": {
            "action": "receive" if name == "schedule-changes" else "send",
            "channel": {"$ref": f"#/channels/{name}"},
        }
        for name, channel in channels.items()
        if channel["messages"] and not channel.get("x-internal")
    }


def _messages(channels: Mapping[str, Document]) -> Document:
    types = sorted({type_ for channel in channels.values() for type_ in channel["messages"]})
    return {type_: _message(type_) for type_ in types}


def _message(type_: str) -> Document:
    data = {"properties": {"type": {"const": type_}, "data": {"$ref": schema_path(type_)}}}
    return {
        "name": type_,
        "contentType": "application/cloudevents+json",
        "payload": {
            "schemaFormat": "application/schema+json;version=draft-2020-12",
            "schema": {"allOf": [{"$ref": "cloudevent.json"}, data]},
        },
    }
