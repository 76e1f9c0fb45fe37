"""The follower's side of replication: which partitions are fetched from which leader, and what is done with them.

    assignment       partition -> fetcher, a number below num.replica.fetchers
    leader_fetcher   the partitions that one fetcher reads from one leader, and every decision on them; no I/O
    fetch_session    the follower's side of an incremental fetch session (KIP-227); no I/O
    fetch_request    plans -> wire messages, in the versions of the finalized metadata.version
    partition_log    the local log of a followed partition
    fetch_connection one fetcher's connection to its leader, on the reactor; one request in flight
    fetcher_manager  starts and stops fetching as roles change

It is imported when this broker first follows another one.
"""
