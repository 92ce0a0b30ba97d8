"""The log port on Kafka, and the only place of the server that knows Kafka's client.

- log: the port itself; what there is, who reads and writes;
- settings: how clients are configured, and what users may not change of it. Pure;
- errors: what each error of the client means for us. Pure;
- topics: how topics are made, and what is remembered of them;
- reading, arrivals: a reader of explicit positions, whose partitions take turns;
- producing, doubt: the transactional writer, and when it must be replaced;
- tending, sayings: writers that are idle are listened to; what clients say by themselves is bounded;
- appending: records without a transaction, from any thread;
- membership, claim: our share of a role's partitions, and the right that a commit quotes;
- administration: what operators ask of a cluster.

What a crash does: an open transaction is aborted by the successor's first call, or by the broker when its time is up.
A commit whose outcome nobody heard of is found in the log, whole or not at all.
"""
