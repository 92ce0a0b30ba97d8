"""Where packages come from is each machine's own setting: the repository names no registry."""

from tests.house.repository import files, name

# Put together here, so that this file does not name them either.
HOSTS = tuple(
    ".".join(parts)
    for parts in [
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("npmjs", "com"),
        ("yarnpkg", "com"),
        ("crates", "io"),
        ("proxy", "golang", "org"),
        ("sum", "golang", "org"),
        ("repo", "maven", "apache", "org"),
        ("repo1", "maven", "org"),
        ("deb", "debian", "org"),
        ("security", "debian", "org"),
        ("archive", "ubuntu", "com"),
    ]
)


def test_no_file_names_the_host_of_a_package_registry():
    named = {
        name(path): hosts
        for path in files()
        if (hosts := [host for host in HOSTS if host in path.read_text(encoding="utf-8", errors="replace")])
    }
    assert named == {}
