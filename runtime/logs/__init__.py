"""Adapters of the log port: `embedded` on one machine, `simulated` under a seed.

- reading: a reader that gives its partitions fair turns and waits without polling.
- producing: a transactional writer that keeps what it sends until it commits.
- embedded: the log in one RocksDB. Its duty is order: offsets, fencing, commits, who sees what and when.
  Beside it stand layout (keys and bytes on the disk), partition (what is known of a partition, with its recent
  records in memory), and retention and compaction (the two ways in which old records go).
- simulated: the same promises in memory, with chance from a seed where the port leaves freedom.
"""
