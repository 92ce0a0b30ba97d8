"""A model of Kafka under a seed: brokers, the network before them, and the client library that our adapter calls.

Our adapter itself (`runtime.logs.kafka`) is not modelled: `SimulatedKafka` runs its producer, reader and member as they
are, over a client that speaks to a model of the brokers. What a mutant changes there is changed here too.

- protocol: what clients ask and brokers answer; the codes are Kafka's own;
- partition: records, markers, the last stable offset, retention and compaction;
- transactions: the coordinator of the old protocol, in which an end names a producer and an epoch, no transaction;
- groups: the coordinator of the classic group protocol with static members, and the positions of groups;
- broker: topics, and every request handed to whom it concerns. No task of it waits; what it does later it leaves to
  the loop;
- network: latency, loss, late frames and repeated ones, cuts; connections that keep an order until they are renewed;
- client, producer, fetcher, member: what librdkafka does, as far as our adapter can tell;
- log: the port for one process.

Left out: several brokers with leaders of their own (one coordinator that moves stands for them), compression,
authorisation, quotas. Transactions that hang unknown to their coordinator there are only where a test wants them
(`Broker.leaderless`).
"""
