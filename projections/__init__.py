"""WHAT PEOPLE ASK: events in, rows out."""
