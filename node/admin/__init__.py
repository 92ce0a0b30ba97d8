"""What an operator asks and does apart from running a cluster: `tidewheel admin` and `tidewheel audit`.

    wanted      the topics that settings ask for                          pure
    drift       topics as they are against topics as they should be       pure
    command     `tidewheel admin`, as it is said; what it does is loaded only when it is asked for
    options     the options that several commands have
    topics      `admin topics`: make them, compare them, set them right
    losses      what partitions have lost of their inputs, and which of it can be accepted
    gap         `admin accept-gap`: says so, and lets a partition go on
    clock       `admin clock accept`: lets a partition believe its clock
    saying      how a word of an operator gets to the owners
    audit       `tidewheel audit`, as it is said
    auditing    what it does, over whatever holds the topics; node.audit does the counting
    reaching    how these commands are told of a cluster, and what they say when it does not answer

Nothing here runs beside the roles, and they need nothing of it: `serve` makes topics that are missing by itself. An
administrator makes them beforehand where the roles' principals may not, and looks at them when somebody changed them.
"""
