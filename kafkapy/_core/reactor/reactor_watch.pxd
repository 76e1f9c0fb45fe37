# Watched descriptors, and the functions of epoll.
from libc.stdint cimport uint32_t

cdef extern from "<sys/epoll.h>" nogil:
    ctypedef union epoll_data_t:
        void *ptr
    cdef struct epoll_event:
        uint32_t events
        epoll_data_t data
    enum:
        EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP, EPOLLRDHUP, EPOLLET, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD
        EPOLL_CLOEXEC
    int epoll_create1(int flags)
    int epoll_ctl(int epoll_fd, int operation, int fd, epoll_event *event)
    int epoll_wait(int epoll_fd, epoll_event *events, int maximum, int timeout)

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
