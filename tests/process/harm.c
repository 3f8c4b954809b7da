/* A disk that is slow or full and a clock that jumps, for tests: preloaded into a node, steered by
 * the file that HARM_CONTROL names while it runs. Six i64 in it, the first three written by the test:
 *
 * 0 microseconds that each sync of data.mdb takes more   3 syncs that were made slower
 * 1 not 0: the disk is full                              4 writes that were refused with ENOSPC
 * 2 nanoseconds that the wall clock is off               5 times that the wrong clock was read */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { DELAY_US, FULL, OFFSET_NS, SLOWED, REFUSED, READ_WRONG, WORDS };

static volatile int64_t *control;

__attribute__((constructor)) static void begin(void) {
    const char *name = getenv("HARM_CONTROL");
    int fd = name ? open(name, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0) return;
    void *mapped = mmap(NULL, WORDS * sizeof(int64_t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (mapped != MAP_FAILED) control = mapped;
    unsetenv("LD_PRELOAD"); /* whoever copies the store for a backup is another process */
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static int is_data(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    return n >= 9 && memcmp(path + n - 9, "/data.mdb", 9) == 0;
}

static void add(int word) { __atomic_add_fetch(&control[word], 1, __ATOMIC_RELAXED); }

static int is_refused(int fd) {
    if (!control || !control[FULL] || !is_data(fd)) return 0;
    add(REFUSED);
    errno = ENOSPC;
    return 1;
}

static void linger(int fd) {
    if (!control || control[DELAY_US] <= 0 || !is_data(fd)) return;
    add(SLOWED);
    usleep((useconds_t)control[DELAY_US]);
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    return is_refused(fd) ? -1 : real(fd, data, length, offset);
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
    return pwrite64(fd, data, length, offset);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) {
    REAL(ssize_t, "pwritev64", int, const struct iovec *, int, off64_t);
    return is_refused(fd) ? -1 : real(fd, parts, count, offset);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    return pwritev64(fd, parts, count, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    return is_refused(fd) ? -1 : real(fd, parts, count);
}

int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    linger(fd);
    return real(fd);
}

int fsync(int fd) {
    REAL(int, "fsync", int);
    linger(fd);
    return real(fd);
}

int clock_gettime(clockid_t which, struct timespec *found) {
    REAL(int, "clock_gettime", clockid_t, struct timespec *);
    int result = real(which, found);
    if (result || which != CLOCK_REALTIME || !control || !control[OFFSET_NS]) return result;
    add(READ_WRONG);
    int64_t ns = (int64_t)found->tv_sec * 1000000000 + found->tv_nsec + control[OFFSET_NS];
    found->tv_sec = ns / 1000000000;
    found->tv_nsec = ns % 1000000000;
    return 0;
}
