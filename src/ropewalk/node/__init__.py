"""One node: its configuration, its wiring, its life from start to stop.

    options.py, config.py, settings.py, exposure.py, differing_settings.py
                                    what a node is told, and what is unwise of it
    certificates.py                 those that its doors show, and files that change
    place.py, metadata_home.py      where it stands in its cluster, and where the metadata are kept
    build.py                        everything is put together by hand, each from what stands above it
    instruments.py, account.py      what watches it, and what it says of itself
    doors.py, addresses.py, listening.py, kafka_listeners.py, kafka_door.py, peer_door.py, http_door.py, sqs_door.py
                                    how others reach it
    background.py, life.py          all that runs in the background, and when; start, stop and kill
    main.py, journal.py, demo.py    the process around it

No other room knows how the parts are found.
"""
