"""Crontabs as Debian's cron reads them, and what becomes of them."""

import pytest

from tidewheel.importers.crontab import (
    Entry,
    Settings,
    Source,
    command_and_input,
    convert,
    environment,
    has_user_column,
    problem_of,
    read,
)


def entries(text: str, path: str = "crontab") -> list[Entry]:
    return read(Source(path=path, text=text))[0]


def remarks(text: str, path: str = "crontab") -> list[str]:
    return [str(remark) for remark in read(Source(path=path, text=text))[1]]


def names(*sources: Source) -> list[str]:
    return [document["name"] for document in convert(sources, Settings()).documents]


# --- lines ---


def test_an_entry_is_a_time_as_written_and_the_rest_of_the_line():
    [entry] = entries("*/5\t0-6,22 *  * mon-Fri   /bin/tick --all # not a comment\n")
    assert (entry.cron, entry.command) == ("*/5\t0-6,22 *  * mon-Fri", "/bin/tick --all # not a comment")
    assert (entry.line, entry.user, entry.stdin, entry.env) == (1, None, None, {})


def test_blank_lines_and_comments_say_nothing():
    assert entries("\n   \n# 0 0 * * * no\n  # neither\n") == []


@pytest.mark.parametrize("macro", ["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"])
def test_a_word_stands_for_a_time(macro):
    [entry] = entries(f"{macro}   rotate\n")
    assert (entry.cron, entry.command) == (macro, "rotate")


def test_reboot_has_no_time_and_is_left_out():
    assert entries("@reboot start-it\n") == []
    assert remarks("@reboot start-it\n") == [
        "crontab:1: left out: @reboot has no time of its own: start it with the machine, not from a schedule"
    ]


def test_a_line_that_cron_cannot_read_is_left_out_and_the_others_stay():
    text = "0 0 * *\n61 0 * * * a\n0 0 * * * b\n0 0 * * *\n@often c\n"
    assert [entry.command for entry in entries(text)] == ["b"]
    assert remarks(text) == [
        "crontab:1: left out: is neither an entry nor a setting: '0 0 * *'",
        "crontab:2: left out: '61' is no minute",
        "crontab:4: left out: has no command",
        "crontab:5: left out: @often is no time that cron knows",
    ]


def test_cron_would_not_have_read_a_last_line_without_its_newline():
    assert [entry.command for entry in entries("0 0 * * * a")] == ["a"]
    assert remarks("0 0 * * * a") == [
        "crontab:1: cron wants a newline at the end of the last line, and would not have read it"
    ]


# --- settings ---


def test_a_setting_holds_for_the_entries_below_it():
    text = "0 0 * * * a\nPATH=/bin\n0 0 * * * b\nPATH = /usr/bin\nX=1\n0 0 * * * c\n"
    assert [entry.env for entry in entries(text)] == [{}, {"PATH": "/bin"}, {"PATH": "/usr/bin", "X": "1"}]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("A=b", ("A", "b")),
        ("A = b c  ", ("A", "b c")),
        ("A=", ("A", "")),
        ('MAILTO=""', ("MAILTO", "")),
        ("A=' b '", ("A", " b ")),
        ('A="it\'s"', ("A", "it's")),
        ("A=it's", ("A", "it's")),
        ('"A B"=c', ("A B", "c")),
        ("A=$HOME/x # y", ("A", "$HOME/x # y")),
        ("A=b=c", ("A", "b=c")),
        ('A="b" c', None),
        ("0 0 * * * A=b c", None),
        ("@daily A=b c", None),
        ("A b=c", None),
    ],
)
def test_a_setting_is_a_name_an_equals_sign_and_a_value_that_nothing_expands(line, expected):
    assert environment(line) == expected


def test_a_zone_setting_is_the_zone_of_the_schedules_below_it():
    text = "0 0 * * * a\nCRON_TZ=Europe/London\n0 0 * * * b\nCRON_TZ=\nTZ=:Asia/Tokyo\n0 0 * * * c\n"
    documents = convert([Source(path="crontab", text=text)], Settings(timezone="America/New_York")).documents
    assert [document["trigger"]["timezone"] for document in documents] == [
        "America/New_York",
        "Europe/London",
        "Asia/Tokyo",
    ]


@pytest.mark.parametrize("name", ["TZ", "MAILTO", "RANDOM_DELAY"])
def test_a_setting_that_means_something_to_cron_and_not_to_us_is_remarked_upon(name):
    assert [remark.split(" ")[1] for remark in remarks(f"{name}=1\n")] == [name]


# --- commands ---


@pytest.mark.parametrize(
    ("text", "command", "stdin"),
    [
        ("a b", "a b", None),
        ("mail joe%Hi,%%bye%", "mail joe", "Hi,\n\nbye\n"),
        ("mail joe%Hi", "mail joe", "Hi\n"),
        ("cat%", "cat", ""),
        (r"date +\%Y-\%m", "date +%Y-%m", None),
        (r"cat%50\% of it", "cat", "50% of it\n"),
        (r"echo a\\b \n", r"echo a\b \n", None),
        (r"echo \\%x", "echo \\", "x\n"),
        (r"cat%a\\b\n", "cat", r"a\\b\n" + "\n"),
        ("echo \\", "echo \\", None),
    ],
)
def test_an_unescaped_percent_sign_ends_the_command_and_is_a_newline_in_its_input(text, command, stdin):
    assert command_and_input(text) == (command, stdin)


def test_input_is_remarked_upon():
    assert remarks("0 0 * * * cat%x\n") == [
        "crontab:1: what stands behind % is passed on as stdin, for the task to give to the command"
    ]


def test_a_command_that_has_no_text_form_is_left_out():
    assert remarks("0 0 * * * caf\ufffd\n") == [
        "crontab:1: left out: its command is not UTF-8, and JSON has nothing else"
    ]


# --- times ---


@pytest.mark.parametrize(
    "when",
    [
        "* * * * *",
        "*/15 0-23/2 1,15 jan-mar,DEC 0-7",
        "0 0 * * SUN,3",
        "5-10/5,59 0 31 12 *",
        "*/90 * * * *",
        "00 04 * * *",
    ],
)
def test_a_time_that_cron_reads(when):
    assert problem_of(when) is None


@pytest.mark.parametrize(
    ("when", "problem"),
    [
        ("60 * * * *", "'60' is no minute"),
        ("* 24 * * *", "'24' is no hour"),
        ("* * 0 * *", "'0' is no day of month"),
        ("* * * jam *", "'jam' is no month"),
        ("* * * * 8", "'8' is no day of week"),
        ("1/20 * * * *", "'1/20' is no minute"),
        ("*/0 * * * *", "'*/0' is no minute"),
        ("1,,2 * * * *", "'1,,2' is no minute"),
        ("5-64/30 * * * *", "'5-64/30' is no minute"),
        ("* * L * ?", "'L' is no day of month"),
    ],
)
def test_a_time_that_cron_refuses(when, problem):
    assert problem_of(when) == problem


# --- users ---


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("/etc/crontab", "0 0 * * * a b\n", True),
        ("/etc/cron.d/certbot", "0 0 * * * a b\n", True),
        ("/var/spool/cron/crontabs/joe", "0 0 * * * root b\n", False),
        ("tab", "# m h dom mon dow user\tcommand\n0 0 * * * a b\n", True),
        ("tab", "# *  *  *  *  * user-name command to be executed\n0 0 * * * a b\n", True),
        ("tab", "# m h  dom mon dow   command\n0 0 * * * root b\n", False),
        ("tab", "0 0 * * * root b\n@daily www-data c\n", True),
        ("tab", "0 0 * * * root b\n@daily c\n", False),
        ("tab", "", False),
    ],
)
def test_whether_a_user_stands_before_commands_is_found_out(path, text, expected):
    assert has_user_column(Source(path=path, text=text)) is expected


@pytest.mark.parametrize("told", [True, False])
def test_whether_a_user_stands_before_commands_can_be_told(told):
    assert has_user_column(Source(path="/etc/crontab", text="", user_column=told)) is told


def test_the_user_of_a_system_crontab_is_taken_from_its_column():
    [entry] = entries("17 *\t* * *\troot    cd / && run-parts --report /etc/cron.hourly\n", path="/etc/crontab")
    assert (entry.user, entry.command) == ("root", "cd / && run-parts --report /etc/cron.hourly")


def test_the_user_of_a_users_crontab_is_its_owner():
    [entry] = entries("0 0 * * * a\n", path="/var/spool/cron/crontabs/joe")
    assert (entry.user, entry.command) == ("joe", "a")


def test_what_does_not_look_like_a_user_is_remarked_upon():
    assert remarks("0 0 * * * /bin/a b\n", path="/etc/crontab") == [
        "/etc/crontab:1: '/bin/a' does not look like a user: is this a user's own crontab (--user-column no)?"
    ]


def test_a_file_that_cron_ignores_is_remarked_upon():
    assert remarks("0 0 * * * root a\n", path="cron.d/old.dpkg-dist") == [
        "cron.d/old.dpkg-dist:1: cron ignores a file of this name in cron.d; its entries are here all the same"
    ]


# --- definitions ---


def test_an_entry_becomes_a_schedule_that_does_what_cron_did():
    """It runs however many are running, does not catch up, is not retried, and may take a day."""
    text = "SHELL=/bin/bash\n30 4 * * 1 root /usr/bin/backup --all%go\n"
    settings = Settings(tenant="acme", timezone="Europe/Berlin", queue="ops", task="shell.run")
    [document] = convert([Source(path="/etc/cron.d/backup", text=text)], settings).documents
    assert document == {
        "kind": "Schedule",
        "tenant": "acme",
        "name": "backup-backup",
        "labels": {"imported-from": "crontab"},
        "note": "/etc/cron.d/backup:2: 30 4 * * 1 root /usr/bin/backup --all%go",
        "trigger": {"cron": "30 4 * * 1", "timezone": "Europe/Berlin"},
        "catch_up": {"policy": "skip"},
        "overlap": {"policy": "allow_all"},
        "job": {
            "queue": "ops",
            "target": {"type": "task", "name": "shell.run"},
            "payload": {
                "command": "/usr/bin/backup --all",
                "user": "root",
                "env": {"SHELL": "/bin/bash"},
                "stdin": "go\n",
            },
            "timeout": "P1D",
            "retry": {"max_attempts": 1},
        },
    }


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("/usr/local/bin/sync.sh --now", "tab-sync.sh"),
        ("cd /srv/app && ./tick", "tab-tick"),
        ("test -x /usr/sbin/anacron || run-parts /etc/cron.daily", "tab-run-parts"),
        ("[ -x /usr/bin/x ] && x", "tab-x"),
        ("A=1 nice -n sudo /bin/job", "tab-job"),
        ("((", "tab"),
    ],
)
def test_a_schedule_is_named_after_its_file_and_program(command, name):
    assert names(Source(path="tab", text=f"0 0 * * * {command}\n")) == [name]


def test_twins_are_told_apart_by_their_line():
    text = "0 0 * * * a 1\n0 1 * * * a 2\n"
    assert names(Source(path="x/tab", text=text), Source(path="y/tab", text=text)) == [
        "tab-a",
        "tab-a-2",
        "tab-a-1",
        "tab-a-2-2",
    ]


def test_a_command_that_would_be_filled_in_here_is_left_out():
    text = "0 0 * * * docker ps --format '{{.Names}}'\n"
    assert convert([Source(path="tab", text=text)], Settings()).documents == ()
    assert remarks(text) == ["crontab:1: left out: {{.Names}} would be filled in here: put the command into a script"]
