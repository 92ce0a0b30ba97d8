"""The words: commands, facts, definitions, topics and their codec.

Everything that leaves a process or outlives a batch has its shape here. Commands and definitions come from
people and programs we do not control, so they are pydantic models that refuse clearly; facts are ours, so they
are frozen dataclasses that the cores build cheaply and the codec writes as CloudEvents.

    definitions   what a schedule and a job look like, with their defaults
    references, rates   calendars, queues and tenants: what stands in the catalog besides jobs
    commands      requests on `schedule-changes`
    facts         what happened, as published
    internal, scheduling   records and facts that only Tidewheel's own processes read
    envelope      the CloudEvent that a record is, whoever wrote it
    codec         facts <-> records; `writing`, `reading`, `shapes` and `frozen` are how it is fast
    limits, refusals, values   how large, what is wrong with it, instants and durations
    identity      run ids, event ids, which partition a key belongs to
    topics        the topic table
    generate, jsonschema, asyncapi, compat   what is published, and whether it still serves older readers
    published/    JSON Schema, AsyncAPI and OpenAPI, generated and committed
    golden/       a frozen sample of every type; `sample` makes the first one of a new type

A crash does nothing to this package: it holds no state.
"""
