"""Seeded bugs: what the simulation must notice, or it proves nothing.

Each file in `patches/` is one small mistake that a tired colleague could make, as a unified diff against the production
code. Before the diff it says where it belongs (`group`), what it breaks (`breaks`), which invariants should catch it
(`caught-by`), where that is not plain what has to happen for it to show (`needs`), and under which weather it is tried
(`under`, see `profiles`; without it a calm hour is enough).

`python -m simulation.mutants` applies one at a time to a copy of the packages and runs the simulation on the copy, seed
by seed, until somebody objects or the seeds are used up. The copy without a mistake must pass all of that first.
"""
