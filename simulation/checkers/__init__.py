"""Judges of what a simulated run left behind: one for each invariant of the product.

Each reads the evidence for itself and shares nothing with the code that it judges: no core, no processor, no restore,
no codec. What they share with each other is how records are read (`reading`).

A checker says how much it looked at: one that observed nothing has proved nothing, and is not to be counted.
"""

from __future__ import annotations

import gc
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path

from schemas.frozen import frozen
from simulation.checkers import (
    atomic,
    bounded,
    cancel_honest,
    clock_monotone,
    compatible,
    conservation,
    deterministic,
    durable,
    evidence_first,
    fenced_attempts,
    heals,
    marks,
    never_early,
    no_secret,
    poison_isolated,
    projection,
    single_writer,
    state_is_fold,
    tenants,
    terminal_once,
    terms,
    unique,
)
from simulation.evidence import Evidence, Violation


@frozen
class Checker:
    """The judge of one invariant. `observed` says how many things it looks at."""

    id: str
    title: str
    check: Callable[[Evidence], Iterable[Violation]]
    observed: Callable[[Evidence], int]


def _checker(id_: str, title: str, module: object) -> Checker:
    check, observed = module.check, module.observed  # type: ignore[attr-defined]  # each module has both
    return Checker(id=id_, title=title, check=check, observed=observed)


CHECKERS: tuple[Checker, ...] = (
    _checker("I1", "unique: one run for an occurrence", unique),
    _checker("I2", "conservation: each due occurrence has one decision", conservation),
    _checker("I3", "single writer: owner epoch and sequence only grow", single_writer),
    _checker("I4", "state is the fold of the log", state_is_fold),
    _checker("I5", "atomic: all that a footer announces is visible", atomic),
    _checker("I6", "fenced attempts: one live lease a run", fenced_attempts),
    _checker("I7", "terminal once: one outcome, never left", terminal_once),
    _checker("I8", "never early: no run before its time", never_early),
    _checker("I9", "heals: without faults all is done, and goes on", heals),
    _checker("I10", "deterministic: one fold, one decision, ids of content", deterministic),
    _checker("I11", "poison isolated: a bad record costs itself", poison_isolated),
    _checker("I12", "tenants isolated: nobody sees another", tenants),
    _checker("I13", "projection converges: made anew it is the same", projection),
    _checker("I14", "cancel honest: the answer matches the log", cancel_honest),
    _checker("I15", "bounded: records, decisions, transactions, attempts", bounded),
    _checker("I16", "compatible: nothing unknown is dropped in silence", compatible),
    _checker("I17", "no secret anywhere", no_secret),
    _checker("I18", "acknowledged is durable, and once", durable),
    _checker("I19", "clock monotone: a mark never goes back", clock_monotone),
    _checker("I20", "terms: what schedules, slots and retries say is kept", terms),
    _checker("I21", "marks: what is said to be decided is decided", marks),
    _checker("I22", "evidence first: nothing is lost unread, nothing late is silent", evidence_first),
)


@frozen
class Verdict:
    """What the checkers found, and how much each of them looked at."""

    violations: tuple[Violation, ...]
    observed: dict[str, int]


def judge(evidence: Evidence, checkers: Iterable[Checker] = CHECKERS) -> Verdict:
    """Ask all checkers. A checker that cannot read the evidence has found something, too."""
    was_on = gc.isenabled()
    gc.disable()  # What is read stays until the end: to look through it for garbage takes a third of the time.
    try:
        return _judge(evidence, checkers)
    finally:
        if was_on:
            gc.enable()


def _judge(evidence: Evidence, checkers: Iterable[Checker]) -> Verdict:
    found: list[Violation] = []
    observed: dict[str, int] = {}
    for checker in checkers:
        try:
            found += checker.check(evidence)
            observed[checker.id] = checker.observed(evidence)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            what = f"cannot be judged: {error!r} in line {where.lineno} of {Path(where.filename).name}"
            found.append(Violation(invariant=checker.id, what=what, where=checker.title))
            observed[checker.id] = 0
    return Verdict(violations=tuple(found), observed=observed)
