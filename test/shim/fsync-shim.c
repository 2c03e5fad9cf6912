/*
 * A preloaded library that holds, delays or fails what makes data durable.
 *
 * Owns: fsync, fdatasync, msync, and writes to files opened with O_SYNC or O_DSYNC (LMDB writes its
 * meta page through such a descriptor). The file named by HOLDFAST_SHIM_CONTROL says what to do and
 * is read at every call, so a test changes it while the process runs:
 *
 *   pass                 does the real thing (also when the file is missing or empty)
 *   hold                 waits until the file says something else, then does that
 *   delay_ms 2000        waits, then does the real thing
 *   fail EIO | ENOSPC    returns the error without doing anything
 *   hold_in /state/      like hold, for files alone whose path contains the word
 *
 * While a call is held the file named like the control file with .held behind it is there.
 *
 * The first line counts. Never used outside tests. Built by fsync-shim.ts.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { COMMAND_BYTES = 64, HOLD_POLL_MS = 5, PATH_BYTES = 4096 };

static void sleep_ms(long ms) {
  struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000};
  while (nanosleep(&left, &left) == -1 && errno == EINTR) continue;
}

/* Reads the first line of the control file; an empty one stands for `pass`. */
static void read_command(char *line) {
  line[0] = '\0';
  const char *path = getenv("HOLDFAST_SHIM_CONTROL");
  if (path == NULL) return;
  int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return;
  ssize_t count = read(descriptor, line, COMMAND_BYTES - 1);
  close(descriptor);
  line[count > 0 ? count : 0] = '\0';
  line[strcspn(line, "\r\n")] = '\0';
}

/* True when the file of the descriptor, -1 for none, has `part` in its path. */
static int is_in(int descriptor, const char *part) {
  char link[64], path[PATH_BYTES];
  if (descriptor < 0) return 0;
  snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  ssize_t count = readlink(link, path, sizeof path - 1);
  path[count > 0 ? count : 0] = '\0';
  return strstr(path, part) != NULL;
}

static void note_held(void) {
  char path[PATH_BYTES];
  const char *control = getenv("HOLDFAST_SHIM_CONTROL");
  snprintf(path, sizeof path, "%s.held", control == NULL ? "" : control);
  int descriptor = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0644);
  if (descriptor >= 0) close(descriptor);
}

static int is_held(const char *line, int descriptor) {
  if (strcmp(line, "hold") == 0) return 1;
  return strncmp(line, "hold_in ", 8) == 0 && is_in(descriptor, line + 8);
}

/* Does what the control file says. Returns 0 to go on, or the error number to fail with. */
static int obey(int descriptor) {
  int saved = errno;
  char line[COMMAND_BYTES];
  read_command(line);
  if (is_held(line, descriptor)) note_held();
  while (is_held(line, descriptor)) {
    sleep_ms(HOLD_POLL_MS);
    read_command(line);
  }
  if (strncmp(line, "delay_ms ", 9) == 0) sleep_ms(atol(line + 9));
  errno = saved;
  if (strcmp(line, "fail EIO") == 0) return EIO;
  if (strcmp(line, "fail ENOSPC") == 0) return ENOSPC;
  return 0;
}

static int is_sync_descriptor(int descriptor) {
  int flags = fcntl(descriptor, F_GETFL);
  return flags != -1 && (flags & O_DSYNC) != 0; /* O_SYNC contains the bit of O_DSYNC */
}

static int failed(int error) {
  errno = error;
  return -1;
}

/* The function that this one stands in front of. */
#define NEXT(name) \
  static __typeof__(&name) next; \
  if (next == NULL) next = (__typeof__(next))dlsym(RTLD_NEXT, #name)

int fsync(int descriptor) {
  NEXT(fsync);
  int error = obey(descriptor);
  if (error != 0) return failed(error);
  return next(descriptor);
}

int fdatasync(int descriptor) {
  NEXT(fdatasync);
  int error = obey(descriptor);
  if (error != 0) return failed(error);
  return next(descriptor);
}

int msync(void *address, size_t length, int flags) {
  NEXT(msync);
  int error = (flags & MS_SYNC) != 0 ? obey(-1) : 0;
  if (error != 0) return failed(error);
  return next(address, length, flags);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
  NEXT(pwrite);
  int error = is_sync_descriptor(descriptor) ? obey(descriptor) : 0;
  if (error != 0) return failed(error);
  return next(descriptor, bytes, count, offset);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off64_t offset) {
  NEXT(pwrite64);
  int error = is_sync_descriptor(descriptor) ? obey(descriptor) : 0;
  if (error != 0) return failed(error);
  return next(descriptor, bytes, count, offset);
}

ssize_t pwritev(int descriptor, const struct iovec *parts, int count, off_t offset) {
  NEXT(pwritev);
  int error = is_sync_descriptor(descriptor) ? obey(descriptor) : 0;
  if (error != 0) return failed(error);
  return next(descriptor, parts, count, offset);
}
