/* A disk between a daemon and its files, which remembers every change and may fail; and
 * a clock that may be wrong.
 *
 * Preloaded into the daemon, it stands in for the calls that change files below
 * SHIM_ROOT. Each change is appended to SHIM_LOG in the order in which it happened:
 *
 *     op (1 byte), length of path, offset, length of data (8 bytes each), path, data
 *
 * W wrote data at offset, T made the file as long as offset, S synced it, R renamed
 * path to data, U unlinked path. SHIM_CONTROL is a file of three integers that the test
 * may change at any time: which fault, its milliseconds (for slow syncs), and by how
 * many seconds the time of day is wrong.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { NONE, FULL, SYNC_FAILS, WRITE_FAILS, READ_ONLY, SLOW_SYNC };

static pthread_mutex_t in_order = PTHREAD_MUTEX_INITIALIZER;
static const char *root;
static size_t root_length;
static int log_fd = -1;
static volatile int32_t *control;

__attribute__((constructor)) static void begin(void) {
    const char *log = getenv("SHIM_LOG"), *faults = getenv("SHIM_CONTROL");
    root = getenv("SHIM_ROOT");
    if (!root) return;
    root_length = strlen(root);
    if (log) log_fd = syscall(SYS_openat, AT_FDCWD, log,
                              O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int fd = faults ? syscall(SYS_openat, AT_FDCWD, faults, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        void *page = mmap(NULL, 12, PROT_READ, MAP_SHARED, fd, 0);
        control = page == MAP_FAILED ? NULL : page;
    }
}

static int fault(void) { return control ? control[0] : NONE; }

static int ours(const char *path) {
    return root && path && !strncmp(path, root, root_length);
}

/* The path of an open regular file of ours, or 0. */
static int path_of(int fd, char path[4096]) {
    char link[32];
    if (!root) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, 4095);
    path[length < 0 ? 0 : length] = 0;
    return ours(path);
}

static void put(const void *data, size_t length) {
    for (const char *at = data; length;) {
        ssize_t wrote = syscall(SYS_write, log_fd, at, length);
        if (wrote <= 0) abort();
        at += wrote;
        length -= wrote;
    }
}

static void note(char op, const char *path, uint64_t offset, const void *data,
                 uint64_t length) {
    if (log_fd < 0) return;
    size_t named = strlen(path), size = 25 + named + length;
    char *record = malloc(size);
    uint64_t sizes[3] = {named, offset, length};
    record[0] = op;
    memcpy(record + 1, sizes, 24);
    memcpy(record + 25, path, named);
    if (length) memcpy(record + 25 + named, data, length);
    put(record, size);
    free(record);
}

static int refused(void) {
    switch (fault()) {
    case FULL: errno = ENOSPC; return 1;
    case WRITE_FAILS: errno = EIO; return 1;
    case READ_ONLY: errno = EROFS; return 1;
    }
    return 0;
}

static ssize_t wrote_at(int fd, const char *path, const void *data, size_t length,
                        off_t offset) {
    if (refused()) return -1;
    pthread_mutex_lock(&in_order);
    ssize_t wrote = syscall(SYS_pwrite64, fd, data, length, offset);
    if (wrote > 0) note('W', path, offset, data, wrote);
    pthread_mutex_unlock(&in_order);
    return wrote;
}

ssize_t write(int fd, const void *data, size_t length) {
    char path[4096];
    if (!path_of(fd, path)) return syscall(SYS_write, fd, data, length);
    int appends = fcntl(fd, F_GETFL) & O_APPEND;
    off_t at = lseek(fd, 0, appends ? SEEK_END : SEEK_CUR);
    ssize_t wrote = wrote_at(fd, path, data, length, at);
    if (wrote > 0) lseek(fd, at + wrote, SEEK_SET);
    return wrote;
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) {
    char path[4096];
    if (!path_of(fd, path)) return syscall(SYS_pwrite64, fd, data, length, offset);
    return wrote_at(fd, path, data, length, offset);
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
    return pwrite64(fd, data, length, offset);
}

int ftruncate64(int fd, off64_t length) {
    char path[4096];
    int mine = path_of(fd, path);
    if (mine && refused()) return -1;
    pthread_mutex_lock(&in_order);
    int done = syscall(SYS_ftruncate, fd, length);
    if (mine && !done) note('T', path, length, NULL, 0);
    pthread_mutex_unlock(&in_order);
    return done;
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

static int synced(int fd, long call) {
    char path[4096];
    if (!path_of(fd, path)) return syscall(call, fd);
    if (fault() == SYNC_FAILS) {
        errno = EIO;
        return -1;
    }
    if (fault() == SLOW_SYNC) usleep(control[1] * 1000);
    pthread_mutex_lock(&in_order);
    int done = syscall(call, fd);
    if (!done) note('S', path, 0, NULL, 0);
    pthread_mutex_unlock(&in_order);
    return done;
}

int fsync(int fd) { return synced(fd, SYS_fsync); }

int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

int rename(const char *from, const char *to) {
    if (ours(from) && refused()) return -1;
    pthread_mutex_lock(&in_order);
    int done = syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
    if (!done && ours(from)) note('R', from, 0, to, strlen(to));
    pthread_mutex_unlock(&in_order);
    return done;
}

int unlink(const char *path) {
    if (ours(path) && refused()) return -1;
    pthread_mutex_lock(&in_order);
    int done = syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (!done && ours(path)) note('U', path, 0, NULL, 0);
    pthread_mutex_unlock(&in_order);
    return done;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int done = syscall(SYS_clock_gettime, clock, now);
    if (!done && clock == CLOCK_REALTIME && control) now->tv_sec += control[2];
    return done;
}

static int opened(int folder, const char *path, int flags, mode_t mode) {
    int changes = flags & (O_CREAT | O_TRUNC);
    if (ours(path) && changes && (fault() == FULL || fault() == READ_ONLY) && refused())
        return -1;
    int fd = syscall(SYS_openat, folder, path, flags, mode);
    if (fd >= 0 && ours(path) && changes) {
        pthread_mutex_lock(&in_order);
        if (flags & O_TRUNC || !lseek(fd, 0, SEEK_END)) note('T', path, 0, NULL, 0);
        lseek(fd, 0, SEEK_SET);
        pthread_mutex_unlock(&in_order);
    }
    return fd;
}

#define MODE(flags, mode)                 \
    mode_t mode = 0;                      \
    if ((flags) & (O_CREAT | O_TMPFILE)) { \
        va_list rest;                     \
        va_start(rest, flags);            \
        mode = va_arg(rest, mode_t);      \
        va_end(rest);                     \
    }

int open(const char *path, int flags, ...) {
    MODE(flags, mode)
    return opened(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE(flags, mode)
    return opened(AT_FDCWD, path, flags, mode);
}

int openat(int folder, const char *path, int flags, ...) {
    MODE(flags, mode)
    return opened(folder, path, flags, mode);
}

int openat64(int folder, const char *path, int flags, ...) {
    MODE(flags, mode)
    return opened(folder, path, flags, mode);
}
