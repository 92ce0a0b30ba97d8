"""The words: commands, facts, definitions, topics and their codec.

Everything that leaves a process or outlives a batch has its shape here. Commands and definitions come from
people and programs we do not control, so they are pydantic models that refuse clearly; facts are ours, so they
are frozen dataclasses that the cores build cheaply and the codec writes as CloudEvents.

    definitions   what a schedule and a job look like, with their defaults
    commands      requests on `schedule-changes`
    facts         what happened, as published
    internal      records that only Tidewheel's own processes read
    codec         dataclass <-> JSON, CloudEvents envelope
    identity      run ids, event ids, which partition a key belongs to
    topics        the topic table
    published/    JSON Schema, AsyncAPI and OpenAPI, generated and committed

A crash does nothing to this package: it holds no state.
"""
