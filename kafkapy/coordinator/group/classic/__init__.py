"""The classic group protocol: JoinGroup, SyncGroup, Heartbeat and LeaveGroup, with a leader that assigns."""
