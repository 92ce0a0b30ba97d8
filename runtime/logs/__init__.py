"""Adapters of the log port: `embedded` on one machine, `simulated` under a seed.

Both stand on
- reading: a reader that gives its partitions fair turns and waits without polling;
- producing: a transactional writer that keeps what it sends until it commits;
- keeping: how long superseded records and tombstones stay.

The embedded log is one RocksDB; each file has one duty:
- embedded: the port itself: what there is, who reads what;
- commits: order: offsets, fencing, what is written when and seen when;
- partition: what is known of a partition while the log is open, with its recent records in memory;
- topics, layout: what is created; keys and bytes on the disk;
- upkeep, retention, compaction: how old records go, in bounded steps.

What a crash does: a commit is there whole or not at all; one that had returned is there. Nothing needs repair: the
ends of partitions are found from their last records, and upkeep goes on where its last step was written.
"""
