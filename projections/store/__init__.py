"""The SQL read model: SQLite in one process, PostgreSQL when several nodes share it.

    tables    what stands where
    dialect   what the two databases do differently: a port, and dialects/ that fill it
    database  which layout of the tables is written and which is shown, while one takes the other's place
    writer    a batch's changes and positions in one transaction; retention
    reader    the questions, each for a tenant or for all, in pages

SQL is spoken here and nowhere else.
"""
