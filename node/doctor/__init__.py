"""`tidewheel doctor`: what could be wrong with a machine, a folder, a server and a cluster, each with its remedy.

    finding     one thing looked at: ok, worth a note, or wrong
    machine     versions, time zone data, the data folder, the server
    brokers     what is known of a cluster → findings                         pure
    timezones   two time zone databases, side by side
    cluster     asks the brokers, and hands what they say to `brokers`
    looking     all of it, one finding after the other
    command     the command, as it is said; what it does is loaded only when it is asked for

Nothing is changed and nothing written, so it may be run at any time, and beside anything.
"""
