"""Registered tasks: functions by name, and whether a payload fits them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tidewheel.context import RunContext
from tidewheel.errors import PayloadMisfit
from tidewheel.targets import offers
from tidewheel.wire import HandOut

NAME_LENGTH_MAX = 256  # contract


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A function that runs are given to. `fields` are the keywords it takes, `needed` those it can't do without."""

    name: str
    function: Callable[..., Any]
    is_async: bool
    takes_context: bool
    takes_any: bool
    fields: frozenset[str]
    needed: frozenset[str]
    in_process: bool = False

    def arguments(self, context: RunContext, handout: HandOut) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        """What to call the function with; PayloadMisfit names the fields that do not fit."""
        payload = handout.payload
        given = payload.keys()
        if not (self.needed <= given and (self.takes_any or given <= self.fields)):
            raise self._misfit(payload)
        return ((context,) if self.takes_context else ()), payload

    def _misfit(self, payload: Mapping[str, Any]) -> PayloadMisfit:
        missing, unknown = sorted(self.needed - payload.keys()), sorted(payload.keys() - self.fields)
        complaints = [
            *([f"lacks {', '.join(missing)}"] if missing else []),
            *([f"has {', '.join(unknown)}, which the task does not take"] if unknown and not self.takes_any else []),
        ]
        takes = f"{self.name}{inspect.signature(self.function)}"
        return PayloadMisfit(f"the payload of task {self.name!r} {' and '.join(complaints)}; it takes {takes}")


def register(name: str, function: Callable[..., Any], *, isolate: str = "thread") -> Task:
    """A task made of a function; ValueError says why the function can't be one."""
    if not 1 <= len(name) <= NAME_LENGTH_MAX:
        raise ValueError(f"a task's name has 1-{NAME_LENGTH_MAX} characters, not {len(name)}")
    if offers.is_reserved(name):
        raise ValueError(f"a task cannot be called {name!r}: that is what other targets are called")
    if isolate not in {"thread", "process"}:
        raise ValueError(f"task {name!r}: isolate must be 'thread' or 'process', not {isolate!r}")
    parameters = list(inspect.signature(function).parameters.values())
    takes_context = bool(parameters) and _wants_context(parameters[0])
    by_name = parameters[1:] if takes_context else parameters
    for parameter in by_name:
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise ValueError(
                f"task {name!r}: parameter {parameter.name!r} must be callable by keyword, as payloads are"
            )
    named = [each for each in by_name if each.kind in {each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY}]
    return Task(
        name=name,
        function=function,
        is_async=_is_async(function),
        in_process=isolate == "process",
        takes_context=takes_context,
        takes_any=any(each.kind is each.VAR_KEYWORD for each in by_name),
        fields=frozenset(each.name for each in named),
        needed=frozenset(each.name for each in named if each.default is each.empty),
    )


def _wants_context(parameter: inspect.Parameter) -> bool:
    positional = parameter.kind in {parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD}
    annotated = (
        parameter.annotation is RunContext or str(parameter.annotation).split(".")[-1].strip("'\"") == "RunContext"
    )
    return positional and (parameter.name == "ctx" or annotated)


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004 -- whether it is async is asked, not whether it can be called
