"""`make` alone tells a newcomer what there is."""

import re
import subprocess

import pytest

from tests.house.repository import ROOT

PROMISED = [
    "setup",
    "check",
    "test",
    "sim",
    "acceptance",
    "bench",
    "storm",
    "storm-workers",
    "kafka",
    "generate",
    "verify",
    "dev",
    "demo",
    "docs",
    "format",
    "lock",
    "help",
]


@pytest.fixture(scope="module")
def help_text():
    done = subprocess.run(["make"], cwd=ROOT, capture_output=True, text=True, timeout=30, check=True)
    return re.sub(r"\x1b\[\d*m", "", done.stdout)


def test_make_alone_lists_every_target_that_has_a_comment_with_its_comment(help_text):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    documented = dict(re.findall(r"^([\w-]+):.*?## (.+)$", makefile, flags=re.MULTILINE))
    listed = dict(re.findall(r"^ +([\w-]+) +(.+)$", help_text, flags=re.MULTILINE))
    assert listed == documented


@pytest.mark.parametrize("target", PROMISED)
def test_a_target_that_people_rely_on_is_there(help_text, target):
    assert re.search(rf"^ +{target} ", help_text, flags=re.MULTILINE)
