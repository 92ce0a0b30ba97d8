"""The demonstration: a few schedules, and the tasks they run."""
