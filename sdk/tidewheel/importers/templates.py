"""CloudFormation templates: YAML with its short tags, or JSON, and what of their functions can be worked out here.

A function becomes its long form (`!Ref X` is `{"Ref": "X"}`), as in JSON. Of a reference to a parameter the default is
taken; what only the deployment knows stands as `${Name}` and is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from tidewheel import yamltext
from tidewheel.importers.writing import FILE_BYTES_MAX

DEPTH_MAX = 32  # functions in functions: CloudFormation itself takes a few
NO_VALUE = "AWS::NoValue"
UNKNOWN = "${"  # begins what only the deployment knows
_CALLS = re.compile(r"\$\{([^!}][^}]*)\}")


class Loader(yamltext.Loader):
    """Takes short tags for the functions that they stand for."""

    characters_max = FILE_BYTES_MAX


def _function(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    if not node.tag.startswith("!") or len(node.tag) == 1:
        return yamltext.Loader.yaml_constructors[None](loader, node)
    name = node.tag[1:]
    value = _VALUES[type(node)](loader, node)
    if name == "GetAtt" and isinstance(value, str):
        value = value.split(".", 1)
    return {name if name in {"Ref", "Condition"} else f"Fn::{name}": value}


_VALUES = {
    yaml.ScalarNode: yamltext.Loader.yaml_constructors["tag:yaml.org,2002:str"],
    yaml.SequenceNode: yamltext.Loader.yaml_constructors["tag:yaml.org,2002:seq"],
    yaml.MappingNode: yamltext.Loader.yaml_constructors["tag:yaml.org,2002:map"],
}
Loader.yaml_constructors = {**yamltext.Loader.yaml_constructors, None: _function}


def is_function(value: Any) -> bool:
    """Whether a value is a function in its long form."""
    if not isinstance(value, dict) or len(value) != 1:
        return False
    name = next(iter(value))
    return name in {"Ref", "Condition"} or name.startswith("Fn::")


def functions_in(value: Any) -> Iterator[str]:
    """The names of the functions that a value holds, as they are written in YAML."""
    if is_function(value):
        yield "!" + str(next(iter(value))).removeprefix("Fn::")
    below = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for each in below:
        yield from functions_in(each)


def defaults(template: Mapping[str, Any]) -> dict[str, str]:
    """What parameters are when the deployment says nothing else."""
    parameters = template.get("Parameters")
    found = parameters.items() if isinstance(parameters, dict) else ()
    return {
        name: _text(each["Default"])
        for name, each in found
        if isinstance(each, dict) and isinstance(each.get("Default"), (str, int, float))
    }


def resolved(value: Any, known: Mapping[str, str], depth: int = DEPTH_MAX) -> Any:
    """A value without functions."""
    if depth <= 0:
        return f"{UNKNOWN}…}}"
    if is_function(value):
        [(name, argument)] = value.items()
        return _call(name, argument, known, depth - 1)
    if isinstance(value, dict):
        below = {key: resolved(each, known, depth) for key, each in value.items()}
        return {key: each for key, each in below.items() if not (each is None and is_function(value[key]))}
    if isinstance(value, list):
        return [resolved(each, known, depth) for each in value]
    return value


def _call(name: str, argument: Any, known: Mapping[str, str], depth: int) -> Any:
    if name == "Ref" and isinstance(argument, str):
        return None if argument == NO_VALUE else known.get(argument, f"{UNKNOWN}{argument}}}")
    if name == "Fn::GetAtt" and isinstance(argument, list):
        return f"{UNKNOWN}{'.'.join(str(each) for each in argument)}}}"
    if name == "Fn::Sub":
        return _substituted(argument, known, depth)
    if name == "Fn::Join" and isinstance(argument, list) and len(argument) == 2:  # noqa: PLR2004 -- separator and parts
        separator, parts = argument[0], resolved(argument[1], known, depth)
        if isinstance(separator, str) and isinstance(parts, list):
            return separator.join(_text(each) for each in parts)
    return f"{UNKNOWN}{name}}}"


def _substituted(argument: Any, known: Mapping[str, str], depth: int) -> str:
    text, own = argument, {}
    if isinstance(argument, list) and argument:
        text = argument[0]
        given = resolved(argument[1], known, depth) if len(argument) > 1 else {}
        own = {key: _text(each) for key, each in given.items()} if isinstance(given, dict) else {}
    if not isinstance(text, str):
        return f"{UNKNOWN}Fn::Sub}}"
    values = {**known, **own}
    filled = _CALLS.sub(lambda call: values.get(call[1].strip(), call[0]), text)
    return filled.replace("${!", UNKNOWN)


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
