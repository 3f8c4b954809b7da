/* A loss of power, for tests: preloaded, it notes in POWER_UNDO what each write to data.mdb took the
 * place of, and forgets it when that is synced. After a kill -9 the test puts back what was never
 * synced. With POWER_LIES the disk only says that it has synced.
 *
 * A record: u64 offset, u64 length, the old bytes. Writes by an O_DSYNC descriptor are synced. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

static int undo_fd = -2;

static int is_data(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(link, path, sizeof path - 1);
    if (n < 9 || memcmp(path + n - 9, "/data.mdb", 9) != 0) return 0;
    if (undo_fd == -2) {
        const char *name = getenv("POWER_UNDO");
        undo_fd = name ? open(name, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;
    }
    return undo_fd >= 0;
}

static void note(int fd, size_t length, off_t offset) {
    if (!is_data(fd) || (fcntl(fd, F_GETFL) & O_DSYNC)) return;
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
    return real(fd, data, length, offset);
}

ssize_t pwrite(int fd, const void *data, size_t length, off_t offset) {
    return pwrite64(fd, data, length, offset);
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t offset) {
    REAL(ssize_t, "pwritev64", int, const struct iovec *, int, off64_t);
    note(fd, total(parts, count), offset);
    return real(fd, parts, count, offset);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t offset) {
    return pwritev64(fd, parts, count, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    if (is_data(fd)) note(fd, total(parts, count), lseek(fd, 0, SEEK_CUR));
    return real(fd, parts, count);
}

static void synced(int fd) {
    if (is_data(fd) && !getenv("POWER_LIES") && ftruncate(undo_fd, 0) < 0) abort();
}

int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    int result = real(fd);
    if (result == 0) synced(fd);
    return result;
}

int fsync(int fd) {
    REAL(int, "fsync", int);
    int result = real(fd);
    if (result == 0) synced(fd);
    return result;
}
