"""The SQL read model: SQLite in one process, PostgreSQL when several nodes share it.

    tables    what stands where
    dialect   the one place where the two databases differ
    by_row    rows a step at a time, by_text    all rows in one step
    database  opening, and forgetting what an older version of the tables wrote
    writer    a batch's changes and positions in one transaction; retention
    reader    the questions, each for a tenant or for all, in pages

SQL is spoken here and nowhere else.
"""
