"""Texts and bytes that nearly are what they should be: most faults of readers stand close to valid input."""

from __future__ import annotations

from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T", str, bytes)

HOSTILE = (
    "", "\0", "\x1b[2J", "\ud800", "\ufeff", "\u202e", "\uffff", "\u0130", "\ufb00", "\u0663", "\u00b2", "\U0001d7db",
    "..", "../../etc/passwd", "%00", "a" * 65_536, "9" * 5_000, "-0", "1e999", "NaN", "Infinity", "null", "true", "[]",
    "{}", "'", '"', "\\", "\n", "\r\n", "_", "-", "~1", "/", "a/b", "a\tb",
)  # fmt: skip
UNICODE = tuple(text for text in HOSTILE if text != "\ud800")
NUMBERS = (0, -1, 1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 0.5, -0.0, 1e308, 5e-324)


def json_values(*, texts: Any = None, leaves: int = 12) -> st.SearchStrategy[Any]:
    """Whatever JSON holds, and now and then what readers stumble over."""
    words = texts if texts is not None else st.text(max_size=8) | st.sampled_from(UNICODE)
    leaf = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.sampled_from(NUMBERS) | words
    leaf = leaf | st.floats(allow_nan=False, allow_infinity=False)
    return st.recursive(
        leaf, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4), max_leaves=leaves
    )


@st.composite
def mutated(draw: st.DrawFn, valid: st.SearchStrategy[T], pieces: st.SearchStrategy[T]) -> T:
    """A valid text in which up to six times a slice was left out, repeated or replaced."""
    text = draw(valid)
    for _ in range(draw(st.integers(1, 6))):
        begin = draw(st.integers(0, len(text)))
        end = draw(st.integers(begin, min(len(text), begin + 12)))
        put = draw(st.sampled_from(["nothing", "piece", "twice"]))
        between = {"nothing": text[:0], "piece": draw(pieces), "twice": text[begin:end] * 2}[put]
        text = text[:begin] + between + text[end:]
    return text


@st.composite
def with_wrong_values(draw: st.DrawFn, document: Any, values: st.SearchStrategy[Any] | None = None) -> Any:
    """Parsed JSON in which one to three places, keys too, hold something else or nothing."""
    changed = document
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(changed))
        place = draw(st.sampled_from(places))
        changed = _changed(
            changed, place, draw(values if values is not None else json_values()), draw(st.integers(0, 5))
        )
    return changed


def _places(value: Any, path: tuple[Any, ...] = ()) -> Any:
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _places(item, (*path, index))


def _changed(value: Any, path: tuple[Any, ...], new: Any, how: int) -> Any:
    if not path:
        return new
    key, *rest = path
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    if rest:
        copy[key] = _changed(value[key], tuple(rest), new, how)
    elif how == 0:
        del copy[key]
    elif how == 1 and isinstance(copy, dict):
        copy[f"{key}_"] = copy.pop(key)
    else:
        copy[key] = new
    return copy
