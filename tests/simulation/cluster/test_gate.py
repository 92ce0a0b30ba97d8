"""The way to a database that may be away."""

import pytest

from simulation.cluster.gate import Gate


def test_questions_pass_while_the_database_is_there_and_fail_while_it_is_away():
    gate = Gate()
    gate.passes()
    gate.away = True
    for _ in range(2):
        with pytest.raises(ConnectionError, match="the database is away"):
            gate.passes()
    gate.open()
    gate.passes()


def test_one_question_is_refused_behind_so_many():
    gate = Gate()
    gate.refuse_one(2)
    gate.passes()
    gate.passes()
    with pytest.raises(ConnectionError):
        gate.passes()
    gate.passes()
