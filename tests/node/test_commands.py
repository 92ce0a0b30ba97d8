"""What a word on the command line costs: to say what there is, nothing of the server is loaded."""

import subprocess
import sys

import pytest

SERVER = ("sqlalchemy", "confluent_kafka", "rocksdict", "uvicorn", "fastapi", "pydantic", "scheduler", "dispatcher")
CALL = """
import sys
from tidewheel.cli import main
try:
    main(sys.argv[2:], "tidewheel")
except SystemExit as end:
    assert not end.code, end
print("loaded:", *sorted(set(sys.argv[1].split(",")) & set(sys.modules)))
"""


@pytest.mark.parametrize(
    "words",
    [
        [], ["runs"], ["worker"], ["admin"], ["admin", "topics"], ["admin", "clock", "accept"], ["admin", "accept-gap"],
        ["audit"], ["dev"], ["doctor"], ["serve"],
    ],
)  # fmt: skip
def test_help_is_given_without_the_server_being_loaded(words):
    out = subprocess.run(
        [sys.executable, "-c", CALL, ",".join(SERVER), *words, "--help"], capture_output=True, text=True, check=True
    )
    assert "Usage: tidewheel" in out.stdout
    assert (out.stdout.splitlines()[-1], out.stderr) == ("loaded:", "")
