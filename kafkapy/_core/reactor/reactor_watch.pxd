# Watched descriptors.
cdef struct WatchState:
    int kind                        # WATCH_CALLBACK or WATCH_WAKEUP
    bint ready                      # its callback is due in the Python phase

cdef class Watch:
    cdef WatchState native
    cdef int epoll_fd               # the reactor's
    cdef list watches               # the reactor's open watches
    cdef object callback
    cdef readonly int fd            # -1 once closed
    cdef bint paused

# Begins to watch a descriptor, and adds the Watch to `watches`, the open watches of the reactor. Raises OSError.
cdef Watch open_watch(int epoll_fd, list watches, int fd, object callback)
