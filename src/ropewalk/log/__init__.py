"""One partition on disk: segments, index, recovery, retention, producer state. Synchronous, on the `Disk` port.

Three places to run things
    On the event loop: everything that is not said to block. It touches memory and the page cache only.
    In the disk pool: what is said to block, and the `run` of work taken from a log. Such work is taken on the loop,
    run in the pool and handed back on the loop, so that a log has one owner:

        data = span.read_cached()             or  await pool.run(span.read); log.on_read(span)
        write = maintenance.take_snapshot(…)  →   await pool.run(write.run); maintenance.on_snapshot(write)
        scrub = maintenance.take_scrub(…)     →   await pool.run(scrub.run); maintenance.on_scrubbed(scrub)
        removal = trimming.take_removal(…)    →   await pool.run(removal.run)
        cut = trimming.take_cut(…)            →   await pool.run(cut.run); trimming.on_cut(cut)
        write = directory.take_log_starts()   →   await pool.run(write.run); write.offset_of(name) is durable

The public face
    storage.Storage(disk)                     what all logs of a node share: disk, open files, loaded indexes
    directory.DataDirectory                   open, partitions, create_partitions, open_log,
                                              delete_partitions, forget_partition, note, take_recovery_points, take_log_starts,
                                              lower_recovery_point, mark_clean; identity, was_clean
    settings.LogSettings                      what a topic decides
    log.Log                                   open (blocks); append, append_marker, append_as_follower; sync_targets,
                                              on_synced, dirty; check_offset, locate, on_read; offset_for_timestamp and
                                              offset_of_max_timestamp (block), end_offset_for_epoch, epoch_at;
                                              stable_offset, aborted_in; places; roll_if_due, close, forget;
                                              start_offset, durable_offset, end_offset, recovery_point, size_bytes,
                                              leader_epoch_latest, damaged, recovered
    log.trimming: trimming.Trimming           plan_start, plan_retention, held_up_by, take_removal; boundary_at (blocks), plan_cut,
                                              take_cut, plan_restart, take_restart, on_cut, give_up_cut;
                                              planned_start_offset
    log.maintenance: maintenance.Maintenance  take_snapshot, take_scrub, take_compaction and what they are handed back to
    log.producers: producers.Producers        active, open_transactions, continues_transaction, repeats, knows
    log.places: places.Places                 last_of: where the state of an owner begins
    log.Appended, SyncTargets, Span, TimedOffset; epochs.EpochEnd; contents.Recovered; damage.DamagedRange

Its files
    log.py, settings.py                       the public face, and what a topic decides
    writer.py, segments.py, segment.py, tail.py   what is written, and where it lies
    reader.py, plan.py, span.py, trust.py, index.py, times.py   what is asked for, found and read
    producers.py, transactions.py, aborted.py, epochs.py, places.py   what a log remembers of who wrote it
    recovery.py, replay.py, scan.py, walk.py, contents.py, partition_files.py, snapshot.py   opening it, and what spares reading it all
    trimming.py, retention.py, truncation.py  becoming shorter, at the start and at the end
    maintenance.py, scrub.py, damage.py, known_damage.py   what is done beside readers and writers, and what it finds
    cleaning.py, cleanable.py, compaction.py, latest.py, rewrite.py, swap.py, transactions_met.py   compaction
    directory.py, checkpoints.py, storage.py, descriptors.py   what all logs of a node share

Life of a log
    `leader_epoch_max`, where the caller knows it, lets recovery tell a rotten epoch from a new one.
    After `open`, if `dirty`, what recovery accepted must be synced before it is shown to anyone.
    Deleting: `plan_start` or `plan_retention`; if it `forgets`, a snapshot, a sync and the recovery points; `directory.note`; write the log starts; `take_removal` with the start
    that is durable now. Stopping: sync, `on_synced`, `close`, run what it returns, `directory.note`; when all logs
    are closed, `mark_clean`.

Invariants
    What owners need of their state is not deleted: their places hold up retention and DeleteRecords.
    What was durable is never cut, given another offset, or served after it rotted.
    Whatever is not a log file can be rebuilt from the log files, and is never believed over them.
"""
