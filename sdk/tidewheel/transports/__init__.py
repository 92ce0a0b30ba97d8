"""The ways to the owner of a queue.

http.py     through the server's API: post comes in answer to reports
kafka.py    through the log: reports are records of `attempts`, post is read from an inbox
records.py    what the records are and where they stand, pure
reading.py    how much of an inbox has been read, and since when that is known to be all, pure
"""
