/* Memory from the operating system: a file mapped read-only, address space committed as it is touched.
   Included before every other header, because it asks for more than C99. */
#ifndef OIC_HOSTED_H
#define OIC_HOSTED_H

#include "../version.h"

#if OIC_HOSTED

#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE 1 /* MAP_ANONYMOUS, MAP_NORESERVE in <sys/mman.h> */
#endif
#if defined(__APPLE__) && !defined(_DARWIN_C_SOURCE)
#define _DARWIN_C_SOURCE 1
#endif

#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Ask that memory lie in pages of megabytes, of which a processor finds more without a walk through its tables.  Pages
   hold what is wanted alone: a mapping's ends are left in small ones. */
static inline void oic_in_large_pages(const void *map, size_t bytes)
{
#if defined(MADV_HUGEPAGE)
    if (map != NULL) {
        (void)madvise((void *)(uintptr_t)map, bytes, MADV_HUGEPAGE);
    }
#else
    (void)map;
    (void)bytes;
#endif
}

/* A whole file, read-only and shared between processes; NULL if it cannot be had. */
static inline const void *oic_map_file(const char *path, size_t *bytes)
{
    struct stat about;
    void *map = NULL;
    const int file = open(path, O_RDONLY);
    if (file < 0) {
        return NULL;
    }
    if (fstat(file, &about) == 0 && about.st_size > 0 && (uintmax_t)about.st_size <= SIZE_MAX) {
        *bytes = (size_t)about.st_size;
        map = mmap(NULL, *bytes, PROT_READ, MAP_SHARED, file, 0);
        map = map == MAP_FAILED ? NULL : map;
        oic_in_large_pages(map, *bytes);
    }
    (void)close(file);
    return map;
}

/* Zeros; a page costs memory once it is written.  NULL if there is not the address space. */
static inline void *oic_map_zeros(size_t bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_NORESERVE
    flags |= MAP_NORESERVE;
#endif
    void *const map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    return map == MAP_FAILED ? NULL : map;
}

/* Give back what one of the two above returned; NULL is nothing. */
static inline void oic_unmap(const void *map, size_t bytes)
{
    if (map != NULL) {
        (void)munmap((void *)(uintptr_t)map, bytes);
    }
}

#endif
#endif
