"""How a patch is applied: by its lines, never by its numbers."""

import subprocess

import pytest

from simulation.mutants.patching import Change, DoesNotFit, Hunk, apply, changes, patched, read

DIFF = """\
--- a/one.py
+++ b/one.py
@@ -2,3 +2,2 @@
 b
-c
-d
+C

@@ -9,1 +8,2 @@
 i
+j
--- a/two/three.py
+++ b/two/three.py
@@ -1 +1 @@
-x
+y
"""


def test_a_diff_is_read_file_by_file_and_hunk_by_hunk():
    assert changes(DIFF) == (
        Change(path="one.py", hunks=(Hunk(before="b\nc\nd\n\n", after="b\nC\n\n"), Hunk(before="i\n", after="i\nj\n"))),
        Change(path="two/three.py", hunks=(Hunk(before="x\n", after="y\n"),)),
    )


def test_lines_are_found_wherever_they_are_now():
    change = Change(path="a.py", hunks=(Hunk(before="c\nd\n", after="C\n"),))

    assert patched("new\nnew\na\nb\nc\nd\ne\n", change) == "new\nnew\na\nb\nC\ne\n"


def test_lines_are_whole_lines():
    change = Change(path="a.py", hunks=(Hunk(before="b\n", after="B\n"),))

    assert patched("ab\nb\n", change) == "ab\nB\n"


@pytest.mark.parametrize("source", ["a\nx\n", "b\na\nb\n"])
def test_lines_that_are_gone_or_there_twice_do_not_fit(source):
    change = Change(path="a.py", hunks=(Hunk(before="b\n", after="B\n"),))

    with pytest.raises(DoesNotFit, match=r"a\.py"):
        patched(source, change)


def test_a_patch_says_what_it_is_before_it_says_what_it_changes(tmp_path):
    path = tmp_path / "too-early.patch"
    path.write_text(
        "group: clock and evidence\nbreaks: runs come early\ncaught-by: I2 I8\nneeds: G1\nunder: clocks\n\n" + DIFF
    )

    mutant = read(path)

    assert mutant.name == "too-early"
    assert len(mutant.digest) == 12
    assert (mutant.group, mutant.breaks, mutant.needs) == ("clock and evidence", "runs come early", "G1")
    assert mutant.caught_by == ("I2", "I8")
    assert mutant.under == ("clocks",)
    assert [change.path for change in mutant.changes] == ["one.py", "two/three.py"]


def test_applying_changes_files_under_a_folder_as_git_would(tmp_path):
    diff = "--- a/p/one.py\n+++ b/p/one.py\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"
    patch = tmp_path / "m.patch"
    patch.write_text("group: g\nbreaks: b\ncaught-by: I1\n\n" + diff)
    for folder in ("ours", "theirs"):
        (tmp_path / folder / "p").mkdir(parents=True)
        (tmp_path / folder / "p" / "one.py").write_text("a\nb\nc\n")

    apply(read(patch), tmp_path / "ours")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path / "theirs", check=True)
    subprocess.run(["git", "apply", str(patch)], cwd=tmp_path / "theirs", check=True)

    assert (tmp_path / "ours/p/one.py").read_text() == "a\nB\nc\n"
    assert (tmp_path / "theirs/p/one.py").read_text() == "a\nB\nc\n"


def test_a_patch_is_another_one_when_its_diff_is_and_not_when_it_is_described_better(tmp_path):
    def digest(head: str, diff: str) -> str:
        path = tmp_path / "m.patch"
        path.write_text(f"group: g\nbreaks: {head}\ncaught-by: I1\n\n{diff}")
        return read(path).digest

    assert digest("one", DIFF) == digest("two", DIFF)
    assert digest("one", DIFF) != digest("one", DIFF.replace("+y", "+z"))
