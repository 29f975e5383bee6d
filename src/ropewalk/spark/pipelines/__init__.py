"""Jobs that run on Spark over topics: what a job is, how it is defined, started, watched and stopped.

pipeline.py     what a kind of pipeline has to offer, and what it is given; catalogue.py  the kinds there are
definition.py   a job from a file and the words of a command line; settings.py  those of a kind: read, and described
session.py      Spark, wherever it is; java.py, hosts.py  whether a job can run there
running.py      one run from its start to its end; starting.py  the same for programs that have a session
progress.py     how far it has come; causes.py  why it failed, in one sentence
showing.py, status.py, metrics.py, status_topic.py   who is told of that: a terminal, a file for `pipeline status`, a monitoring system, the cluster
transform.py    SQL over topics: transform_settings.py  what it can be told; sql_query.py and query_shape.py  the query; row_reading.py  what it sees of rows; judging.py and late_rows.py  what it does not
                see; outputs.py, table_output.py and table_progress.py  where rows go;
                beginnings.py, resuming.py, kept.py, covered.py and rereading.py  where it begins, with a checkpoint and without one
listing.py      kinds, jobs and status, printed; nearest.py  what somebody meant who wrote something else
"""
