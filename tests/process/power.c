/* A loss of power, for tests: preloaded, it notes in POWER_UNDO what each write to data.mdb took the
 * place of, and forgets it when that is synced. After a kill -9 the test puts back what was never
 * synced. With POWER_LIES the disk only says that it has synced.
 *
 * A record: u64 offset, u64 length, the old bytes. Writes by an O_DSYNC descriptor are synced.
 *
 * In POWER_SYNCS it notes when each of these calls on data.mdb began and ended, by CLOCK_MONOTONIC:
 * u64 kind, u64 begin, u64 end in nanoseconds. Kinds: 1 fdatasync, 2 fsync, 3 msync, 4 a write that
 * syncs, 5 a write that does not. With POWER_LIES nothing has synced. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { FDATASYNC = 1, FSYNC, MSYNC, SYNCED_WRITE, UNSYNCED_WRITE };

static int undo_fd = -2, syncs_fd = -2;

static int named(const char *variable) {
    const char *name = getenv(variable);
    return name ? open(name, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
}

static int is_data(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    return n >= 9 && memcmp(path + n - 9, "/data.mdb", 9) == 0;
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void count(uint64_t kind, uint64_t begin) {
    if (syncs_fd == -2) syncs_fd = named("POWER_SYNCS");
    if (syncs_fd < 0 || (kind != UNSYNCED_WRITE && getenv("POWER_LIES"))) return;
    uint64_t record[3] = {kind, begin, now()};
    if (write(syncs_fd, record, sizeof record) != (ssize_t)sizeof record) abort();
}

static void count_write(int fd, uint64_t begin) {
    if (is_data(fd)) count(fcntl(fd, F_GETFL) & O_DSYNC ? SYNCED_WRITE : UNSYNCED_WRITE, begin);
}

static void note(int fd, size_t length, off_t offset) {
    if (!is_data(fd) || (fcntl(fd, F_GETFL) & O_DSYNC)) return;
    if (undo_fd == -2) undo_fd = named("POWER_UNDO");
    if (undo_fd < 0) return;
    uint64_t head[2] = {(uint64_t)offset, length};
    char *record = calloc(1, sizeof head + length);
    memcpy(record, head, sizeof head);
    if (pread(fd, record + sizeof head, length, offset) < 0) abort();
    if (write(undo_fd, record, sizeof head + length) < 0) abort();
    free(record);
}

#define REAL(type, name, ...) \
    static type (*real)(__VA_ARGS__); \
    if (!real) real = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static size_t total(const struct iovec *parts, int count) {
    size_t sum = 0;
    for (int i = 0; i < count; i++) sum += parts[i].iov_len;
    return sum;
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t offset) {
    REAL(ssize_t, "pwrite64", int, const void *, size_t, off64_t);
    note(fd, length, offset);
    uint64_t begin = now();
    ssize_t result = real(fd, data, length, offset);
    count_write(fd, begin);
    return result;
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
    return pwrite64(fd, data, length, offset);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int parts_count, off64_t offset) {
    REAL(ssize_t, "pwritev64", int, const struct iovec *, int, off64_t);
    note(fd, total(parts, parts_count), offset);
    uint64_t begin = now();
    ssize_t result = real(fd, parts, parts_count, offset);
    count_write(fd, begin);
    return result;
}

ssize_t pwritev(int fd, const struct iovec *parts, int parts_count, off_t offset) {
    return pwritev64(fd, parts, parts_count, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int parts_count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    if (is_data(fd)) note(fd, total(parts, parts_count), lseek(fd, 0, SEEK_CUR));
    uint64_t begin = now();
    ssize_t result = real(fd, parts, parts_count);
    count_write(fd, begin);
    return result;
}

static void synced(int fd, uint64_t kind, uint64_t begin) {
    if (!is_data(fd)) return;
    if (undo_fd >= 0 && !getenv("POWER_LIES") && ftruncate(undo_fd, 0) < 0) abort();
    count(kind, begin);
}

int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    uint64_t begin = now();
    int result = real(fd);
    if (result == 0) synced(fd, FDATASYNC, begin);
    return result;
}

int fsync(int fd) {
    REAL(int, "fsync", int);
    uint64_t begin = now();
    int result = real(fd);
    if (result == 0) synced(fd, FSYNC, begin);
    return result;
}

int msync(void *start, size_t length, int flags) {
    REAL(int, "msync", void *, size_t, int);
    uint64_t begin = now();
    int result = real(start, length, flags);
    if (result == 0) count(MSYNC, begin);
    return result;
}
