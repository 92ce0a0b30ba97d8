"""Dependencies: runs that follow runs of others, occurrences that wait for theirs, and what owners tell each other.

    B is put with after: A         B's owner                     `links`                A's owner
      edges      announces the edge ────────────────▶ EdgeAnnounced ──▶ listeners   lists it
      edges      linked             ◀──────────────── EdgeListed ◀────
    a run of A ends
                                                                       listeners   who wants to know of it
      triggers   noted              ◀──────────────── UpstreamFinished ◀─
      triggers   at its instant: a run, or why there is none

    an occurrence of B is due, `mode: interval`
      awaiting   asks about one window ─────────────▶ WindowAsked ────▶ judging     notes the question
                                                                        judging     when all in it is decided: an answer
      awaiting   hears it            ◀──────────────── WindowJudged ◀──               and another one when that changes
      awaiting   all met: it goes on; or it is skipped, at the latest at its deadline

Each side keeps rows of its own: B an edge for each upstream, A a listener for each schedule that follows it. Nothing
looks at runs that are over: an outcome costs what its listeners cost, however many runs there were.

What arrives twice is dropped. B counts what it announces (`sequence`), A what it reports (`number`), both for ever;
an older announcement changes nothing, and a report that is not newer than the last one leads to nothing. The run is
named after the run that led to it. What waits for an answer asks again, after ten minutes and then ever more rarely.

A question stands in A's rows under the end of its window until that is decided, then under the occurrence that stands
in the way; whatever changes that one's fate judges it again. A run that is over costs what it is waited for, and a
question a few look-ups. A question expires with the wait; a withdrawn edge takes its questions along.

A trigger is decided at the instant at which it was known here, between occurrences and outcomes in their order, so
that decisions do not depend on how the log was cut into batches.
"""
