"""What users install: the client, the worker and the command line of Tidewheel."""
