"""docs/guides/names.md has a line for each name on the wire, and keeps what people wrote above them."""

from schemas import names


def test_what_stands_above_the_mark_is_kept_and_what_follows_is_made_anew():
    paths = {"/v1/runs": {"get": {"summary": "Runs | all"}, "parameters": []}, "/v1/a": {"post": {"summary": "A"}}}
    page = names.document(f"# Words\n\n{names.MARK}old lines\n", {"paths": paths})
    assert page.startswith(f"# Words\n\n{names.MARK}\n## Facts\n")
    assert "old lines" not in page
    lines = page.splitlines()
    assert lines[-2:] == ["| `POST /v1/a` | A |", "| `GET /v1/runs` | Runs \\| all |"]
    assert "| `job.run` | One run of a registered job, of no schedule." in page
    (logged,) = [line for line in lines if line.startswith("| `run.logged` |")]
    assert logged.startswith("| `run.logged` | `logs` | Some lines of one attempt")
    (created,) = [line for line in lines if line.startswith("| `run.created` |")]
    assert "`runs`, `run-events`" in created
    assert "`detail`" in created
