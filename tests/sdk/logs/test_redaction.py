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
