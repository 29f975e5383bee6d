"""Reading for consumers and replicas: what is there, who waits for more, and what each reader was told.

    fetch.py            find what is there, wait if that is too little, read it
    fetch_session.py    what one reader follows, and its place in each partition
    fetch_sessions.py   all sessions of the node, and who has to go when there are too many
    nearest.py          which replica a consumer should read from
    leader_throttle.py  how much is sent to replicas that are not in sync

Invariants
    A consumer is never shown what is above the high watermark, a reader of committed records nothing above the last stable offset.
    A fetch costs what has changed since the last one, not what the session holds.
"""
