/* A program for WebAssembly, whose run() node calls: how it prints, and what it needs of a C library. */
#ifndef WASM_H
#define WASM_H

#include <stddef.h>
#include <stdint.h>

/* `name: 0123456789abcdef` */
__attribute__((import_module("env"), import_name("say"))) void wasm_say(const char *name, uint32_t high, uint32_t low);
__attribute__((export_name("run"))) int run(void);

__attribute__((no_builtin("memcpy"))) void *memcpy(void *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        ((char *)to)[i] = ((const char *)from)[i];
    }
    return to;
}

__attribute__((no_builtin("memmove"))) void *memmove(void *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        const size_t at = (uintptr_t)to < (uintptr_t)from ? i : n - 1 - i;
        ((char *)to)[at] = ((const char *)from)[at];
    }
    return to;
}

__attribute__((no_builtin("memset"))) void *memset(void *to, int value, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        ((char *)to)[i] = (char)value;
    }
    return to;
}

__attribute__((no_builtin("memcmp"))) int memcmp(const void *one, const void *other, size_t n)
{
    for (size_t i = 0; i < n; ++i) {
        if (((const uint8_t *)one)[i] != ((const uint8_t *)other)[i]) {
            return ((const uint8_t *)one)[i] < ((const uint8_t *)other)[i] ? -1 : 1;
        }
    }
    return 0;
}

#endif
