/* No include guard: every header asks whether it is of the same version as those before it.  The number is that of
   all headers together, set where they are copied beside generated code. */
#ifndef OIC_RUNTIME_VERSION
#define OIC_RUNTIME_VERSION 0
#elif OIC_RUNTIME_VERSION != 0
#error "headers oic/*.h of two versions of oic in one translation unit: generate all its graphs with one version"
#endif

/* Hosted builds have an operating system with mmap: they also offer <name>_open and <name>_close.
   -DOIC_HOSTED=0 or 1 decides; otherwise the compiler's own macros do. */
#ifndef OIC_HOSTED
#if defined(__unix__) || defined(__APPLE__)
#define OIC_HOSTED 1
#else
#define OIC_HOSTED 0
#endif
#endif

/* Where there is little stack, parts of what kernels hold are short; the bits are the same.  -DOIC_SMALL_STACK=1 or 0 decides. */
#ifndef OIC_SMALL_STACK
#define OIC_SMALL_STACK (!OIC_HOSTED)
#endif
