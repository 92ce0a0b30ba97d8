"""The databases that the read model can stand in; each does what `dialect` asks for, in its own way."""
