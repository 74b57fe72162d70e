/* No include guard: every header asks whether it is of the same version as those before it.  The number is that of
   all headers together, set where they are copied beside generated code. */
#ifndef OIC_RUNTIME_VERSION
#define OIC_RUNTIME_VERSION 0xf78dfdfb
#elif OIC_RUNTIME_VERSION != 0xf78dfdfb
#error "headers oic/*.h of two versions of oic in one translation unit: generate all its graphs with one version"
#endif
