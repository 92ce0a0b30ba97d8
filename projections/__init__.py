"""WHAT PEOPLE ASK: events in, rows out.

    run-events ─┐
    schedules ──┤
    catalog ────┼─▶ event.read ─▶ batch.fold ─▶ store.writer ─▶ SQL rows ─▶ store.reader ─▶ API, page, CLI
    versions ───┤                  one file a question:
    rejections ─┤                  schedules versions activity occurrences runs attempts backfills story commands
    workers ────┘                  catalog workers breakers

A projection is a table of pure functions: (row or nothing, event) → row. Folds are idempotent, and indifferent to an
event that comes a second time however late: what a row says depends on which events happened, not on how often they
were read. So the rows are a function of the log, and a rebuild gives the live rows again.

`projector` runs it: it reads every partition of the input topics from the positions that stand in the database,
folds a batch in memory, so that the many events of one run become one upsert, and writes rows and positions in
one database transaction.

What a crash does: nothing. The transaction is on disk whole or not at all, and the next start reads on from the
positions that stand beside the rows. A lost or changed database is built anew from the log.
"""
