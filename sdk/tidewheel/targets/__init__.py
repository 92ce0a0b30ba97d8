"""What a worker can do without a line of Python: run commands that it allows, and call HTTP endpoints.

A definition only *names* what it wants: a command of the worker's allow-list, a URL, a secret. What that means on this
machine, and whether it is allowed at all, stands in the worker's own file of targets.

    settings.py    that file, read strictly
    offers.py      what a worker says it can serve, and how a run is matched with it
    commands.py    one command as a process, its output bounded
      guardian.py    stands between worker and command, so that nothing of it outlives either
    http.py        one request, and what its answer means
      addresses.py   which addresses a request may go to, pure
      network.py     resolves once, checks, and connects to what was checked
      signing.py     Standard Webhooks, pure
    facts.py       what commands and endpoints are told about their run

When a worker dies its commands die with it, at once. A request that is on its way may arrive or not: whoever answers
finds the run's id in it, the same in every attempt.
"""
