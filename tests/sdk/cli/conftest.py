"""The command in front of a server whose answers a test writes."""

import pytest
from click.testing import CliRunner

from tests.sdk.fake_server import Response, in_thread
from tidewheel.cli import main


@pytest.fixture
def requests():
    return []


@pytest.fixture
def routes():
    """(method, path) → answer, or answers one after another; anything else is not found."""
    return {}


@pytest.fixture
def tidewheel_(requests, routes, monkeypatch, tmp_path):
    """Call the command against a server; returns exit code, standard output, standard error."""

    def handle(request):
        requests.append(request)
        missing = Response({"title": "Not Found", "detail": "no such thing"}, 404)
        whole, path = (request.method, request.path), (request.method, request.path.partition("?")[0])
        answer = routes.get(whole) or routes.get(path, missing)
        return answer.pop(0) if isinstance(answer, list) else answer

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("LOGNAME", "ann")
    monkeypatch.delenv("TIDEWHEEL_TENANT", raising=False)
    with in_thread(handle) as url:
        monkeypatch.setenv("TIDEWHEEL_URL", url)

        def call(*arguments, stdin=None):
            result = CliRunner().invoke(main, arguments, input=stdin)
            assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
            return result.exit_code, result.stdout, result.stderr

        yield call
