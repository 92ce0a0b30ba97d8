"""The locks say exactly what is installed, and agree with what the distributions ask for."""

import re
import tomllib
from collections.abc import Iterable

import pytest

from tests.house.repository import ROOT

RUN, DEVELOPMENT = "requirements.txt", "requirements-dev.txt"


@pytest.mark.parametrize("lock", [RUN, DEVELOPMENT])
def test_a_lock_pins_each_package_to_a_version_with_hashes(lock):
    requirements = re.split(r"\n(?=\S)", (ROOT / lock).read_text(encoding="utf-8").strip())
    pinned = re.compile(r"[a-z0-9-]+==\S+ \\\n +--hash=sha256:[0-9a-f]{64}|# ")
    assert [requirement for requirement in requirements if not pinned.match(requirement)] == []


@pytest.mark.parametrize("lock", [RUN, DEVELOPMENT])
def test_a_lock_names_no_index_and_no_place_to_download_from(lock):
    text = (ROOT / lock).read_text(encoding="utf-8")
    assert re.findall(r"^--.*|https?:\S+|file:\S+", text, flags=re.MULTILINE) == []


def test_the_lock_for_development_has_the_versions_that_users_run():
    development = versions(DEVELOPMENT)
    assert {package: development.get(package) for package in versions(RUN)} == versions(RUN)


def test_the_lock_for_running_asks_for_what_the_distributions_need_and_their_build_backend():
    asked = {package(line) for line in lines("requirements.in")}
    server, sdk = distribution("pyproject.toml"), distribution("sdk/pyproject.toml")
    assert asked == (server | sdk | {"editables", "hatchling"}) - {"tidewheel"}


def test_each_requirement_has_an_answer_in_its_lock():
    for source, lock in [("requirements.in", RUN), ("requirements-dev.in", DEVELOPMENT)]:
        assert {package(line) for line in lines(source)} - set(versions(lock)) == set()


def versions(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", (ROOT / lock).read_text(encoding="utf-8"), flags=re.MULTILINE))


def lines(source: str) -> list[str]:
    """The requirements in a file that a person edits, without comments and references to other files."""
    return re.findall(r"^[^#\s-].*", (ROOT / source).read_text(encoding="utf-8"), flags=re.MULTILINE)


def distribution(project: str) -> set[str]:
    dependencies: Iterable[str] = tomllib.loads((ROOT / project).read_text(encoding="utf-8"))["project"]["dependencies"]
    return {package(line) for line in dependencies}


def package(requirement: str) -> str:
    return re.split(r"[^A-Za-z0-9._-]", requirement, maxsplit=1)[0].lower().replace("_", "-")
