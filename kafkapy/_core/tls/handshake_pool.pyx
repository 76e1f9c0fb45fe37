"""The threads that run the steps of TLS handshakes, so that a handshake delays no other connection.

The reactor reads the handshake's bytes and sends its answers. In between, a thread of the pool owns the session for one
step, without the interpreter lock. An event descriptor notifies the reactor of completed steps.
"""

import os
import threading

from libc.stdint cimport uint64_t
from libc.string cimport memset
from posix.unistd cimport close, write

from kafkapy._core.tls.events cimport EFD_CLOEXEC, EFD_NONBLOCK, eventfd
from kafkapy._core.tls.threads cimport (
    pthread_cond_broadcast, pthread_cond_destroy, pthread_cond_init, pthread_cond_signal, pthread_cond_wait,
    pthread_mutex_destroy, pthread_mutex_init, pthread_mutex_lock, pthread_mutex_unlock)
from kafkapy._core.tls.tls_session cimport tls_handshake

HANDSHAKE_NICENESS = 5  # a thread of this niceness gets a third of what the reactor's thread gets of a busy core


def lower_priority():
    """Gives the calling thread a lower priority, so that the reactor's thread need not wait for a core."""
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(os.nice(0) + HANDSHAKE_NICENESS, 19))


cdef class HandshakePool:
    """The threads that run steps of handshakes, and the queues of the sessions that wait for a step or are done.

    `start` and `stop` are called by the reactor's thread.
    """

    def __cinit__(self):
        memset(&self.native, 0, sizeof(HandshakeQueues))
        pthread_mutex_init(&self.native.lock, NULL)
        pthread_cond_init(&self.native.not_empty, NULL)
        self.native.event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
        self.threads = []
        if self.native.event_fd < 0:
            raise OSError("no event descriptor for TLS handshakes")

    def __dealloc__(self):
        close(self.native.event_fd)
        pthread_cond_destroy(&self.native.not_empty)
        pthread_mutex_destroy(&self.native.lock)

    def start(self, int thread_count):
        """Starts the threads, if they do not run already."""
        if self.threads:
            return
        self.native.stopping = False
        for number in range(thread_count):
            thread = threading.Thread(target=self.serve, name=f"tls-handshake-{number}", daemon=True)
            self.threads.append(thread)
            thread.start()

    def stop(self):
        """Ends the threads when they have completed their current steps. Sessions may remain in the queues."""
        pthread_mutex_lock(&self.native.lock)
        self.native.stopping = True
        pthread_cond_broadcast(&self.native.not_empty)
        pthread_mutex_unlock(&self.native.lock)
        for thread in self.threads:
            thread.join()
        self.threads = []

    def serve(self):
        lower_priority()
        with nogil:
            run_steps(&self.native)


cdef void run_steps(HandshakeQueues *queues) noexcept nogil:
    """Runs one handshake step of each waiting session, on a thread of the pool, until the pool is stopped."""
    cdef TlsSession *session
    cdef uint64_t one = 1
    while True:
        pthread_mutex_lock(&queues.lock)
        while queues.first == NULL and not queues.stopping:
            pthread_cond_wait(&queues.not_empty, &queues.lock)
        if queues.stopping:
            pthread_mutex_unlock(&queues.lock)
            return
        session = queues.first
        queues.first = session.next
        pthread_mutex_unlock(&queues.lock)
        tls_handshake(session)
        session.next = NULL
        pthread_mutex_lock(&queues.lock)
        if queues.first_done == NULL:
            queues.first_done = session
            write(queues.event_fd, &one, sizeof(one))
        else:
            queues.last_done.next = session
        queues.last_done = session
        pthread_mutex_unlock(&queues.lock)


cdef void pool_submit(HandshakeQueues *queues, TlsSession *session) noexcept nogil:
    session.in_pool = True
    session.next = NULL
    pthread_mutex_lock(&queues.lock)
    if queues.first == NULL:
        queues.first = session
    else:
        queues.last.next = session
    queues.last = session
    pthread_cond_signal(&queues.not_empty)
    pthread_mutex_unlock(&queues.lock)


cdef TlsSession *pool_take_done(HandshakeQueues *queues) noexcept nogil:
    cdef TlsSession *done
    pthread_mutex_lock(&queues.lock)
    done = queues.first_done
    queues.first_done = NULL
    pthread_mutex_unlock(&queues.lock)
    return done


cdef TlsSession *pool_take_waiting(HandshakeQueues *queues) noexcept nogil:
    cdef TlsSession *waiting
    pthread_mutex_lock(&queues.lock)
    waiting = queues.first
    queues.first = NULL
    pthread_mutex_unlock(&queues.lock)
    return waiting
