"""WHEN: schedule changes and time in; runs and skipped occurrences out. Pure."""
