"""What is wrong with an input, said so that its sender can mend it."""

from __future__ import annotations

from schemas.frozen import frozen


@frozen
class Fault:
    """One thing wrong with an input.

    `pointer` is a JSON pointer (RFC 6901) into the command's data, `code` a stable word for programs,
    `message` says what was wrong, `remedy` what to do instead.
    """

    pointer: str
    code: str
    message: str
    remedy: str = ""


class Refused(Exception):
    """An input that will never be accepted as it stands, with every fault found in it."""

    def __init__(self, *faults: Fault) -> None:
        super().__init__("; ".join(f"{fault.pointer or '/'}: {fault.message}" for fault in faults))
        self.faults = faults
