"""A whole cluster in one process: one seed draws one set of options, and gives one exact history.

    options   what a seed draws: sizes, limits, and which faults happen how often (swarm: a random few of them)
    hour      what the cluster is asked to do: the same twelve schedules in every seed
    agenda    all of it, and what the seed's `situations` add: long runs, full queues, namesakes, changes of clocks
    node      processes of the roles, composed as `node/` does, on machines with a clock and a disk of their own
    newer     processes of the next version, as far as the rules of compatibility say what that may be
    worker    workers that behave as the SDK does, and a ledger of what user code really ran
    client    API calls with retries, each ending ok, failed or unknown
    askers    and callers whom only some situations know; `redoing` has one who reads what became of runs
    targets   what endpoints and commands answer where runs name no task
    upstream  who publishes what should not be published
    storm     the faults over time; `membership` has those of groups, `disks` those of disks
    occasions what situations bring about over time
    onlooker  somebody who looks at the read model
    world     all of it together: an hour under faults (safety), then at most 15 minutes without (everything drains)
    verdict   the evidence, the checkers over it, and what the second phase must reach

Everything between the ports is production code. Log and network are `simulation.kafka`, time is `simulation.loop`.
"""
