"""The shell: runs a pure core over one partition of the log.

    record, machine     values that cores may see: a record, a moment, what a core must offer
    log + logs/         the log port and its adapters
    store + stores/     the store port and its adapters
    clock               the clock port
    processor           read a batch -> decide -> evolve -> stage -> commit once
    restore             changelog -> store, and the rolling forward of a decision whose transaction was torn
    lifecycle           one start/ready/stop contract for everything long-lived
    telemetry           the one list of metric and log-event names

What a crash does: a batch is on the log whole or not at all; the store is never ahead of the log; on the next
start the changelog's tail is replayed from the offset that the store holds.
"""
