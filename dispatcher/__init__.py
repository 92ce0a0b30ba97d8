"""WHO AND WHAT NEXT: runs and worker reports in; hand-outs, retries and outcomes out. Pure.

A queue is a pool of workers; its shard is one key of this core. A run waits in its shard until a worker with its task
has a free slot, is handed to that worker by name, and is the worker's as long as the worker's reports renew the
lease. Every run reaches exactly one of six outcomes, however workers, owners and reports behave.

    runs ──▶ created, cancel, inquiry ─┐                   ┌─▶ hand-outs, notices ──▶ dispatch.<queue>
                                       ├─▶ [ shard ] ──────┼─▶ the story of each attempt ──▶ run-events
    attempts ──▶ worker reports ───────┘       ▲           ├─▶ one outcome a run ──▶ run-outcomes, dead-letters
    time, and how far evidence is read ────────┘           └─▶ answers ──▶ replies

How to read it, outside in:

    core         what the runtime calls           inputs, routes    records to inputs, facts to records
    reports      what a worker's report tells     cancels           someone asks a run to end
    listing      when people are told of it
    inquiries    the scheduler asks               waking            what is due: leases, timeouts, deadlines, memory
    handing      which run goes to which worker   endings, backoff  what follows when an attempt ends
    evolution    what each fact changes           lifecycle         the tables that every change goes through
    creating     a run comes                      adoption       queues and tenants as the catalog defines them
    shard        the state: rows and indexes      run, leases, bodies, memory    what is stored
                                                  waiting, workforce, pools, deferrals, timers, ordered    indexes
    shares       whose turn it is in a lane       limits, pacing, budgets        what holds a run, and for how long
    portions     what one shard of several may use of a limit
                                                  holds, held                    all that together, and who is told
    breakers, tripping, resets                    what is held because it fails, and who closes it

Choices that are not obvious:

- *An attempt's number counts hand-outs.* A try that was lost before it began has a number of its own, so every
  `attempt.finished` has its own (run, attempt); `counted` says which of them the retry policy counts.
- *Attempts used up means dead-lettered.* Only a job with `max_attempts: 1` has nothing to use up: it ends `failed`, or
  `timed_out` when it took too long, without a dead letter. `failed` else means refused by rule (`never_on`).
- *A cancelled run is never tried again:* once asked to end, however its attempt ends but by success, the run is
  cancelled. A run between two attempts is cancelled at once, and the answer says that it has run before.
- *Only reports renew a lease, and only of what the worker has read.* An unread hand-out is the worker's until its lease
  ends, so a worker that reports and never reads cannot keep a run for ever. Nothing takes it back sooner: it may be
  begun for as long as `start_by` says, a third of a lease, and whoever cannot report stops two thirds later.
- *A run that must begin by an instant is bound until an attempt has begun*, also while a worker has it.
- *What takes a run from a worker is decided against the evidence* (leases, timeouts, deadlines of leased runs): a
  report that stands in the log unread always comes first.
- *A result over 16 KiB* is replaced by `{"truncated": true, "bytes": …, "bytes_max": …}`; the outcome stays.
- *A lost worker counts one over the runs it held towards each of them*; at 2.0, or at three losses in a row, a
  run is quarantined (`dead_lettered`, reason `quarantined`). An attempt that its worker lived through clears it; a
  lease that ran out proves nothing: it burns an attempt instead. A job with which workers are lost one after another
  is a suspect, and tried one run at a time (`breakers`).

What a crash does: nothing is held that is not in rows or follows from them. The next owner loads the rows, works out
the indexes, and gives every lease one fresh period from its own first complete reading. What it reads twice it knows:
runs by their id, reports by their number, results by their lease.
"""
