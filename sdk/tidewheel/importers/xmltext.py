"""XML that is elements and text: no document type, so no entities, and nothing is read from anywhere else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.parsers import expat

from tidewheel.importers.report import LeftOut

DEPTH_MAX = 32  # job-scheduling-data has six levels
ELEMENTS_MAX = 500_000  # some ten thousand triggers
BUFFER_BYTES = 1024 * 1024  # text comes in pieces of this size: few enough to be put together one by one


@dataclass(slots=True)
class Element:
    """An element without its namespace. `text` is what stands in it before its first child."""

    tag: str
    line: int
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def all(self, tag: str) -> Iterator[Element]:
        """The children of a name."""
        return (child for child in self.children if child.tag == tag)

    def first(self, *tags: str) -> Element | None:
        """The first child of one of these names."""
        return next((child for child in self.children if child.tag in tags), None)

    def value(self, *tags: str) -> str | None:
        """The text of the first child of one of these names, without blanks around; None when there is none."""
        child = self.first(*tags)
        return None if child is None else child.text.strip()


@dataclass(slots=True)
class _Builder:
    parser: expat.XMLParserType
    open: list[Element] = field(default_factory=list)
    root: Element | None = None
    count: int = 0

    def start(self, tag: str, _attributes: dict[str, str]) -> None:
        self.count += 1
        if self.count > ELEMENTS_MAX or len(self.open) >= DEPTH_MAX:
            raise LeftOut(f"has more than {ELEMENTS_MAX} elements, or more than {DEPTH_MAX} in each other", broken=True)
        element = Element(tag.rpartition(" ")[2], self.parser.CurrentLineNumber)
        if self.open:
            self.open[-1].children.append(element)
        else:
            self.root = element
        self.open.append(element)

    def end(self, _tag: str) -> None:
        self.open.pop()

    def data(self, text: str) -> None:
        if self.open and not self.open[-1].children:
            self.open[-1].text += text


def parse(data: bytes) -> Element:
    """The root of a document, or `LeftOut` with the line."""
    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.buffer_size = BUFFER_BYTES
    builder = _Builder(parser)
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.data
    parser.StartDoctypeDeclHandler = _refuse
    parser.EntityDeclHandler = _refuse
    try:
        parser.Parse(data, True)  # noqa: FBT003 -- the C function takes no names
    except expat.ExpatError as error:
        problem = expat.ErrorString(error.code)
        raise LeftOut(f"line {error.lineno} cannot be read as XML: {problem}", broken=True) from error
    except (LookupError, ValueError) as error:  # an encoding that nobody knows, or that has many bytes a character
        raise LeftOut(f"cannot be read as XML: {error}", broken=True) from error
    assert builder.root is not None, "a document without an element is no XML"
    return builder.root


def _refuse(*_declaration: object) -> None:
    raise LeftOut("has a document type, which may make much of little or read other files: remove it", broken=True)
