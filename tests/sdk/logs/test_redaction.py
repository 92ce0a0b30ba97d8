"""Secrets do not leave the worker in a log: those that are known, and what is written like one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel import Kafka, Logs
from tidewheel.logs.redaction import Redaction

KNOWN = Redaction(["s3cr3t-value", "p@ss/word", 'quo"te\nline two'])


@pytest.mark.parametrize(
    ("written", "hidden"),
    [
        ("it is s3cr3t-value!", "it is ***!"),
        ("postgres://u@h/?p=p%40ss%2Fword", "postgres://u@h/?p=***"),
        ('{"x": "quo\\"te\\nline two"}', '{"x": "***"}'),
        ("and line two of it", "and *** of it"),
        ("nothing", "nothing"),
    ],
)
def test_a_known_secret_is_hidden_in_whatever_form_it_stands(written, hidden):
    assert KNOWN.hide(written) == hidden


@pytest.mark.parametrize(
    ("written", "hidden"),
    [
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("{'authorization': 'Basic dXNlcjpwYXNz'}", "{'authorization': 'Basic ***'}"),
        ("Authorization: Digest username", "Authorization: Digest ***"),
        ("sent Bearer 0123456789abcdef to it", "sent Bearer *** to it"),
        ("Set-Cookie: session=1; HttpOnly", "Set-Cookie: ***"),
        ("password=hunter2&user=ann", "password=***&user=ann"),
        ('{"db_password": "hunter 2", "user": "ann"}', '{"db_password": ***, "user": "ann"}'),
        ("DB_PASSWORD_FILE=/run/x", "DB_PASSWORD_FILE=***"),
        ("api-key: 12345", "api-key: ***"),
        ("client_secret='a b'", "client_secret=***"),
        ("postgresql://ann:hunter2@db-1:5432/x", "postgresql://ann:***@db-1:5432/x"),
        ("eyJhbGciOi.eyJzdWIi.c2ln", "***"),
        ("AKIAIOSFODNN7EXAMPLE", "***"),
        ("ghp_0123456789012345678901234567890123456789", "***"),
        ("the token ran out", "the token ran out"),
        ("http://db-1:5432/path", "http://db-1:5432/path"),
        ("secretary: Ann", "secretary: ***"),
    ],
)
def test_what_is_written_like_a_secret_is_hidden(written, hidden):
    assert Redaction().hide(written) == hidden


def test_a_private_key_is_hidden_in_as_many_lines_as_it_had():
    written = "before\n-----BEGIN RSA PRIVATE KEY-----\nMIIE\nabcd\n-----END RSA PRIVATE KEY-----\nafter"
    hidden = "before\n-----BEGIN RSA PRIVATE KEY-----***\n\n\n-----END RSA PRIVATE KEY-----\nafter"
    assert Redaction().hide(written) == hidden


BEGIN, END = "-----BEGIN EC PRIVATE KEY-----", "-----END EC PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("pieces", "hidden"),
    [
        (["a", BEGIN, "MIIE", "abcd", END, "b"], ["a", f"{BEGIN}***", "***", "***", END, "b"]),
        ([f"a\n{BEGIN}\nMIIE", f"abcd\n{END}\nb"], [f"a\n{BEGIN}***\n", f"***\n{END}\nb"]),
        ([f"abcd\n{END}\nb", "c"], [f"***\n{END}\nb", "c"]),  # its beginning was left out
        ([BEGIN, f"MIIE\n{BEGIN}\nMIIF\n{END}", "b"], [f"{BEGIN}***", f"***\n{BEGIN}***\n\n{END}", "b"]),
        (["a", "b"], ["a", "b"]),
    ],
)
def test_a_private_key_that_comes_in_pieces_is_hidden_in_all_of_them(pieces, hidden):
    found, left = [], 0
    for piece in pieces:
        text, left = Redaction().hide_on(piece, left)
        found.append(text)
    assert found == hidden


def test_a_private_key_that_never_ends_hides_no_more_than_a_key_has():
    _, left = Redaction().hide_on(BEGIN, 0)
    shown = 0
    for _ in range(20):
        text, left = Redaction().hide_on("x" * 999 + "\n", left)
        shown += text.startswith("x")
    assert shown == 3  # 17 of them are 16 KiB


@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "part", ["eyJ-", "token", "bearer ", "a.b://", "aa://x:", "password= ", "cookie", "ghp_", f"{BEGIN}x", 'token="']
)
def test_a_text_costs_its_length_whatever_stands_in_it(part):
    """Other runs of the worker wait meanwhile, and so do its reports."""
    text = part * (128 * 1024 // len(part))
    assert Redaction(["s3cr3t-value"]).hide_on(text, 0)[0].count("\n") == 0


def test_ones_own_patterns_hide_what_they_match_or_their_secret():
    redaction = Redaction(patterns=["customer-[0-9]+", "iban (?P<secret>[A-Z0-9]+)"])
    assert redaction.hide("customer-17 has iban DE02") == "*** has iban ***"


def test_short_values_are_not_hidden_as_they_stand_in_other_words():
    assert Redaction(["on", ""]).hide("only once") == "only once"


@given(st.text(alphabet=st.sampled_from("ab\n=:\"' password-Bearer/@."), max_size=200))
def test_hiding_never_changes_how_many_lines_there_are(text):
    assert KNOWN.hide(text).count("\n") == text.count("\n")


# --- what is said to be a secret ---


def test_variables_that_are_called_like_secrets_are_secrets():
    environment = {"DB_PASSWORD": "a-b-c-d", "Api_Key": "e-f-g-h", "HOME": "/root", "GITHUB_TOKEN": "i-j-k-l"}
    assert Logs().secrets_in(environment) == ["a-b-c-d", "e-f-g-h", "i-j-k-l"]


def test_of_a_json_value_each_text_is_secret_however_deep():
    environment = {
        "DB_CREDENTIALS": '{"user": "ann-b", "more": {"pass": ["hunter2-x", 7]}}',
        "TOKENS": '["t-1", "t-2"]',
    }
    assert Logs().secrets_in(environment) == ["ann-b", "hunter2-x", "t-1", "t-2"]
    assert Logs().secrets_in({"MY_TOKEN": "12345678"}) == ["12345678"]


def test_more_names_may_be_said_also_with_stars():
    logs = Logs(secret_names=("DSN", "ACME_*"))
    assert logs.secrets_in({"DSN": "x", "ACME_A": "y", "OTHER": "z"}) == ["x", "y"]


def test_of_kafkas_properties_only_what_lets_one_in_is_secret():
    text = '{"security.protocol": "SASL_SSL", "sasl.password": "p-w", "sasl.mechanism": "PLAIN"}'
    assert Logs().secrets_in({"TIDEWHEEL_KAFKA": text}) == ["p-w"]
    kafka = Kafka(bootstrap="127.0.0.1:1", properties={"sasl.password": "p-w", "security.protocol": "SASL_PLAINTEXT"})
    assert kafka.secrets() == ["p-w"]


def test_the_environment_says_what_is_sent_and_what_is_hidden():
    logs = Logs.of_environment({
        "TIDEWHEEL_LOGS": "off", "TIDEWHEEL_LOG_SECRETS": "DSN, ACME_*", "TIDEWHEEL_LOG_PATTERNS": '["a+"]',
    })  # fmt: skip
    assert logs == Logs(enabled=False, secret_names=("DSN", "ACME_*"), patterns=("a+",))
    assert Logs.of_environment({}) == Logs()


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"TIDEWHEEL_LOGS": "maybe"}, "on or off"),
        ({"TIDEWHEEL_LOG_PATTERNS": "a+"}, "a JSON list"),
        ({"TIDEWHEEL_LOG_PATTERNS": '["("]'}, "is no regular expression"),
    ],
)
def test_what_cannot_be_is_refused_with_its_name(environment, words):
    with pytest.raises(ValueError, match=words):
        Logs.of_environment(environment)
