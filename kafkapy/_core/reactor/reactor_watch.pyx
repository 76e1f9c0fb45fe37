"""Descriptors that the reactor watches for their owners, such as listening sockets."""

from libc.errno cimport errno

from kafkapy._core.reactor.reactor_state cimport WATCH_CALLBACK
from kafkapy._core.tls.events cimport EPOLL_CTL_ADD, EPOLL_CTL_DEL, EPOLL_CTL_MOD, EPOLLIN, epoll_ctl, epoll_event


cdef class Watch:
    """A watched descriptor, such as a listening socket, and its callback.

    While the descriptor is readable, the reactor calls the callback in every pass of its loop, in the part of the pass
    that runs Python code (the Python phase). The watch is level triggered. Only the thread that owns it may use it. The
    caller still owns the descriptor.
    """

    def pause(self):
        """Stops the calls of the callback until `resume`."""
        cdef epoll_event event
        if self.fd >= 0 and not self.paused:
            event.events = 0
            event.data.ptr = &self.native
            if epoll_ctl(self.epoll_fd, EPOLL_CTL_MOD, self.fd, &event):
                raise OSError(errno, "epoll_ctl")
            self.paused = True
            self.native.ready = False

    def resume(self):
        cdef epoll_event event
        if self.fd >= 0 and self.paused:
            event.events = EPOLLIN
            event.data.ptr = &self.native
            if epoll_ctl(self.epoll_fd, EPOLL_CTL_MOD, self.fd, &event):
                raise OSError(errno, "epoll_ctl")
            self.paused = False

    def close(self):
        """Ends the calls of the callback. Must be called before the caller closes the descriptor."""
        cdef epoll_event event
        if self.fd >= 0:
            epoll_ctl(self.epoll_fd, EPOLL_CTL_DEL, self.fd, &event)
            self.fd = -1
            self.native.ready = False
            self.watches.remove(self)


cdef Watch open_watch(int epoll_fd, list watches, int fd, object callback):
    cdef epoll_event event
    cdef Watch watch = Watch.__new__(Watch)
    watch.native.kind = WATCH_CALLBACK
    watch.epoll_fd = epoll_fd
    watch.watches = watches
    watch.callback = callback
    watch.fd = fd
    event.events = EPOLLIN
    event.data.ptr = &watch.native
    if epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event):
        raise OSError(errno, "epoll_ctl")
    watches.append(watch)
    return watch
