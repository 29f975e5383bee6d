"""A directory that holds partitions, and who makes them durable there."""

from ropewalk.broker.group_commit import GroupCommit
from ropewalk.broker.log_starts import LogStarts
from ropewalk.log.directory import DataDirectory


class Home:
    def __init__(self, directory: DataDirectory, log_starts: LogStarts, commits: GroupCommit) -> None:
        self.directory = directory
        self.log_starts = log_starts
        self.commits = commits
