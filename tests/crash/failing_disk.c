/* A disk that fails on demand: preloaded before libc, its calls fail with a chosen errno on chosen paths.
 *
 * What fails stands in a control file that is mapped by the program and by the test that steers it:
 *
 *     int32 error         errno to fail with; 0: everything works
 *     int32 operations    bits, see below
 *     int32 skip          so many matching calls still succeed
 *     int32 hits          calls that failed
 *     char  part[240]     a call matches if its path contains this text
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, SYNC = 2, CREATE = 4, RENAME = 8, RESIZE = 16, READ = 32 };

struct control {
    int32_t error, operations, skip, hits;
    char part[240];
};

static struct control healthy;
static volatile struct control *control = &healthy;

__attribute__((constructor)) static void map_control(void)
{
    const char *path = getenv("FAILING_DISK_CONTROL");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    void *address = mmap(NULL, sizeof healthy, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (address != MAP_FAILED)
        control = address;
}

static int fails(int operation, const char *path)
{
    if (control->error == 0 || !(control->operations & operation) || !strstr(path, (const char *)control->part))
        return 0;
    if (__atomic_fetch_sub(&control->skip, 1, __ATOMIC_RELAXED) > 0)
        return 0;
    __atomic_fetch_add(&control->hits, 1, __ATOMIC_RELAXED);
    errno = control->error;
    return 1;
}

static int fails_open(int operation, int fd)
{
    char link[32], path[PATH_MAX];
    if (control->error == 0 || !(control->operations & operation))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    return fails(operation, path);
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* A call on a descriptor: declared type and name, whole parameter list, arguments, operation. */
#define ON_DESCRIPTOR(type, name, parameters, arguments, operation) \
    type name parameters                                            \
    {                                                               \
        static __typeof__(&name) real;                              \
        if (!real)                                                  \
            real = REAL(name);                                      \
        return fails_open(operation, fd) ? -1 : real arguments;     \
    }

ON_DESCRIPTOR(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size), WRITE)
ON_DESCRIPTOR(ssize_t, writev, (int fd, const struct iovec *v, int count), (fd, v, count), WRITE)
ON_DESCRIPTOR(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at), WRITE)
ON_DESCRIPTOR(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at), WRITE)
ON_DESCRIPTOR(ssize_t, pwritev, (int fd, const struct iovec *v, int count, off_t at), (fd, v, count, at), WRITE)
ON_DESCRIPTOR(ssize_t, pwritev64, (int fd, const struct iovec *v, int count, off64_t at), (fd, v, count, at), WRITE)
ON_DESCRIPTOR(int, fsync, (int fd), (fd), SYNC)
ON_DESCRIPTOR(int, fdatasync, (int fd), (fd), SYNC)
ON_DESCRIPTOR(int, syncfs, (int fd), (fd), SYNC)
ON_DESCRIPTOR(int, ftruncate, (int fd, off_t size), (fd, size), RESIZE)
ON_DESCRIPTOR(int, ftruncate64, (int fd, off64_t size), (fd, size), RESIZE)
ON_DESCRIPTOR(ssize_t, read, (int fd, void *data, size_t size), (fd, data, size), READ)
ON_DESCRIPTOR(ssize_t, pread, (int fd, void *data, size_t size, off_t at), (fd, data, size, at), READ)
ON_DESCRIPTOR(ssize_t, pread64, (int fd, void *data, size_t size, off64_t at), (fd, data, size, at), READ)

ssize_t sendfile(int out, int fd, off_t *at, size_t size)
{
    static __typeof__(&sendfile) real;
    if (!real)
        real = REAL(sendfile);
    return fails_open(READ, fd) ? -1 : real(out, fd, at, size);
}

ssize_t sendfile64(int out, int fd, off64_t *at, size_t size)
{
    static __typeof__(&sendfile64) real;
    if (!real)
        real = REAL(sendfile64);
    return fails_open(READ, fd) ? -1 : real(out, fd, at, size);
}

#define ON_PATH(type, name, parameters, arguments, operation)   \
    type name parameters                                        \
    {                                                           \
        static __typeof__(&name) real;                          \
        if (!real)                                              \
            real = REAL(name);                                  \
        return fails(operation, path) ? -1 : real arguments;    \
    }

ON_PATH(int, rename, (const char *path, const char *target), (path, target), RENAME)
ON_PATH(int, mkdir, (const char *path, mode_t mode), (path, mode), RENAME)

/* open passes its mode on only if there is one. */
#define OPEN(name)                                                      \
    int name(const char *path, int flags, ...)                          \
    {                                                                   \
        static __typeof__(&name) real;                                  \
        va_list list;                                                   \
        va_start(list, flags);                                          \
        mode_t mode = flags & O_CREAT ? va_arg(list, mode_t) : 0;       \
        va_end(list);                                                   \
        if (!real)                                                      \
            real = REAL(name);                                          \
        if ((flags & O_CREAT) && fails(CREATE, path))                   \
            return -1;                                                  \
        return real(path, flags, mode);                                 \
    }

OPEN(open)
OPEN(open64)
