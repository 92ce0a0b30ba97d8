"""Dependencies: runs of one schedule that follow runs of others, and what their owners tell each other about it.

    B is put with after: A         B's owner                     `links`                A's owner
      edges      announces the edge ────────────────▶ EdgeAnnounced ──▶ listeners   lists it
      edges      linked             ◀──────────────── EdgeListed ◀────
    a run of A ends
                                                                       listeners   who wants to know of it
      triggers   noted              ◀──────────────── UpstreamFinished ◀─
      triggers   at its instant: a run, or why there is none

Each side keeps rows of its own: B an edge for each upstream, A a listener for each schedule that follows it. Nothing
looks at runs that are over: an outcome costs what its listeners cost, however many runs there were.

What arrives twice is dropped. B counts what it announces (`sequence`), A what it reports (`number`), both for ever;
an older announcement changes nothing, and a report that is not newer than the last one leads to nothing. The run is
named after the run that led to it. What waits for an answer asks again, after ten minutes and then ever more rarely.

A trigger is decided at the instant at which it was known here, between occurrences and outcomes in their order, so
that decisions do not depend on how the log was cut into batches.
"""
