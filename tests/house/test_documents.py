"""A document leads its reader somewhere: links arrive, and the make targets it names exist."""

import re
from pathlib import Path

import pytest

from tests.house.repository import ROOT, files, name

DOCUMENTS = [path for path in files() if path.suffix == ".md"]
ELSEWHERE = ("http://", "https://", "mailto:")


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_link_to_another_file_or_heading_arrives(document):
    assert [target for target in links(document) if not arrives(document, target)] == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_every_make_target_that_is_named_exists(document):
    named = set(re.findall(r"(?:`|^ {4}|\$ )make ([a-z-]+)", document.read_text(encoding="utf-8"), flags=re.MULTILINE))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert named - targets == set()


def links(document: Path) -> list[str]:
    """The targets of a document's links that stay in the repository. What stands in code is no link."""
    text = re.sub(r"^```.*?^```|`[^`\n]*`", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    targets = re.findall(r"\]\(<?([^)\s>]+)[^)]*\)|^\[[^\]]+\]: (\S+)", text, flags=re.MULTILINE)
    return [target for pair in targets for target in pair if target and not target.startswith(ELSEWHERE)]


def arrives(document: Path, target: str) -> bool:
    path, _, heading = target.partition("#")
    destination = document.parent / path if path else document
    if not destination.exists():
        return False
    return not heading or heading in anchors(destination)


def anchors(document: Path) -> set[str]:
    """The names under which a document's headings can be linked to: lower case, words joined by hyphens."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
