# Waiting for descriptors (epoll), and descriptors by which one thread wakes another (eventfd).
from libc.stdint cimport uint32_t, uint64_t

cdef extern from "<sys/epoll.h>" nogil:
    ctypedef union epoll_data_t:
        void *ptr
        uint64_t u64
    cdef struct epoll_event:
        uint32_t events
        epoll_data_t data
    enum:
        EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP, EPOLLRDHUP, EPOLLET, EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD
        EPOLL_CLOEXEC
    int epoll_create1(int flags)
    int epoll_ctl(int epoll_fd, int operation, int fd, epoll_event *event)
    int epoll_wait(int epoll_fd, epoll_event *events, int maximum, int timeout)

cdef extern from "<sys/eventfd.h>" nogil:
    int EFD_NONBLOCK, EFD_CLOEXEC
    int eventfd(unsigned int initial, int flags)
