"""The consumer: partitions of its own choice or as a member of a group, positions, records.

`assignment` knows what is read and from where; `fetcher` keeps a little more fetched than is asked for; `classic` and
`managed` are the two ways of being in a group; `consumer` is the face.
"""
