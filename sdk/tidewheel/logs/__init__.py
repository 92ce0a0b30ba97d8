"""What runs write, on its way to the server: captured for each attempt, bounded, redacted, and never in a run's way.

settings.py     what is sent, and what is a secret
redaction.py    secrets out of lines, pure
capture.py      the lines of one attempt, as they come: bounds, cuts, what was left out
sources.py      where they come from: Python's logging, and what is printed
shipping.py     to the server, while the attempt runs and before its end is reported
"""
