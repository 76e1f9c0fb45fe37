/* A file system that fails on demand: it passes every request on to a folder, or answers it with a chosen errno.
 *
 *     failing_filesystem SOURCE MOUNT_POINT CONTROL_FILE
 *
 * It speaks the kernel's FUSE protocol on /dev/fuse and needs no library, but the right to mount. The control file is
 * that of failing_disk.c, with one more operation, NAMES. The program prints "ready" once it has mounted. It unmounts
 * and ends when its standard input ends, so that no mount outlives the test.
 *
 * An inode of the mounted file system is an entry of `nodes`: a descriptor of the inode of the source (O_PATH), whose
 * path the kernel knows. One thread handles all requests.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fuse.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, SYNC = 2, CREATE = 4, RENAME = 8, RESIZE = 16, READ = 32, NAMES = 64 };
enum { LARGEST_WRITE = 128 * 1024, BUFFER_SIZE = LARGEST_WRITE + 4096, MAX_NODES = 65536 };
/* The kernel may remember names and attributes: nothing but this program changes the source. */
enum { VALID_S = 3600 };

struct control {
    int32_t error, operations, skip, hits;
    char part[240];
};

struct node {
    int fd; /* -1: free */
    dev_t device;
    ino_t inode;
    uint64_t lookups;
};

static volatile struct control *control;
static struct node nodes[MAX_NODES];
static uint64_t node_count = 2; /* 1 (FUSE_ROOT_ID) is the source; 0 is not used */
static int fuse;
static char buffer[BUFFER_SIZE], answer_data[LARGEST_WRITE];

static void answer(uint64_t unique, int error, const void *data, size_t size)
{
    struct fuse_out_header header = {sizeof header + (error ? 0 : size), -error, unique};
    struct iovec parts[] = {{&header, sizeof header}, {(void *)data, error ? 0 : size}};
    if (writev(fuse, parts, 2) < 0 && errno != ENOENT) /* ENOENT: the request was interrupted */
        perror("answer");
}

/* Returns the errno with which a call on this path, an operation of this kind, has to fail; 0 if it works. */
static int failure(int operation, int fd)
{
    char link[32], path[PATH_MAX];
    if (control->error == 0 || !(control->operations & operation))
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = 0;
    if (!strstr(path, (const char *)control->part))
        return 0;
    if (__atomic_fetch_sub(&control->skip, 1, __ATOMIC_RELAXED) > 0)
        return 0;
    __atomic_fetch_add(&control->hits, 1, __ATOMIC_RELAXED);
    return control->error;
}

static void attributes(struct fuse_attr *to, const struct stat *from)
{
    *to = (struct fuse_attr){
        .ino = from->st_ino, .size = (uint64_t)from->st_size, .blocks = (uint64_t)from->st_blocks,
        .atime = (uint64_t)from->st_atim.tv_sec, .mtime = (uint64_t)from->st_mtim.tv_sec,
        .ctime = (uint64_t)from->st_ctim.tv_sec, .atimensec = (uint32_t)from->st_atim.tv_nsec,
        .mtimensec = (uint32_t)from->st_mtim.tv_nsec, .ctimensec = (uint32_t)from->st_ctim.tv_nsec,
        .mode = from->st_mode, .nlink = (uint32_t)from->st_nlink, .uid = from->st_uid, .gid = from->st_gid,
        .rdev = (uint32_t)from->st_rdev, .blksize = 4096,
    };
}

/* Fills in the entry for a name of a folder and counts the kernel's reference to it; returns an errno. */
static int look_up(int parent, const char *name, struct fuse_entry_out *entry)
{
    struct stat status;
    int fd = openat(parent, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno;
    if (fstat(fd, &status) < 0) {
        int error = errno;
        close(fd);
        return error;
    }
    uint64_t found = 0, free_id = 0;
    for (uint64_t id = 1; id < node_count && !found; id++) {
        if (nodes[id].fd >= 0 && nodes[id].inode == status.st_ino && nodes[id].device == status.st_dev)
            found = id;
        else if (nodes[id].fd < 0)
            free_id = id;
    }
    if (found)
        close(fd);
    else {
        found = free_id ? free_id : node_count;
        if (found == MAX_NODES) {
            close(fd);
            return ENFILE;
        }
        node_count += !free_id;
        nodes[found] = (struct node){fd, status.st_dev, status.st_ino, 0};
    }
    nodes[found].lookups++;
    *entry = (struct fuse_entry_out){.nodeid = found, .entry_valid = VALID_S, .attr_valid = VALID_S};
    attributes(&entry->attr, &status);
    return 0;
}

static void forget(uint64_t id, uint64_t lookups)
{
    struct node *node = &nodes[id];
    if (id == FUSE_ROOT_ID || id >= node_count || node->fd < 0)
        return;
    node->lookups -= lookups < node->lookups ? lookups : node->lookups;
    if (!node->lookups) {
        close(node->fd);
        node->fd = -1;
    }
}

/* Opens the inode behind an O_PATH descriptor; returns -1 and errno. */
static int open_again(int fd, int flags)
{
    char link[32];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return open(link, (flags & ~(O_NOFOLLOW | O_CREAT | O_EXCL)) | O_CLOEXEC);
}

static void answer_status(uint64_t unique, int fd)
{
    struct stat status;
    struct fuse_attr_out out = {.attr_valid = VALID_S};
    int error = fstat(fd, &status) < 0 ? errno : 0;
    attributes(&out.attr, &status);
    answer(unique, error, &out, sizeof out);
}

static int set_status(int fd, const struct fuse_setattr_in *in)
{
    char link[32];
    int error;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    if ((in->valid & FATTR_SIZE) && (error = failure(RESIZE, fd)))
        return error;
    if ((in->valid & FATTR_SIZE) && truncate(link, (off_t)in->size) < 0)
        return errno;
    if ((in->valid & FATTR_MODE) && chmod(link, in->mode) < 0)
        return errno;
    if (in->valid & (FATTR_ATIME | FATTR_MTIME)) {
        struct timespec times[] = {{(time_t)in->atime, in->atimensec}, {(time_t)in->mtime, in->mtimensec}};
        if (!(in->valid & FATTR_ATIME))
            times[0].tv_nsec = UTIME_OMIT;
        else if (in->valid & FATTR_ATIME_NOW)
            times[0].tv_nsec = UTIME_NOW;
        if (!(in->valid & FATTR_MTIME))
            times[1].tv_nsec = UTIME_OMIT;
        else if (in->valid & FATTR_MTIME_NOW)
            times[1].tv_nsec = UTIME_NOW;
        if (utimensat(AT_FDCWD, link, times, 0) < 0)
            return errno;
    }
    return 0;
}

static void answer_entry(uint64_t unique, int error, int parent, const char *name)
{
    struct fuse_entry_out entry;
    if (!error)
        error = look_up(parent, name, &entry);
    answer(unique, error, &entry, sizeof entry);
}

static void create(uint64_t unique, int parent, const struct fuse_create_in *in)
{
    const char *name = (const char *)(in + 1);
    struct {
        struct fuse_entry_out entry;
        struct fuse_open_out open;
    } out = {0};
    int error = failure(CREATE, parent), fd = -1;
    if (!error) {
        int flags = ((int)in->flags & ~O_APPEND) | O_CREAT | O_CLOEXEC; /* the kernel sends positions */
        fd = openat(parent, name, flags, in->mode & ~in->umask);
        error = fd < 0 ? errno : look_up(parent, name, &out.entry);
        if (fd >= 0 && error)
            close(fd);
    }
    out.open.fh = (uint64_t)fd;
    answer(unique, error, &out, sizeof out);
}

static void read_directory(uint64_t unique, const struct fuse_read_in *in)
{
    DIR *directory = (DIR *)(uintptr_t)in->fh;
    size_t limit = in->size < sizeof answer_data ? in->size : sizeof answer_data, used = 0;
    if (in->offset)
        seekdir(directory, (long)in->offset);
    else
        rewinddir(directory);
    struct dirent *found;
    while ((found = readdir(directory))) {
        size_t length = strlen(found->d_name), size = FUSE_DIRENT_ALIGN(FUSE_NAME_OFFSET + length);
        if (used + size > limit)
            break;
        struct fuse_dirent *entry = (struct fuse_dirent *)(answer_data + used);
        memset(entry, 0, size);
        entry->ino = found->d_ino;
        entry->off = (uint64_t)found->d_off;
        entry->namelen = (uint32_t)length;
        entry->type = found->d_type;
        memcpy(entry->name, found->d_name, length);
        used += size;
    }
    answer(unique, 0, answer_data, used);
}

static void start(uint64_t unique, const struct fuse_init_in *in)
{
    struct fuse_init_out out = {
        .major = FUSE_KERNEL_VERSION, .minor = 31, .max_readahead = in->max_readahead,
        .flags = in->flags & (FUSE_BIG_WRITES | FUSE_MAX_PAGES | FUSE_ASYNC_READ), .max_background = 12,
        .congestion_threshold = 9, .max_write = LARGEST_WRITE, .time_gran = 1, .max_pages = LARGEST_WRITE / 4096,
    };
    answer(unique, 0, &out, sizeof out);
}

static void statistics(uint64_t unique, int fd)
{
    struct statvfs found;
    struct fuse_statfs_out out = {0};
    int error = fstatvfs(fd, &found) < 0 ? errno : 0;
    if (!error)
        out.st = (struct fuse_kstatfs){
            .blocks = found.f_blocks, .bfree = found.f_bfree, .bavail = found.f_bavail, .files = found.f_files,
            .ffree = found.f_ffree, .bsize = (uint32_t)found.f_bsize, .namelen = (uint32_t)found.f_namemax,
            .frsize = (uint32_t)found.f_frsize,
        };
    answer(unique, error, &out, sizeof out);
}

static int rename_entry(int parent, uint64_t new_parent, const char *name, unsigned flags)
{
    int error = failure(RENAME, parent);
    if (error)
        return error;
    return renameat2(parent, name, nodes[new_parent].fd, name + strlen(name) + 1, flags) < 0 ? errno : 0;
}

static void handle(const struct fuse_in_header *header, const void *argument)
{
    uint64_t unique = header->unique;
    const char *name = argument;
    int fd = header->nodeid < MAX_NODES ? nodes[header->nodeid].fd : -1, error = 0;
    switch (header->opcode) {
    case FUSE_INIT:
        start(unique, argument);
        return;
    case FUSE_LOOKUP:
        answer_entry(unique, failure(NAMES, fd), fd, name);
        return;
    case FUSE_FORGET:
        forget(header->nodeid, ((const struct fuse_forget_in *)argument)->nlookup);
        return;
    case FUSE_BATCH_FORGET: {
        const struct fuse_batch_forget_in *in = argument;
        const struct fuse_forget_one *one = (const void *)(in + 1);
        for (uint32_t place = 0; place < in->count; place++)
            forget(one[place].nodeid, one[place].nlookup);
        return;
    }
    case FUSE_INTERRUPT:
        return;
    case FUSE_GETATTR:
        if ((error = failure(NAMES, fd)))
            break;
        answer_status(unique, fd);
        return;
    case FUSE_SETATTR:
        if ((error = set_status(fd, argument)))
            break;
        answer_status(unique, fd);
        return;
    case FUSE_MKDIR: {
        const struct fuse_mkdir_in *in = argument;
        name = (const char *)(in + 1);
        error = failure(RENAME, fd);
        if (!error && mkdirat(fd, name, in->mode & ~in->umask) < 0)
            error = errno;
        answer_entry(unique, error, fd, name);
        return;
    }
    case FUSE_UNLINK:
    case FUSE_RMDIR:
        error = failure(NAMES, fd);
        if (!error && unlinkat(fd, name, header->opcode == FUSE_RMDIR ? AT_REMOVEDIR : 0) < 0)
            error = errno;
        break;
    case FUSE_RENAME: {
        const struct fuse_rename_in *in = argument;
        error = rename_entry(fd, in->newdir, (const char *)(in + 1), 0);
        break;
    }
    case FUSE_RENAME2: {
        const struct fuse_rename2_in *in = argument;
        error = rename_entry(fd, in->newdir, (const char *)(in + 1), in->flags);
        break;
    }
    case FUSE_CREATE:
        create(unique, fd, argument);
        return;
    case FUSE_OPEN: {
        struct fuse_open_out out = {0};
        int opened = -1;
        error = failure(NAMES, fd);
        if (!error && (opened = open_again(fd, (int)((const struct fuse_open_in *)argument)->flags & ~O_APPEND)) < 0)
            error = errno;
        out.fh = (uint64_t)opened;
        answer(unique, error, &out, sizeof out);
        return;
    }
    case FUSE_OPENDIR: {
        struct fuse_open_out out = {0};
        int opened = -1;
        error = failure(NAMES, fd);
        if (!error && (opened = open_again(fd, O_RDONLY | O_DIRECTORY)) < 0)
            error = errno;
        if (!error && !(out.fh = (uint64_t)(uintptr_t)fdopendir(opened)))
            error = errno;
        answer(unique, error, &out, sizeof out);
        return;
    }
    case FUSE_READ: {
        const struct fuse_read_in *in = argument;
        size_t size = in->size < sizeof answer_data ? in->size : sizeof answer_data;
        ssize_t count = 0;
        error = failure(READ, (int)in->fh);
        if (!error && (count = pread((int)in->fh, answer_data, size, (off_t)in->offset)) < 0)
            error = errno;
        answer(unique, error, answer_data, (size_t)(count < 0 ? 0 : count));
        return;
    }
    case FUSE_WRITE: {
        const struct fuse_write_in *in = argument;
        ssize_t count = 0;
        error = failure(WRITE, (int)in->fh);
        if (!error && (count = pwrite((int)in->fh, in + 1, in->size, (off_t)in->offset)) < 0)
            error = errno;
        struct fuse_write_out out = {.size = (uint32_t)(count < 0 ? 0 : count)};
        answer(unique, error, &out, sizeof out);
        return;
    }
    case FUSE_READDIR:
        if ((error = failure(NAMES, fd)))
            break;
        read_directory(unique, argument);
        return;
    case FUSE_FSYNC:
        error = failure(SYNC, fd);
        if (!error && fsync((int)((const struct fuse_fsync_in *)argument)->fh) < 0)
            error = errno;
        break;
    case FUSE_FSYNCDIR:
        error = failure(SYNC, fd);
        if (!error && fsync(dirfd((DIR *)(uintptr_t)((const struct fuse_fsync_in *)argument)->fh)) < 0)
            error = errno;
        break;
    case FUSE_FLUSH:
        break;
    case FUSE_RELEASE:
        close((int)((const struct fuse_release_in *)argument)->fh);
        break;
    case FUSE_RELEASEDIR:
        closedir((DIR *)(uintptr_t)((const struct fuse_release_in *)argument)->fh);
        break;
    case FUSE_STATFS:
        statistics(unique, fd);
        return;
    default:
        error = ENOSYS;
    }
    answer(unique, error, NULL, 0);
}

static int prepare(char **arguments)
{
    struct stat status;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) { /* each inode that the kernel knows has a descriptor */
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    int file = open(arguments[3], O_RDWR | O_CLOEXEC);
    if (file < 0)
        return perror(arguments[3]), 1;
    control = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (control == MAP_FAILED)
        return perror("mmap"), 1;
    int source = open(arguments[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (source < 0 || fstat(source, &status) < 0)
        return perror(arguments[1]), 1;
    nodes[FUSE_ROOT_ID] = (struct node){source, status.st_dev, status.st_ino, 1};
    fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fuse < 0)
        return perror("/dev/fuse"), 1;
    char options[128];
    snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%d,group_id=%d,allow_other,default_permissions",
             fuse, getuid(), getgid());
    if (mount("failing", arguments[2], "fuse", MS_NOSUID | MS_NODEV, options) < 0)
        return perror("mount"), 1;
    return 0;
}

int main(int count, char **arguments)
{
    if (count != 4)
        return fprintf(stderr, "usage: %s SOURCE MOUNT_POINT CONTROL_FILE\n", arguments[0]), 2;
    if (prepare(arguments))
        return 1;
    puts("ready");
    fflush(stdout);
    struct pollfd waits[] = {{fuse, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}};
    for (;;) {
        if (poll(waits, 2, -1) < 0 && errno != EINTR)
            break;
        if (waits[1].revents || (waits[0].revents & POLLERR)) /* the test has ended, or somebody has unmounted */
            break;
        ssize_t size = read(fuse, buffer, sizeof buffer);
        if (size < 0 && errno != EINTR && errno != EAGAIN && errno != ENOENT)
            break;
        if (size > 0)
            handle((const void *)buffer, buffer + sizeof(struct fuse_in_header));
    }
    umount2(arguments[2], MNT_DETACH);
    return 0;
}
