"""Operations that wait for an event or a deadline, whichever comes first."""
