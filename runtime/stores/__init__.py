"""Adapters of the store port: `rocksdb` on disk, `memory` for tests and the simulation.

`database` is one RocksDB as Tidewheel uses it; the embedded log stands on it too. `quarantine` keeps what could not be
trusted.
"""
