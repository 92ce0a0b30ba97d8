"""A PROCESS: settings, composition and the server's commands."""
