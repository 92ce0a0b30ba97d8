"""THE DOOR: commands in, queries out, over HTTP."""
